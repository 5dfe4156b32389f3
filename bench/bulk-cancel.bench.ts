/**
 * Bulk cancel over HTTP, by URL prefix + label + dates, of runs that all have a delivery pending, against one bare SQL
 * UPDATE of the same rows in the same file. Beside it, writes at a steady pace show what other callers feel.
 *
 *   npm run bench bulk-cancel
 *   HOMEPORT_BENCH_RUNS=1000000 npm run bench bulk-cancel
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { newId, systemClock } from '../src/base/index.js'
import { type Bulk, createBulk } from '../src/bulk/index.js'
import { startRuns } from '../src/bulk/testing/runs.js'
import type { Route } from '../src/http/index.js'
import type { Queue } from '../src/queue/index.js'
import { type QueueUnderTest, startQueue } from '../src/queue/testing/harness.js'
import { openStore, operations, type Store } from '../src/store/index.js'
import { silentLogger } from '../src/telemetry/index.js'

const RUNS = Number(process.env.HOMEPORT_BENCH_RUNS ?? 100_000)
const DECOYS = Math.ceil(RUNS / 10)
const ROUNDS = 3
const BASELINE_MS = 3_000
const PACE_MS = 5
const ACCOUNT = 'bench'
const PREFIX = 'https://work.test/nightly'
const LABEL = 'batch-7'
const FROM = 1_700_000_000_000
const TO = FROM + 3_600_000
const FILE = 'homeport.sqlite'

const onFailure = (error: Error): void => {
  throw error
}

/** Runs that match, and one in eleven that does not, spread among them. */
async function prepare(dataDir: string): Promise<void> {
  const store = await openStore({ location: 'sqlite', dataDir, onFailure })
  const matching = { url: `${PREFIX}/report`, host: 'work.test', path: '/nightly/report', labels: `|x|${LABEL}|` }
  const decoy = { ...matching, labels: '|other|' }
  await startRuns(store, ACCOUNT, RUNS + DECOYS, (index) => ({
    ...(index % 11 === 10 ? decoy : matching),
    at: FROM + 1 + (Math.floor(index / 500) % 3_000_000),
    dueAt: Date.now() + 86_400_000,
  }))
  await store.close()
}

function open(file: string): Database.Database {
  const db = new Database(file)
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'cache_size = -65536']) db.pragma(pragma)
  return db
}

const WHERE = `account_id = @account AND state = 'RUN_STARTED' AND substr(url, 1, length(@prefix)) = @prefix
  AND instr(labels, @label) > 0 AND created_at > @from AND created_at < @to`
const VALUES = { account: ACCOUNT, prefix: PREFIX, label: `|${LABEL}|`, from: FROM, to: TO }

/** The floor: the rows of the runs alone. And, to tell the parts apart: the pending deliveries in one DELETE before it. */
function bare(file: string): { updateMs: number; deleteMs: number } {
  const db = open(file)
  const groups = `SELECT seq FROM runs WHERE ${WHERE}`
  const started = performance.now()
  db.prepare(`DELETE FROM messages WHERE group_key IN (${groups}) AND state = 'pending'`).run(VALUES)
  const deleted = performance.now()
  const update = db.prepare(`UPDATE runs SET state = 'RUN_CANCELED', finished_at = @to WHERE ${WHERE}`)
  const { changes } = update.run(VALUES)
  const ended = performance.now()
  db.close()
  expectRuns(changes)
  return { updateMs: ended - deleted, deleteMs: deleted - started }
}

/** Starts a write every few milliseconds, whatever became of the one before, and notes how long each took. */
function paced(store: Store): { stop(): Promise<number[]> } {
  const latencies: number[] = []
  const running: Promise<void>[] = []
  const began = performance.now()
  let planned = 0
  const write = async (plannedAt: number): Promise<void> => {
    await store.run(operations.accounts.audit, auditRow())
    latencies.push(performance.now() - plannedAt)
  }
  const timer = setInterval(() => {
    for (; began + planned * PACE_MS <= performance.now(); planned++) running.push(write(began + planned * PACE_MS))
  }, 1)
  return {
    stop: async () => {
      clearInterval(timer)
      await Promise.all(running)
      return latencies.sort((a, b) => a - b)
    },
  }
}

function auditRow(): operations.accounts.NewAuditRow {
  const who = { account_id: 'other', actor: 'a@example.test', source: 'QUEUE_TOKEN', ip: '127.0.0.1' }
  return { ...who, log_id: newId('log_', Date.now()), action: 'Write', entity: 'x', details: '{}', at: Date.now() }
}

interface Service extends Pick<QueueUnderTest, 'url' | 'auth'> {
  readonly store: Store
  stop(): Promise<void>
}

/** The queue with its delivery engine, the bulk room on it, and their listener. */
async function serve(dataDir: string): Promise<Service> {
  const store = await openStore({ location: 'sqlite', dataDir, onFailure })
  let bulk: Bulk | undefined
  const extend = (queue: Queue): readonly Route[] => {
    bulk = createBulk({ store, queue, clock: systemClock, logger: silentLogger })
    return bulk.routes()
  }
  const service = await startQueue({ store, accountId: ACCOUNT, extend })
  await bulk?.start()
  const stop = async (): Promise<void> => {
    await bulk?.stop()
    await service.stop()
    await store.close()
  }
  return { store, url: service.url, auth: service.auth, stop }
}

interface Round {
  readonly bulkMs: number
  readonly updateMs: number
  readonly deleteMs: number
  readonly quietP50Ms: number
  readonly quietP99Ms: number
  readonly busyP50Ms: number
  readonly busyP99Ms: number
  readonly busyMaxMs: number
}

async function measureBulk(dataDir: string): Promise<Omit<Round, 'updateMs' | 'deleteMs'>> {
  const service = await serve(dataDir)
  const quiet = paced(service.store)
  await new Promise((resolve) => setTimeout(resolve, BASELINE_MS))
  const quietMs = await quiet.stop()
  const busy = paced(service.store)
  const started = performance.now()
  const body = JSON.stringify({ workflowUrl: PREFIX, label: LABEL, fromDate: FROM, toDate: TO })
  const options = { method: 'DELETE', headers: service.auth, body }
  const answer = await (await fetch(`${service.url}/v2/workflows/runs`, options)).json()
  const bulkMs = performance.now() - started
  const busyMs = await busy.stop()
  await service.stop()
  expectRuns((answer as { cancelled: number }).cancelled)
  return {
    bulkMs,
    quietP50Ms: at(quietMs, 0.5),
    quietP99Ms: at(quietMs, 0.99),
    busyP50Ms: at(busyMs, 0.5),
    busyP99Ms: at(busyMs, 0.99),
    busyMaxMs: at(busyMs, 1),
  }
}

function expectRuns(count: number): void {
  if (count !== RUNS) throw new Error(`${count} runs were cancelled instead of ${RUNS}`)
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

async function measure(directory: string): Promise<Round[]> {
  const original = join(directory, 'original')
  mkdirSync(original)
  await prepare(original)
  const rounds: Round[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const dataDir = join(directory, String(round))
    mkdirSync(dataDir)
    copyFileSync(join(original, FILE), join(dataDir, 'bare.sqlite'))
    copyFileSync(join(original, FILE), join(dataDir, FILE))
    const floor = bare(join(dataDir, 'bare.sqlite'))
    rounds.push({ ...floor, ...(await measureBulk(dataDir)) })
    rmSync(dataDir, { recursive: true })
  }
  return rounds
}

function report(rounds: readonly Round[]): void {
  const of = (field: keyof Round): number => median(rounds.map((round) => round[field]))
  const ms = (value: number): string => `${value.toFixed(value < 100 ? 1 : 0)} ms`
  console.log(`${RUNS} runs cancelled, each with a pending delivery; medians of ${ROUNDS} rounds`)
  console.log(`  bulk cancel over HTTP          ${ms(of('bulkMs'))}`)
  console.log(`  one bare UPDATE of the runs    ${ms(of('updateMs'))}`)
  console.log(`  ratio                          ${(of('bulkMs') / of('updateMs')).toFixed(2)}`)
  console.log(`  one bare DELETE of deliveries  ${ms(of('deleteMs'))}`)
  console.log(`  ratio to both                  ${(of('bulkMs') / (of('updateMs') + of('deleteMs'))).toFixed(2)}`)
  const before = `p50 ${ms(of('quietP50Ms'))}, p99 ${ms(of('quietP99Ms'))}`
  const meanwhile = `p50 ${ms(of('busyP50Ms'))}, p99 ${ms(of('busyP99Ms'))}, longest ${ms(of('busyMaxMs'))}`
  console.log(`  other writes before            ${before}`)
  console.log(`  other writes meanwhile         ${meanwhile}`)
}

const directory = mkdtempSync(join(tmpdir(), 'homeport-bench-'))
try {
  report(await measure(directory))
} finally {
  rmSync(directory, { recursive: true, force: true })
}
