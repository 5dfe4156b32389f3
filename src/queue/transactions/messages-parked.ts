import { type RawBuilder, sql } from 'kysely'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { isPending, PENDING_COLUMNS, type PendingRow, partitionColumn } from './messages.js'

/**
 * Parked messages: pending ones that are not sent until their owner says so. They are due so far in the future that no load
 * reaches them, which costs the dispatcher nothing however many there are. Their own due time is kept in the difference, and
 * the outcome of a request in flight is settled as usual.
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

/** Another due time for a message which stays parked if it is. */
export const movedTo = (dueAt: number, nextAt: number): number => (isParkedTime(nextAt) ? parkedUntil(dueAt) : dueAt)

/** The same as an SQL expression over the row. */
export const movedToSql = (dueAt: number): RawBuilder<number> =>
  sql<number>`case when ${isParked} then ${dueAt} + ${sql.lit(PARKED_MS)} else ${dueAt} end`

/**
 * `created_at` of a message whose due time changes: of a parked one, the time of the change, so that a pause that holds the clock
 * holds only what is left of it.
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
  /** Not after `at`. Due times move later by the time since then, or since the message was made if that was later. */
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

/** Makes the parked messages of groups, which have no bodies, due again. @returns them, for `queue.offer` as offered again. */
export function* unparkGroups({ groups, heldSince, at }: Unparking): Transaction<PendingRow[]> {
  if (groups.length === 0) return []
  return heldSince === undefined ? yield* all(unparkAsDue, { groups }) : yield* all(unpark, { groups, heldSince, at })
}
