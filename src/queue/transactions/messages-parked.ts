import { type RawBuilder, sql } from 'kysely'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { isPending, PENDING_COLUMNS, type PendingRow, partitionColumn } from './messages.js'

/**
 * Parked messages are pending messages that are not sent until the module that parked them resumes them. Parking adds a
 * large constant to the due time, so that no load reaches them and they cost the dispatcher nothing. Subtracting the
 * constant gives the original due time. The outcome of a request in flight is settled as usual.
 */

/** Added to the due time of a parked message, milliseconds. The sum is a safe integer and a valid date. */
const PARKED_MS = 4_000_000_000_000_000

/** Whether a message with this due time is parked. */
export const isParkedTime = (nextAt: number): boolean => nextAt >= PARKED_MS

/** The condition that a message is parked. */
export const isParked = sql<boolean>`next_at >= ${sql.lit(PARKED_MS)}`

/** The due time of a message, parked or not. Unix milliseconds. */
export const dueTime = (nextAt: number): number => (isParkedTime(nextAt) ? nextAt - PARKED_MS : nextAt)

/** `next_at` of a parked message that is due at this time. */
export const parkedUntil = (dueAt: number): number => (isParkedTime(dueAt) ? dueAt : dueAt + PARKED_MS)

/** The `next_at` for another due time: parked if `nextAt` is. */
export const movedTo = (dueAt: number, nextAt: number): number => (isParkedTime(nextAt) ? parkedUntil(dueAt) : dueAt)

/** `movedTo` as an SQL expression over the row. */
export const movedToSql = (dueAt: number): RawBuilder<number> =>
  sql<number>`case when ${isParked} then ${dueAt} + ${sql.lit(PARKED_MS)} else ${dueAt} end`

/**
 * `created_at` of a message whose due time changes. For a parked message it becomes the time of the change, so that resuming
 * with `heldSince` moves the due time only by the pause after the change.
 */
export const madeAtSql = (at: number): RawBuilder<number> =>
  sql<number>`case when ${isParked} then ${at} else created_at end`

const park = query<{ groups: readonly number[] }, { seq: number }>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({ next_at: sql<number>`next_at + ${sql.lit(PARKED_MS)}` })
    .where(d.inNumbers('group_key', p.groups))
    .where(isPending)
    .where(sql<boolean>`not (${isParked})`)
    .returning('seq'),
)

/** Parks the pending messages of groups. After the commit the caller drops them, with `inFlight: 'ends'`. */
export function* parkGroups(groups: readonly number[]): Transaction<void> {
  if (groups.length > 0) yield* all(park, { groups })
}

/** How parked messages become due again. */
export interface Unparking {
  readonly groups: readonly number[]
  /**
   * When the pause began, not after `at`. Due times move later by the time since
   * then, or since `created_at` if that is later.
   */
  readonly heldSince?: number | undefined
  /** Unix milliseconds. */
  readonly at: number
}

const unpark = query<{ groups: readonly number[]; heldSince: number; at: number }, PendingRow>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({
      next_at: sql<number>`next_at - ${sql.lit(PARKED_MS)} + ${p.at} - case
        when created_at > ${p.at} then ${p.at} when created_at > ${p.heldSince} then created_at else ${p.heldSince} end`,
    })
    .where(d.inNumbers('group_key', p.groups))
    .where(isPending)
    .where(isParked)
    .returning(PENDING_COLUMNS)
    .returning(partitionColumn(d))
    .returning((q) => ['body', q.lit(0).as('body_bytes')]),
)
const unparkAsDue = query<{ groups: readonly number[] }, PendingRow>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({ next_at: sql<number>`next_at - ${sql.lit(PARKED_MS)}` })
    .where(d.inNumbers('group_key', p.groups))
    .where(isPending)
    .where(isParked)
    .returning(PENDING_COLUMNS)
    .returning(partitionColumn(d))
    .returning((q) => ['body', q.lit(0).as('body_bytes')]),
)

/**
 * Makes the parked messages of groups, which have no bodies, due again. @returns
 * the rows for `queue.offer` with `isAgain`.
 */
export function* unparkGroups({ groups, heldSince, at }: Unparking): Transaction<PendingRow[]> {
  if (groups.length === 0) return []
  return heldSince === undefined ? yield* all(unparkAsDue, { groups }) : yield* all(unpark, { groups, heldSince, at })
}
