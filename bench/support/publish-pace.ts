import { Agent, request } from 'undici'

const PACE_MS = 5

/** A steady load: a message is published every 5 ms, whatever became of the one before. */
export interface PublishPace {
  /** Ends the load; answers how long each publish took from the time when it was due, milliseconds. */
  stop(): Promise<number[]>
}

/** Starts the load; its messages are due tomorrow. */
export function startPublishing(url: string, token: string): PublishPace {
  const dispatcher = new Agent({ connections: 50 })
  const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1d' }
  const latencies: number[] = []
  const running: Promise<void>[] = []
  const began = performance.now()
  let planned = 0
  const publish = async (plannedAt: number): Promise<void> => {
    const options = { dispatcher, method: 'POST' as const, headers, body: 'hello' }
    const answer = await request(`${url}/v2/publish/http://127.0.0.1:9/x`, options)
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`a publish was answered ${answer.statusCode}`)
    latencies.push(performance.now() - plannedAt)
  }
  const timer = setInterval(() => {
    for (; began + planned * PACE_MS <= performance.now(); planned++) running.push(publish(began + planned * PACE_MS))
  }, 1)
  return {
    stop: async () => {
      clearInterval(timer)
      await Promise.all(running)
      await dispatcher.close()
      return latencies
    },
  }
}
