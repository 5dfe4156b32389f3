/**
 * A steady load on a service at `SERVICE_URL` with `SERVICE_TOKEN`: publishes a message due tomorrow every 5 ms,
 * without waiting for the previous one. It is a separate process, so that other work of the benchmark does not count as
 * latency. Answers any message with the durations of all publishes since the last answer, in milliseconds from the
 * planned time; it waits for pending ones.
 */
import { Agent, request } from 'undici'

const PACE_MS = 5

const { SERVICE_URL: url = '', SERVICE_TOKEN: token = '' } = process.env
const dispatcher = new Agent({ connections: 50 })
const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1d' }

async function publish(plannedAt: number, latencies: number[]): Promise<void> {
  const options = { dispatcher, method: 'POST' as const, headers, body: 'hello' }
  const answer = await request(`${url}/v2/publish/http://127.0.0.1:9/x`, options)
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`a publish was answered ${answer.statusCode}`)
  latencies.push(performance.now() - plannedAt)
}

/** Only the latency of a finished publish is kept, so that garbage collections stay short. */
let latencies: number[] = []
const pending = new Set<Promise<void>>()
const began = performance.now()
let planned = 0

function publishAt(plannedAt: number): void {
  const over: Promise<void> = publish(plannedAt, latencies).finally(() => pending.delete(over))
  pending.add(over)
}

const timer = setInterval(() => {
  for (; began + planned * PACE_MS <= performance.now(); planned++) publishAt(began + planned * PACE_MS)
}, 1)

process.on('message', async () => {
  const asked = latencies
  latencies = []
  await Promise.all(pending)
  process.send?.(asked)
})
process.send?.('ready')
process.once('disconnect', async () => {
  clearInterval(timer)
  await Promise.all(pending)
  await dispatcher.close()
})
