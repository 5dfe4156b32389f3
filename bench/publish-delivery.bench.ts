/**
 * From publish to delivery: Homeport (SQLite, synchronous=FULL, or PostgreSQL) compared with BullMQ (Redis, appendfsync
 * always), graphile-worker, pg-boss (PostgreSQL; both tuned: local queue, batched completion) and a model of River
 * (PostgreSQL; claims and completions in batches), all delivering to the same server, 50 at a time, and on SQLite a floor
 * (`support/delivery-floor.ts`): the same requests and commits with the least work.
 *
 * - backlog: delivery of pending messages, from the first arrival to the last;
 * - throughput: 50 connections publish while messages are delivered, until the last has arrived;
 * - latency: 200 messages per second, from sending a publish to the arrival of its delivery.
 *
 *   npm run bench publish-delivery
 *   npm run bench publish-delivery -- --store postgres
 *
 * `HOMEPORT_BENCH_ROUNDS` sets how many rounds there are (default 1; the medians are reported), `HOMEPORT_BENCH_BACKLOG`
 * the size of the backlog (the throughput is measured over a fifth of it), `HOMEPORT_BENCH_SECONDS` how long the latency
 * is measured, `HOMEPORT_BENCH_ONLY` names of contestants, with commas.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Contestant, startContest } from './support/contestants.js'
import { median, percentile } from './support/figures.js'
import { runHttpLoad } from './support/http-load.js'
import { benchStore } from './support/store-choice.js'

const RATE = 200
const SECONDS = Number(process.env.HOMEPORT_BENCH_SECONDS ?? 20)
const BACKLOG = Number(process.env.HOMEPORT_BENCH_BACKLOG ?? 100_000)
const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 1)
const IN_FLIGHT = 50
const PER_BATCH = 100
const BODY = 'x'.repeat(200)
/** Slowest expected rate of publishing a backlog, messages per second. At this rate, all are published before any is due. */
const SLOWEST_FILL = 2_000

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

/** Resolves with the milliseconds from the first of this many arrivals to the last, and the time of the last. */
function arrivals(count: number): Promise<{ elapsedMs: number; lastAt: number }> {
  let seen = 0
  let firstAt = 0
  return new Promise((resolve) => {
    sink.onBody = () => {
      const now = performance.now()
      if (seen++ === 0) firstAt = now
      if (seen === count) resolve({ elapsedMs: now - firstAt, lastAt: now })
    }
  })
}

/** Deliveries per second of a backlog, and a function that ends the deliveries. */
async function drain(contestant: Contestant): Promise<{ perSecond: number; stop: () => Promise<void> }> {
  const { port, many } = contestant
  const all = arrivals(BACKLOG)
  const dueAt = Math.ceil(Date.now() / 1_000 + 3 + BACKLOG / SLOWEST_FILL)
  const notBefore = { 'upstash-not-before': String(dueAt) }
  const load = many(target, Array<string>(PER_BATCH).fill(BODY), notBefore)
  await runHttpLoad({ port, connections: 10, requests: BACKLOG / PER_BATCH, request: load })
  const stop = await contestant.deliver()
  return { perSecond: (BACKLOG * 1_000) / (await all).elapsedMs, stop }
}

/** Messages per second, from the first publish to the last arrival. */
async function flow({ port, one }: Contestant): Promise<number> {
  const count = BACKLOG / 5
  const all = arrivals(count)
  const beganAt = performance.now()
  await runHttpLoad({ port, connections: IN_FLIGHT, requests: count, request: one(target, BODY) })
  return (count * 1_000) / ((await all).lastAt - beganAt)
}

/** Parses a request that was made for a raw socket. */
function parsed(raw: Buffer): { path: string; headers: Record<string, string> } {
  const [head = ''] = raw.toString('latin1').split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const pairs = lines.map((each) => [each.slice(0, each.indexOf(':')), each.slice(each.indexOf(':') + 2)])
  const { 'content-length': _, host: __, ...headers } = Object.fromEntries(pairs) as Record<string, string>
  return { path: line.split(' ')[1] ?? '/', headers }
}

/** Milliseconds from publish to arrival, sorted. */
async function latencies({ port, one }: Contestant): Promise<number[]> {
  const arrived: number[] = []
  sink.onBody = (body) => arrived.push(performance.now() - Number(body))
  const dispatcher = new Agent({ connections: 50, pipelining: 1 })
  const { path, headers } = parsed(one(target, ''))
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

/** A round of one contestant. */
interface Round {
  readonly drained: number
  readonly flowing: number
  readonly p50Ms: number
  readonly p99Ms: number
}

async function round(contestant: Contestant): Promise<Round> {
  const { perSecond: drained, stop } = await drain(contestant)
  const flowing = await flow(contestant)
  const values = await latencies(contestant)
  await stop()
  return { drained, flowing, p50Ms: percentile(values, 0.5), p99Ms: percentile(values, 0.99) }
}

const contest = await startContest(IN_FLIGHT)
/** Names of the contestants of this run. */
const playing: Readonly<Record<string, Contestant>> =
  benchStore === 'sqlite' ? { ...contest.of, floor: contest.floor } : contest.of
const only = process.env.HOMEPORT_BENCH_ONLY?.split(',')
const names = Object.keys(playing).filter((name) => only?.includes(name) ?? true)
const rounds = new Map<string, Round[]>(names.map((name) => [name, []]))
// Contestants take turns, so that a change in the speed of the machine affects all of them.
for (let turn = 0; turn < ROUNDS; turn++) {
  for (const name of names) {
    const contestant = playing[name]
    if (contestant) rounds.get(name)?.push(await round(contestant))
  }
}
const rows = Object.fromEntries(
  [...rounds].map(([name, list]) => {
    const of = (key: keyof Round, digits = 0): number => Number(median(list.map((one) => one[key])).toFixed(digits))
    return [
      name,
      {
        'backlog delivered per second': of('drained'),
        'published and delivered per second': of('flowing'),
        'latency p50 ms': of('p50Ms', 1),
        'latency p99 ms': of('p99Ms', 1),
      },
    ]
  }),
)
console.table(rows)
await contest.stop()
server.closeAllConnections()
server.close()
