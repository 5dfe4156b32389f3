/**
 * Publishing over HTTP on 50 connections, one message at a time and in batches of 100. Each request is answered after its
 * messages are on disk. Homeport on SQLite (synchronous=FULL) or PostgreSQL takes turns with BullMQ (Redis, appendfsync
 * always), graphile-worker, pg-boss and a model of River (PostgreSQL, the same server), each behind a bare node:http server.
 * A floor makes the same requests and commits with the least work (on PostgreSQL only batches, into the same table).
 *
 *   npm run bench publish
 *   npm run bench publish -- --store postgres
 *
 * `HOMEPORT_BENCH_REQUESTS` sets how many requests a round has (batches: a twentieth of that), `HOMEPORT_BENCH_ROUNDS`
 * how many rounds there are.
 */
import { type Contestant, startContest } from './support/contestants.js'
import { median } from './support/figures.js'
import { runHttpLoad } from './support/http-load.js'
import { benchStore } from './support/store-choice.js'

const CONNECTIONS = 50
const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 20_000)
const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const PER_BATCH = 100
const BODY = JSON.stringify({ order: 4711, items: ['a', 'b', 'c'], note: 'x'.repeat(150) })
const NOWHERE = 'http://127.0.0.1:9/hook'
// Messages are due far in the future, so that only publishing is measured: the peers have no worker either.
const LATER = { 'upstash-delay': '7d' }

const contest = await startContest(CONNECTIONS)

interface Measured {
  readonly perSecond: number
  readonly p99Ms: number
}

async function alone({ port, one }: Contestant): Promise<Measured> {
  const request = one(NOWHERE, BODY, LATER)
  const result = await runHttpLoad({ port, connections: CONNECTIONS, requests: REQUESTS, request })
  return { perSecond: result.perSecond, p99Ms: result.latenciesMs[Math.floor(REQUESTS * 0.99)] ?? 0 }
}

async function batched({ port, many }: Contestant): Promise<Measured> {
  const request = many(NOWHERE, Array<string>(PER_BATCH).fill(BODY), LATER)
  const requests = Math.ceil(REQUESTS / 20)
  const result = await runHttpLoad({ port, connections: Math.min(CONNECTIONS, requests), requests, request })
  return {
    perSecond: result.perSecond * PER_BATCH,
    p99Ms: result.latenciesMs[Math.floor(requests * 0.99)] ?? 0,
  }
}

type Entrants = Readonly<Record<string, Contestant>>

async function measure(title: string, entrants: Entrants, work: (one: Contestant) => Promise<Measured>): Promise<void> {
  const rounds = new Map<string, Measured[]>(Object.keys(entrants).map((name) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, entrant] of Object.entries(entrants)) {
      const measured = await work(entrant)
      if (round > 0) rounds.get(name)?.push(measured) // the first round warms up
    }
  }
  const rate = (all: readonly Measured[] = []): number => median(all.map(({ perSecond }) => perSecond))
  const rows = [...rounds].map(([name, all]) => [
    name,
    {
      'messages per second (median)': Math.round(rate(all)),
      'p99 ms of a request (median)': Number(median(all.map(({ p99Ms }) => p99Ms)).toFixed(1)),
      rounds: all.map(({ perSecond }) => Math.round(perSecond)).join(' '),
      'homeport / this': Number((rate(rounds.get('homeport')) / rate(all)).toFixed(2)),
    },
  ])
  console.log(title)
  console.table(Object.fromEntries(rows))
}

const entrants = { ...contest.of, floor: contest.floor }
await measure('one message a request', benchStore === 'sqlite' ? entrants : contest.of, alone)
await measure(`batches of ${PER_BATCH}`, entrants, batched)
await contest.stop()
