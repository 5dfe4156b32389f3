import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Place } from '../support/index.js'
import type { QueueLedger } from './queue-ledger.js'

/** A message as the store ended up with it. */
export interface StoredMessage {
  readonly message_id: string
  readonly state: 'held' | 'pending' | 'delivered' | 'failed' | 'canceled'
  readonly schedule_id: string | null
}

/** Where a server keeps its data. */
type DataPlace = Pick<Place, 'dataDir'>

const fileOf = (place: DataPlace): string => join(place.dataDir, 'homeport.sqlite')

function withStore<Result>(
  place: DataPlace,
  access: 'read' | 'write',
  work: (db: Database.Database) => Result,
): Result {
  const db = new Database(fileOf(place), { readonly: access === 'read', timeout: 5_000 })
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** Every message in the store of a server, running or not. */
export function storedMessages(place: DataPlace): StoredMessage[] {
  return withStore(
    place,
    'read',
    (db) => db.prepare('SELECT message_id, state, schedule_id FROM messages').all() as StoredMessage[],
  )
}

/**
 * How many runs of a workflow there are, by state; `dead`: failed ones that can still be taken up; `calling`: those whose
 * failure function is being called.
 */
export interface RunCounts {
  readonly started: number
  readonly failed: number
  readonly dead: number
  readonly succeeded: number
  readonly calling: number
}

/** Counts the runs of the workflow at a path. */
export function countRuns(place: DataPlace, path: string): RunCounts {
  const of = (state: string): string => `coalesce(sum(state = '${state}'), 0)`
  const sql = `SELECT ${of('RUN_STARTED')} AS started, ${of('RUN_FAILED')} AS failed,
    count(dlq_id) AS dead, ${of('RUN_SUCCESS')} AS succeeded,
    coalesce(sum(failure_state = 'CALLBACK_INPROGRESS'), 0) AS calling FROM runs WHERE path = ?`
  return withStore(place, 'read', (db) => db.prepare(sql).get(path) as RunCounts)
}

/** The ids of all runs in a state. */
export function runsInState(place: DataPlace, state: string): ReadonlySet<string> {
  const sql = 'SELECT run_id FROM runs WHERE state = ?'
  return withStore(place, 'read', (db) => new Set(db.prepare(sql).pluck().all(state) as string[]))
}

/** How many messages wait for a turn, or for a time within the next hour. */
export function unfinishedSoon(place: Place): number {
  const sql = "SELECT count(*) AS n FROM messages WHERE state = 'held' OR (state = 'pending' AND next_at < ?)"
  return withStore(place, 'read', (db) => (db.prepare(sql).get(Date.now() + 3_600_000) as { n: number }).n)
}

/** How many schedules have yet to make the fire that was planned for them. */
export function unfired(place: Place): number {
  const sql = 'SELECT count(*) AS n FROM schedules WHERE next_at < ?'
  return withStore(place, 'read', (db) => (db.prepare(sql).get(Date.now() + 3_600_000) as { n: number }).n)
}

/**
 * Sets the next fires of schedules to moments of the life that is about to begin. The server must not run. A schedule
 * whose fire of the life before was cut off keeps it.
 */
export function planFires(place: Place, ledger: QueueLedger, withinMs: number, random: () => number): void {
  withStore(place, 'write', (db) => {
    const change = db.prepare('UPDATE schedules SET next_at = ? WHERE schedule_id = ? AND next_at > ?')
    const now = Date.now()
    for (const [scheduleId, fires] of ledger.fires) {
      const at = Math.round(now + random() * withinMs)
      if (change.run(at, scheduleId, now + 3_600_000).changes === 1) ledger.fires.set(scheduleId, fires + 1)
    }
  })
}

/** Takes a message out of the store behind the server's back, as if its commit had never reached the disk. */
export function loseMessage(place: DataPlace, messageId: string): void {
  withStore(place, 'write', (db) => db.prepare('DELETE FROM messages WHERE message_id = ?').run(messageId))
}
