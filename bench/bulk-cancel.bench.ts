/**
 * Bulk cancel over HTTP of runs that all have a pending delivery, sleep or wait: by ids, by URL prefix, and by label
 * and dates. Compared with one bare SQL UPDATE of the same rows in a copy of the same file, and with DBOS' cancel of as
 * many workflows by id on PostgreSQL (a status update only). A steady load of 200 publishes per second runs on the same
 * service, before and during the cancel. Service, publisher and cancelling client are a process each; the requests are
 * prepared by an earlier process.
 *
 *   npm run bench bulk-cancel
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
import { requestsOf, SELECTORS, type SelectorName } from './support/bulk-requests.js'
import { median, percentile } from './support/figures.js'
import { type Peer, startPeer } from './support/peers.js'

const { values: given } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000,100000,1000000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', multiple: true },
    'without-dbos': { type: 'boolean', default: false },
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

async function measure(dataDir: string, requests: readonly string[], expected: number): Promise<Round> {
  const peer = await startPeer<Service>('bulk-server.ts', { DATA_DIR: dataDir })
  const { url, token } = peer.facts
  const service = { SERVICE_URL: url, SERVICE_TOKEN: token }
  const client = await startPeer('bulk-client.ts', { ...service, REQUESTS: JSON.stringify(requests) })
  const publisher = await startPeer('publisher.ts', service, { flags: STEADY_HEAP })
  await pause(WARM_UP_MS)
  await publications(publisher)
  await pause(BASELINE_MS)
  const quiet = await publications(publisher)
  const cancelMs = await cancel(client, expected)
  const busy = await publications(publisher)
  await publisher.stop()
  await client.stop()
  peer.child.send('memory')
  const [{ memoryBytes }] = await once(peer.child, 'message')
  await peer.stop()
  return { cancelMs, quiet, busy, memoryBytes }
}

interface Measured {
  readonly bare: readonly BareTimes[]
  readonly rounds: Readonly<Record<string, readonly Round[]>>
}

async function measureSize(directory: string, size: number): Promise<Measured> {
  const original = join(directory, 'original')
  const requestsDir = join(directory, 'requests')
  const maker = await startPeer('bulk-runs.ts', { DATA_DIR: original, REQUESTS_DIR: requestsDir, RUNS: String(size) })
  await maker.stop()
  const bare: BareTimes[] = []
  const rounds: Record<string, Round[]> = {}
  for (let round = 0; round < ROUNDS_OF(size); round++) {
    bare.push(await onCopy(original, (dataDir) => cancelBare(dataDir, size)))
    for (const name of CHOSEN) {
      const requests = requestsOf(requestsDir, name, size)
      const result = await onCopy(original, (dataDir) => measure(dataDir, requests, size))
      rounds[name] = [...(rounds[name] ?? []), result]
    }
  }
  return { bare, rounds }
}

async function onCopy<Result>(original: string, work: (dataDir: string) => Promise<Result> | Result): Promise<Result> {
  const dataDir = `${original}-copy`
  copyStore(original, dataDir)
  try {
    return await work(dataDir)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measureDbos(size: number): Promise<number> {
  const postgres = await startPostgresServer('full')
  const peer = await startPeer<string>('dbos.mjs', { POSTGRES_URL: postgres.url })
  try {
    peer.child.send({ kind: 'cancel', count: size })
    const [{ elapsedMs }] = await once(peer.child, 'message')
    return elapsedMs
  } finally {
    await peer.stop()
    await postgres.stop()
  }
}

const ms = (value: number): string => `${value.toFixed(value < 100 ? 1 : 0)} ms`

function report(size: number, { bare, rounds }: Measured, dbosMs: number | undefined): void {
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
        'publish p50': `${ms(percentile(quiet, 0.5))} -> ${ms(percentile(busy, 0.5))}`,
        'publish p99': `${ms(before)} -> ${ms(meanwhile)} (x ${(meanwhile / before).toFixed(1)})`,
        longest: `${ms(percentile(quiet, 1))} -> ${ms(percentile(busy, 1))}`,
        memory: `${Math.round(Math.max(...list.map((round) => round.memoryBytes)) / 2 ** 20)} MB`,
      },
    ]
  })
  console.log(`\n${size} runs, a third each with a delivery, a sleep and a wait pending`)
  console.table({
    ...Object.fromEntries(rows),
    ...(dbosMs !== undefined && { 'dbos by ids (status only)': row(dbosMs) }),
    'one bare UPDATE of the runs': row(updateMs),
    'one bare DELETE of messages and of waits': row(deleteMs),
  })
}

for (const size of SIZES) {
  const directory = mkdtempSync(join(tmpdir(), 'homeport-bench-'))
  try {
    report(size, await measureSize(directory, size), given['without-dbos'] ? undefined : await measureDbos(size))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
