/**
 * Publishing over HTTP, each request answered after its messages are on disk, 50 connections, alone and in batches of
 * 100: Homeport on SQLite (synchronous=FULL) or PostgreSQL against BullMQ (Redis, appendfsync always), graphile-worker,
 * pg-boss and a model of River (PostgreSQL, the same server), each behind a bare node:http server, in turns.
 *
 *   npm run bench publish
 *   npm run bench publish -- --store postgres
 *
 * `HOMEPORT_BENCH_REQUESTS` sets how many requests a round has (batches: a twentieth of that), `HOMEPORT_BENCH_ROUNDS`
 * how many rounds there are.
 */
import { NAMES, type Name, startContest } from './support/contestants.js'
import { median } from './support/figures.js'
import { runHttpLoad } from './support/http-load.js'

const CONNECTIONS = 50
const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 20_000)
const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const PER_BATCH = 100
const BODY = JSON.stringify({ order: 4711, items: ['a', 'b', 'c'], note: 'x'.repeat(150) })
const NOWHERE = 'http://127.0.0.1:9/hook'
// Far in the future, so that only publishing is measured: the others have no worker either.
const LATER = { 'upstash-delay': '7d' }

const contest = await startContest(CONNECTIONS)

interface Measured {
  readonly perSecond: number
  readonly p99Ms: number
}

async function alone(name: Name): Promise<Measured> {
  const { port, one } = contest.of[name]
  const request = one(NOWHERE, BODY, LATER)
  const result = await runHttpLoad({ port, connections: CONNECTIONS, requests: REQUESTS, request })
  return { perSecond: result.perSecond, p99Ms: result.latenciesMs[Math.floor(REQUESTS * 0.99)] ?? 0 }
}

async function batched(name: Name): Promise<Measured> {
  const { port, many } = contest.of[name]
  const request = many(NOWHERE, Array<string>(PER_BATCH).fill(BODY), LATER)
  const requests = Math.ceil(REQUESTS / 20)
  const result = await runHttpLoad({ port, connections: Math.min(CONNECTIONS, requests), requests, request })
  return {
    perSecond: result.perSecond * PER_BATCH,
    p99Ms: result.latenciesMs[Math.floor(requests * 0.99)] ?? 0,
  }
}

async function measure(title: string, work: (name: Name) => Promise<Measured>): Promise<void> {
  const none = NAMES.map((name): [Name, Measured[]] => [name, []])
  const rounds = Object.fromEntries(none) as Record<Name, Measured[]>
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of NAMES) {
      const measured = await work(name)
      if (round > 0) rounds[name].push(measured) // the first round warms up
    }
  }
  const rate = (name: Name): number => median(rounds[name].map(({ perSecond }) => perSecond))
  const rows = NAMES.map((name) => [
    name,
    {
      'messages per second (median)': Math.round(rate(name)),
      'p99 ms of a request (median)': Number(median(rounds[name].map(({ p99Ms }) => p99Ms)).toFixed(1)),
      rounds: rounds[name].map(({ perSecond }) => Math.round(perSecond)).join(' '),
      'homeport / this': Number((rate('homeport') / rate(name)).toFixed(2)),
    },
  ])
  console.log(title)
  console.table(Object.fromEntries(rows))
}

await measure('one message a request', alone)
await measure(`batches of ${PER_BATCH}`, batched)
await contest.stop()
