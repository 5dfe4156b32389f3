/**
 * A steady load on a service at `SERVICE_URL` with `SERVICE_TOKEN`: a message that is due tomorrow is published every
 * 5 ms, whatever became of the one before. It is a process of its own, so that nothing else that a benchmark does counts
 * as latency. Answers any message with how long each publish since the last answer took from the time when it was due,
 * milliseconds; those that are still under way are waited for.
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

/** Of publications that are over only a number is kept: what else they leave, the collector of garbage need not move. */
let latencies: number[] = []
const underWay = new Set<Promise<void>>()
const began = performance.now()
let planned = 0

function publishAt(plannedAt: number): void {
  const over: Promise<void> = publish(plannedAt, latencies).finally(() => underWay.delete(over))
  underWay.add(over)
}

const timer = setInterval(() => {
  for (; began + planned * PACE_MS <= performance.now(); planned++) publishAt(began + planned * PACE_MS)
}, 1)

process.on('message', async () => {
  const asked = latencies
  latencies = []
  await Promise.all(underWay)
  process.send?.(asked)
})
process.send?.('ready')
process.once('disconnect', async () => {
  clearInterval(timer)
  await Promise.all(underWay)
  await dispatcher.close()
})
