import { join } from 'node:path'
import pg from 'pg'
import { openSqlite } from '../../src/base/index.js'
import { waitFor } from '../support/index.js'
import type { QueueLedger } from './queue-ledger.js'

/** A message in the store. */
export interface StoredMessage {
  readonly message_id: string
  readonly state: 'held' | 'pending' | 'delivered' | 'failed' | 'canceled'
  readonly schedule_id: string | null
}

/** Where a server keeps its data: SQLite in its data directory, or PostgreSQL at the URL `store`. */
export interface StorePlace {
  readonly dataDir: string
  readonly store?: string | undefined
}

type Values = readonly (string | number)[]

/** A direct connection to a store, without the server. Statements have `?` for each value. */
interface StoreAccess {
  rows<Row>(sql: string, values?: Values): Promise<Row[]>
  /** Returns the number of changed rows. */
  change(sql: string, values?: Values): Promise<number>
}

const BUSY_TIMEOUT_MS = 5_000

/** Opens a connection to a store for some work. */
export async function withStore<Result>(
  place: StorePlace,
  work: (access: StoreAccess) => Promise<Result>,
): Promise<Result> {
  return place.store === undefined ? withSqlite(place.dataDir, work) : withPostgres(place.store, work)
}

async function withSqlite<Result>(dataDir: string, work: (access: StoreAccess) => Promise<Result>): Promise<Result> {
  const db = openSqlite(join(dataDir, 'homeport.sqlite'), { mustExist: true, busyTimeoutMs: BUSY_TIMEOUT_MS })
  try {
    return await work({
      rows: async <Row>(sql: string, values: Values = []) => db.prepare(sql).all(...values) as Row[],
      change: async (sql, values = []) => db.prepare(sql).run(...values).changes,
    })
  } finally {
    db.close()
  }
}

/** Connects to a PostgreSQL that may be starting, or recovering from a kill. The caller ends the connection. */
export async function connectToPostgres(url: string): Promise<pg.Client> {
  const attempt = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url })
    // When the server ends, its connections fail. The running statement reports that.
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  return await waitFor(attempt, { what: 'PostgreSQL to take connections', deadlineMs: 60_000, everyMs: 50 })
}

async function withPostgres<Result>(url: string, work: (access: StoreAccess) => Promise<Result>): Promise<Result> {
  const client = await connectToPostgres(url)
  const query = (sql: string, values: Values = []) => {
    let place = 0
    return client.query(
      sql.replaceAll('?', () => `$${++place}`),
      [...values],
    )
  }
  try {
    return await work({
      rows: async <Row>(sql: string, values?: Values) => (await query(sql, values)).rows as Row[],
      change: async (sql, values) => (await query(sql, values)).rowCount ?? 0,
    })
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Every message in the store of a server, running or not. */
export function storedMessages(place: StorePlace): Promise<StoredMessage[]> {
  return withStore(place, (access) => access.rows('SELECT message_id, state, schedule_id FROM messages'))
}

/**
 * How many runs of a workflow there are, by state; `dead`: failed ones that can still be resumed or restarted;
 * `calling`: those whose failure function is being called.
 */
export interface RunCounts {
  readonly started: number
  readonly failed: number
  readonly dead: number
  readonly succeeded: number
  readonly calling: number
}

/** Counts the runs of the workflow at a path. */
export async function countRuns(place: StorePlace, path: string): Promise<RunCounts> {
  const of = (condition: string): string => `count(CASE WHEN ${condition} THEN 1 END)`
  const sql = `SELECT ${of("state = 'RUN_STARTED'")} AS started, ${of("state = 'RUN_FAILED'")} AS failed,
    count(dlq_id) AS dead, ${of("state = 'RUN_SUCCESS'")} AS succeeded,
    ${of("failure_state = 'CALLBACK_INPROGRESS'")} AS calling FROM runs WHERE path = ?`
  const [row] = await withStore(place, (access) => access.rows<Record<keyof RunCounts, string | number>>(sql, [path]))
  const number = (name: keyof RunCounts): number => Number(row?.[name] ?? 0)
  return {
    started: number('started'),
    failed: number('failed'),
    dead: number('dead'),
    succeeded: number('succeeded'),
    calling: number('calling'),
  }
}

/** The ids of all runs in a state. */
export async function runsInState(place: StorePlace, state: string): Promise<ReadonlySet<string>> {
  const sql = 'SELECT run_id FROM runs WHERE state = ?'
  const rows = await withStore(place, (access) => access.rows<{ run_id: string }>(sql, [state]))
  return new Set(rows.map(({ run_id }) => run_id))
}

async function count(place: StorePlace, sql: string, values: Values): Promise<number> {
  const [row] = await withStore(place, (access) => access.rows<{ n: string | number }>(sql, values))
  return Number(row?.n ?? 0)
}

/** How many messages wait for a turn, or for a time within the next hour. */
export function unfinishedSoon(place: StorePlace): Promise<number> {
  const sql = "SELECT count(*) AS n FROM messages WHERE state = 'held' OR (state = 'pending' AND next_at < ?)"
  return count(place, sql, [Date.now() + 3_600_000])
}

/** How many schedules have not yet fired as planned. */
export function unfired(place: StorePlace): Promise<number> {
  return count(place, 'SELECT count(*) AS n FROM schedules WHERE next_at < ?', [Date.now() + 3_600_000])
}

/** The oldest messages that have not ended, and who owns their partitions: for people, when a test fails. */
export async function describeUnfinished(place: StorePlace): Promise<string> {
  const sql = `SELECT m.kind, m.state, m.url, m.flow_key, m.queue, m.retried, m.partition, p.owner,
      m.next_at - ? AS "dueInMs", ? - m.created_at AS "ageMs"
    FROM messages m LEFT JOIN partitions p ON p.partition = m.partition
    WHERE m.state = 'held' OR (m.state = 'pending' AND m.next_at < ?) ORDER BY m.seq LIMIT 8`
  const now = Date.now()
  const left = await withStore(place, (access) => access.rows(sql, [now, now, now + 3_600_000]))
  return `${await unfinishedSoon(place)} messages, ${await unfired(place)} schedules: ${JSON.stringify(left)}`
}

/**
 * Sets the next fire times of schedules to moments of the next life. The server must not run. A schedule that did not
 * fire in the previous life keeps its time.
 */
export async function planFires(
  place: StorePlace,
  ledger: QueueLedger,
  withinMs: number,
  random: () => number,
): Promise<void> {
  await withStore(place, async (access) => {
    const sql = 'UPDATE schedules SET next_at = ? WHERE schedule_id = ? AND next_at > ?'
    const now = Date.now()
    for (const [scheduleId, fires] of ledger.fires) {
      const at = Math.round(now + random() * withinMs)
      const changed = await access.change(sql, [at, scheduleId, now + 3_600_000])
      if (changed === 1) ledger.fires.set(scheduleId, fires + 1)
    }
  })
}

/** Deletes a message from the store directly, as if its commit had never reached the disk. */
export async function loseMessage(place: StorePlace, messageId: string): Promise<void> {
  await withStore(place, (access) => access.change('DELETE FROM messages WHERE message_id = ?', [messageId]))
}

/** How many published messages are dead letters, and how many have not ended; notifications of alerts do not count. */
export async function deadMessages(place: StorePlace): Promise<{ dead: number; pending: number }> {
  const of = "kind = 'http' AND schedule_id IS NULL AND config NOT LIKE '%\"x-alert\":%'"
  const [row] = await withStore(place, (access) =>
    access.rows<{ dead: number; pending: number }>(
      `SELECT (SELECT COUNT(*) FROM messages WHERE dlq_id IS NOT NULL AND ${of}) AS dead,
        (SELECT COUNT(*) FROM messages WHERE state IN ('held', 'pending') AND ${of}) AS pending`,
    ),
  )
  return { dead: Number(row?.dead), pending: Number(row?.pending) }
}
