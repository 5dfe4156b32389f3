/**
 * From publish to delivery, Homeport against BullMQ (Redis with appendfsync always, a bare node:http server in front, a
 * worker that delivers with undici), both delivering to the same server:
 *
 * - latency: 200 messages a second, from the moment a publish is sent until its delivery arrives;
 * - backlog: messages that wait are delivered 50 at a time, from the first arrival to the last.
 *
 *   npm run bench publish-delivery
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { median, postRequest, runHttpLoad } from './support/http-load.js'
import { startPeer, startRedis } from './support/peers.js'

const RATE = 200
const SECONDS = 10
const BACKLOG = Number(process.env.HOMEPORT_BENCH_BACKLOG ?? 20_000)
/** Homeport gives one host half of its requests in flight. */
const IN_FLIGHT = 50
/** Long enough to publish the backlog before it falls due. */
const HEAD_START_S = 25

const sink = { onBody: (_body: string): void => undefined }
const server = createServer((incoming, response) => {
  let body = ''
  incoming.setEncoding('utf8')
  incoming.on('data', (chunk: string) => {
    body += chunk
  })
  incoming.on('end', () => {
    sink.onBody(body)
    response.end('ok')
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`

/** One of the two: where it is published to, and how. */
interface Contestant {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

async function latencies({ port, path, headers }: Contestant): Promise<number[]> {
  const arrived: number[] = []
  sink.onBody = (body) => arrived.push(performance.now() - Number(body))
  const dispatcher = new Agent({ connections: 50, pipelining: 1 })
  const sent: Promise<unknown>[] = []
  const began = performance.now()
  for (let n = 0; n < RATE * SECONDS; n++) {
    await pause(Math.max(0, began + (n * 1_000) / RATE - performance.now()))
    const publish = { method: 'POST', headers, body: String(performance.now()), dispatcher } as const
    sent.push(request(`http://127.0.0.1:${port}${path}`, publish).then((answer) => answer.body.dump()))
  }
  await Promise.all(sent)
  while (arrived.length < RATE * SECONDS) await pause(10)
  await dispatcher.close()
  return arrived.slice(RATE).sort((a, b) => a - b) // the first second warms up
}

/** Publishes a backlog, lets `release` set it free, and answers deliveries per second. */
async function drain({ port, path, headers }: Contestant, release: () => Promise<unknown>): Promise<number> {
  let count = 0
  let first = 0
  const all = new Promise<number>((resolve) => {
    sink.onBody = () => {
      if (count++ === 0) first = performance.now()
      if (count === BACKLOG) resolve((performance.now() - first) / 1_000)
    }
  })
  const load = postRequest(path, headers, 'x'.repeat(200))
  await runHttpLoad({ port, connections: 50, requests: BACKLOG, request: load })
  await release()
  return BACKLOG / (await all)
}

const redis = await startRedis()
const env = { BENCH_REDIS_PORT: String(redis.port), BENCH_CONCURRENCY: String(IN_FLIGHT) }
const homeport = await startPeer<{ port: number; token: string }>('queue-server.ts', {
  BENCH_CONCURRENCY: String(2 * IN_FLIGHT),
})
const bullmq = await startPeer<{ port: number }>('bullmq-server.ts', env)
const authorization = `Bearer ${homeport.facts.token}`
const ours: Contestant = { port: homeport.facts.port, path: `/v2/publish/${target}`, headers: { authorization } }
const theirs: Contestant = { port: bullmq.facts.port, path: '/', headers: { 'x-target': target } }

const dueAt = Math.ceil(Date.now() / 1_000) + HEAD_START_S
const notBefore = { ...ours, headers: { ...ours.headers, 'upstash-not-before': String(dueAt) } }
const drained = { homeport: await drain(notBefore, () => Promise.resolve()), bullmq: 0 }
let worker: { stop(): Promise<void> } | undefined
drained.bullmq = await drain(theirs, async () => {
  worker = await startPeer('bullmq-worker.ts', env)
})

const rounds: Record<'homeport' | 'bullmq', number[][]> = { homeport: [], bullmq: [] }
for (let round = 0; round < 3; round++) {
  rounds.homeport.push(await latencies(ours))
  rounds.bullmq.push(await latencies(theirs))
}
const share = (name: 'homeport' | 'bullmq', part: number): number =>
  Number(median(rounds[name].map((values) => values[Math.floor(values.length * part)] ?? 0)).toFixed(1))
console.table(
  Object.fromEntries(
    (['homeport', 'bullmq'] as const).map((name) => [
      name,
      {
        'backlog delivered per second': Math.round(drained[name]),
        'latency p50 ms': share(name, 0.5),
        'latency p99 ms': share(name, 0.99),
      },
    ]),
  ),
)
await Promise.all([homeport.stop(), bullmq.stop(), worker?.stop()])
await redis.stop()
server.closeAllConnections()
server.close()
