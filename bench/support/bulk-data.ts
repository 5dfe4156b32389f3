import { closeSync, copyFileSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { startRuns } from '../../src/bulk/testing/runs.js'
import { openStore } from '../../src/store/index.js'

/** The account of the runs, which is that of the service under test. */
export const ACCOUNT = 'acc_test'
/** The values that the selectors of the benchmark match. */
export const MATCHING = {
  prefix: 'https://work.test/nightly',
  label: 'batch-7',
  from: 1_700_000_000_000,
  to: 1_700_003_600_000,
} as const
/** The file of a store. */
export const FILE = 'homeport.sqlite'

/** One day. */
export const DAY_MS = 86_400_000
/** One in this many runs does not match the selectors. */
export const DECOY_EVERY = 11
/** The id of a run. */
export const idOf = (number: number): string => `wfr_${String(number).padStart(18, '0')}`

/** Makes the first run of a new store, of which all others are copies. */
export async function makeFirstRun(location: string, dataDir: string): Promise<void> {
  const onFailure = (error: Error): void => {
    throw error
  }
  const store = await openStore({ location, dataDir, onFailure })
  await startRuns(store, ACCOUNT, 1, {
    url: `${MATCHING.prefix}/report`,
    host: 'work.test',
    path: '/nightly/report',
    labels: `|x|${MATCHING.label}|`,
    at: MATCHING.from + 1,
    dueAt: Date.now() + DAY_MS,
  })
  await store.close()
}

/**
 * Makes a store with this many active runs that match the selectors; in between, one run in eleven does not match. One
 * third of the runs waits for the first delivery, one third sleeps, one third waits for an event: each has a message
 * due tomorrow.
 * @returns the ids of the runs that match.
 */
export async function makeRuns(dataDir: string, count: number): Promise<string[]> {
  mkdirSync(dataDir)
  await makeFirstRun('sqlite', dataDir)
  const db = open(join(dataDir, FILE))
  multiply(db, totalOf(count))
  addSleepsAndWaits(db)
  db.close()
  return idsOf(count)
}

/** The number of runs, with those that do not match. */
export const totalOf = (count: number): number => count + Math.floor((count - 1) / (DECOY_EVERY - 1))

/** The ids of the runs that match. */
export function idsOf(count: number): string[] {
  return Array.from({ length: totalOf(count) }, (_, index) => index + 1)
    .filter((number) => number % DECOY_EVERY !== 0)
    .map(idOf)
}

/** The message ids of a run: as long as real ones, and ordered by time like them. */
const MESSAGE_ID = "printf('msg_%010d', i) || lower(hex(randomblob(6)))"
const isDecoy = (column: string, decoy: string): string =>
  `CASE WHEN i % ${DECOY_EVERY} = 0 THEN '${decoy}' ELSE ${column} END`
const PLACE = { url: isDecoy('url', 'https://work.test/daily'), path: isDecoy('path', '/daily') }
const CREATED = `created_at + (i / 500) % 3000000`

/** Multiplies the only run of a store, row by row, because starting a million runs would take minutes. */
function multiply(db: Database.Database, total: number): void {
  db.exec(`CREATE TEMP TABLE numbers AS
    WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ${total}) SELECT i FROM n`)
  const labels = isDecoy('labels', '|other|')
  copyRows(db, 'runs', 'seq', {
    seq: 'i',
    run_id: "printf('wfr_%018d', i)",
    ...PLACE,
    labels,
    created_at: CREATED,
  })
  copyRows(db, 'messages', 'group_key', {
    seq: 'i',
    message_id: MESSAGE_ID,
    group_key: 'i',
    next_at: 'next_at + i',
    ...PLACE,
    labels,
    created_at: CREATED,
  })
  copyRows(db, 'steps', 'run_seq', {
    run_seq: 'i',
    message_id: '(SELECT message_id FROM messages WHERE seq = i)',
    created_at: CREATED,
  })
  db.exec(`UPDATE runs SET run_id = '${idOf(1)}' WHERE seq = 1`)
}

function copyRows(db: Database.Database, table: string, key: string, changed: Readonly<Record<string, string>>): void {
  const names = db.pragma(`table_info(${table})`) as { name: string }[]
  const columns = names.map(({ name }) => name)
  const values = columns.map((name) => changed[name] ?? name)
  db.exec(`INSERT INTO ${table} (${columns.join(', ')})
    SELECT ${values.join(', ')} FROM numbers, (SELECT * FROM ${table} WHERE ${key} = 1) ORDER BY i`)
}

/** Adds sleeps and waits in the form in which the module `workflow` writes them. */
function addSleepsAndWaits(db: Database.Database): void {
  db.exec(`INSERT INTO steps (run_seq, position, message_id, kind, body, created_at)
    SELECT run_seq, 1, message_id || '-1', 'step', '{"stepId":1,"stepType":"SleepFor"}', created_at
    FROM steps WHERE run_seq % 3 = 1`)
  db.exec(`INSERT INTO run_waits (account_id, run_seq, event_id, message_id, wait, deadline, created_at)
    SELECT account_id, group_key, 'paid', message_id, '{}', next_at, created_at
    FROM messages WHERE group_key % 3 = 2`)
}

function open(file: string): Database.Database {
  const db = new Database(file)
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'cache_size = -65536']) db.pragma(pragma)
  return db
}

/** Copies a closed store and syncs the copy, so that it is not written to the disk during a measurement. */
export function copyStore(from: string, to: string): void {
  mkdirSync(to)
  const copy = join(to, FILE)
  copyFileSync(join(from, FILE), copy)
  const file = openSync(copy, 'r+')
  fsyncSync(file)
  closeSync(file)
}

/** The time of SQL statements in a store; each statement is its own transaction. */
export interface BareTimes {
  /** One UPDATE of the rows of the runs: the floor. */
  readonly updateMs: number
  /** One DELETE of their messages and one of their waits, measured separately. */
  readonly deleteMs: number
}

const WHERE = `account_id = @account AND state = 'RUN_STARTED' AND substr(url, 1, length(@prefix)) = @prefix
  AND instr(labels, @label) > 0 AND created_at > @from AND created_at < @to`

/** Makes the changes of a cancel with bare SQL. */
export function cancelBare(dataDir: string, count: number): BareTimes {
  const db = open(join(dataDir, FILE))
  const values = { ...MATCHING, account: ACCOUNT, label: `|${MATCHING.label}|` }
  const groups = `SELECT seq FROM runs WHERE ${WHERE}`
  const started = performance.now()
  db.prepare(`DELETE FROM messages WHERE group_key IN (${groups}) AND state = 'pending'`).run(values)
  db.prepare(`DELETE FROM run_waits WHERE run_seq IN (${groups})`).run(values)
  const deleted = performance.now()
  const { changes } = db.prepare(`UPDATE runs SET state = 'RUN_CANCELED', finished_at = @to WHERE ${WHERE}`).run(values)
  const ended = performance.now()
  db.close()
  if (changes !== count) throw new Error(`${changes} rows were updated instead of ${count}`)
  return { updateMs: ended - deleted, deleteMs: deleted - started }
}
