/**
 * Bulk cancel over HTTP of runs that all have a pending delivery, sleep or wait: by ids, by URL prefix, and by label
 * and dates. It is compared with one bare SQL UPDATE of the same rows in a copy of the same store. In the same rounds, it
 * is compared with DBOS, which cancels the same number of workflows by id on PostgreSQL (only a status update), on the same
 * server if Homeport uses PostgreSQL, too. Unless `--quiet` is given, a steady load of 200 publishes per second runs on
 * Homeport before and during the cancel; DBOS has no such load. Service, publisher and cancelling client are a process each;
 * an earlier process prepares the requests.
 *
 *   npm run bench bulk-cancel
 *   npm run bench bulk-cancel -- --store postgres
 *   HOMEPORT_BENCH_STORE=postgres node --import ./scripts/lib/measured.mjs bench/bulk-cancel.bench.ts --quiet --runs 100000
 *   node --import ./scripts/lib/measured.mjs bench/bulk-cancel.bench.ts --runs 10000 --rounds 1
 *   node --import ./scripts/lib/measured.mjs bench/bulk-cancel.bench.ts --runs 1000000 --only 'by URL prefix' --without-dbos
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { type BareTimes, cancelBare, copyStore } from './support/bulk-data.js'
import { cancelBareOnPostgres, copyDatabase, dropDatabase } from './support/bulk-data-postgres.js'
import { requestsOf, SELECTORS, type SelectorName } from './support/bulk-requests.js'
import { createDatabase } from './support/databases.js'
import { median, percentile } from './support/figures.js'
import { type Peer, startPeer } from './support/peers.js'
import { benchStore } from './support/store-choice.js'

const { values: given } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000,100000,1000000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', multiple: true },
    'without-dbos': { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
  },
})
const SIZES = given.runs.split(',').map(Number)
const ROUNDS = Number(given.rounds)
/** A million runs take a gigabyte and a minute to prepare, so one round is enough. */
const ROUNDS_OF = (size: number): number => (size >= 1_000_000 ? 1 : ROUNDS)
const WARM_UP_MS = 1_500
const BASELINE_MS = 3_000
/**
 * Keeps garbage collections of the measuring process rare and short: collecting 64 MB takes 20 ms on an idle machine,
 * and ten times as long on a busy one.
 */
const STEADY_HEAP = ['--min-semi-space-size=16', '--max-semi-space-size=16']
const NAMES = Object.keys(SELECTORS) as SelectorName[]
const CHOSEN = NAMES.filter((name) => given.only?.includes(name) ?? true)

interface Round {
  readonly cancelMs: number
  readonly quiet: readonly number[]
  readonly busy: readonly number[]
  readonly memoryBytes: number
}

interface Service {
  readonly url: string
  readonly token: string
}

/** @returns the duration, milliseconds. */
async function cancel({ child }: Peer<unknown>, expected: number): Promise<number> {
  child.send('cancel')
  const [{ cancelled, elapsedMs }] = await once(child, 'message')
  if (cancelled !== expected) throw new Error(`${cancelled} runs were cancelled instead of ${expected}`)
  return elapsedMs
}

/** The durations of the publications since the last call. */
async function publications({ child }: Peer<unknown>): Promise<number[]> {
  child.send('latencies')
  const [latencies] = await once(child, 'message')
  return latencies
}

async function measure(place: Place, requests: readonly string[], expected: number): Promise<Round> {
  const peer = await startPeer<Service>('bulk-server.ts', place)
  const { url, token } = peer.facts
  const service = { SERVICE_URL: url, SERVICE_TOKEN: token }
  const client = await startPeer('bulk-client.ts', { ...service, REQUESTS: JSON.stringify(requests) })
  if (given.quiet) {
    const cancelMs = await cancel(client, expected)
    await client.stop()
    return { cancelMs, quiet: [], busy: [], memoryBytes: await memoryOf(peer) }
  }
  const publisher = await startPeer('publisher.ts', service, { flags: STEADY_HEAP })
  await pause(WARM_UP_MS)
  await publications(publisher)
  await pause(BASELINE_MS)
  const quiet = await publications(publisher)
  const cancelMs = await cancel(client, expected)
  const busy = await publications(publisher)
  await publisher.stop()
  await client.stop()
  return { cancelMs, quiet, busy, memoryBytes: await memoryOf(peer) }
}

/** Stops the service. @returns the most memory that it used, bytes. */
async function memoryOf(peer: Peer<unknown>): Promise<number> {
  peer.child.send('memory')
  const [{ memoryBytes }] = await once(peer.child, 'message')
  await peer.stop()
  return memoryBytes
}

interface Measured {
  readonly bare: readonly BareTimes[]
  readonly rounds: Readonly<Record<string, readonly Round[]>>
  /** Milliseconds of DBOS, one for each round. */
  readonly dbos: readonly number[]
}

/** The location of a store, as a variable of the benchmark's processes. */
type Place = { readonly DATA_DIR: string } | { readonly BENCH_STORE: string }

/** A store with runs, and copies of it. */
interface Stores {
  readonly original: Place
  /** Makes the changes of a cancel with bare SQL on a copy. */
  cancelBareCopy(size: number): Promise<BareTimes> | BareTimes
  onCopy<Result>(work: (copy: Place) => Promise<Result> | Result): Promise<Result>
}

function sqliteStores(directory: string): Stores {
  const original = join(directory, 'original')
  const copy = join(directory, 'copy')
  return {
    original: { DATA_DIR: original },
    cancelBareCopy: (size) => cancelBare(copy, size),
    onCopy: async (work) => {
      copyStore(original, copy)
      try {
        return await work({ DATA_DIR: copy })
      } finally {
        rmSync(copy, { recursive: true, force: true })
      }
    },
  }
}

async function postgresStores(server: string): Promise<Stores> {
  await createDatabase(server, 'bulk_original')
  const copy = `${server}/bulk_copy`
  return {
    original: { BENCH_STORE: `${server}/bulk_original` },
    cancelBareCopy: (size) => cancelBareOnPostgres(copy, size),
    onCopy: async (work) => {
      await copyDatabase(server, 'bulk_original', 'bulk_copy')
      try {
        return await work({ BENCH_STORE: copy })
      } finally {
        await dropDatabase(server, 'bulk_copy')
      }
    },
  }
}

async function measureSize(directory: string, stores: Stores, server: string, size: number): Promise<Measured> {
  const requestsDir = join(directory, 'requests')
  const maker = await startPeer('bulk-runs.ts', {
    ...stores.original,
    REQUESTS_DIR: requestsDir,
    RUNS: String(size),
  })
  await maker.stop()
  const bare: BareTimes[] = []
  const rounds: Record<string, Round[]> = {}
  const dbos: number[] = []
  for (let round = 0; round < ROUNDS_OF(size); round++) {
    bare.push(await stores.onCopy(() => stores.cancelBareCopy(size)))
    for (const name of CHOSEN) {
      const requests = requestsOf(requestsDir, name, size)
      const result = await stores.onCopy((place) => measure(place, requests, size))
      rounds[name] = [...(rounds[name] ?? []), result]
    }
    if (!given['without-dbos']) dbos.push(await measureDbos(server, size))
  }
  return { bare, rounds, dbos }
}

async function measureDbos(server: string, size: number): Promise<number> {
  const peer = await startPeer<string>('dbos.mjs', { POSTGRES_URL: server })
  try {
    peer.child.send({ kind: 'cancel', count: size })
    const [{ elapsedMs }] = await once(peer.child, 'message')
    return elapsedMs
  } finally {
    await peer.stop()
  }
}

const ms = (value: number): string => `${value.toFixed(value < 100 ? 1 : 0)} ms`

function report(size: number, { bare, rounds, dbos }: Measured): void {
  const updateMs = median(bare.map((times) => times.updateMs))
  const deleteMs = median(bare.map((times) => times.deleteMs))
  const row = (cancelMs: number) => ({
    time: ms(cancelMs),
    'a second': Math.round(size / (cancelMs / 1_000)),
    'x UPDATE': (cancelMs / updateMs).toFixed(1),
    'x UPDATE + DELETE': (cancelMs / (updateMs + deleteMs)).toFixed(1),
  })
  const rows = Object.entries(rounds).map(([name, list]) => {
    const quiet = list.flatMap((round) => round.quiet)
    const busy = list.flatMap((round) => round.busy)
    const [before, meanwhile] = [percentile(quiet, 0.99), percentile(busy, 0.99)]
    return [
      `homeport ${name}`,
      {
        ...row(median(list.map((round) => round.cancelMs))),
        ...(quiet.length > 0 && {
          'publish p50': `${ms(percentile(quiet, 0.5))} -> ${ms(percentile(busy, 0.5))}`,
          'publish p99': `${ms(before)} -> ${ms(meanwhile)} (x ${(meanwhile / before).toFixed(1)})`,
          longest: `${ms(percentile(quiet, 1))} -> ${ms(percentile(busy, 1))}`,
        }),
        memory: `${Math.round(Math.max(...list.map((round) => round.memoryBytes)) / 2 ** 20)} MB`,
      },
    ]
  })
  console.log(`\n${size} runs, a third each with a delivery, a sleep and a wait pending`)
  console.table({
    ...Object.fromEntries(rows),
    ...(dbos.length > 0 && { 'dbos by ids (status only)': row(median(dbos)) }),
    'one bare UPDATE of the runs': row(updateMs),
    'one bare DELETE of messages and of waits': row(deleteMs),
  })
}

for (const size of SIZES) {
  const directory = mkdtempSync(join(tmpdir(), 'homeport-bench-'))
  const postgres = await startPostgresServer('full')
  try {
    const stores = benchStore === 'sqlite' ? sqliteStores(directory) : await postgresStores(postgres.url)
    report(size, await measureSize(directory, stores, postgres.url, size))
  } finally {
    await postgres.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}
