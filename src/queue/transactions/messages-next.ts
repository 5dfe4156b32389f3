import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { first, type Transaction } from '../../store/statement.js'
import { isParked } from './messages-parked.js'

const earliest = query<{ now: number }, { next_at: number | null }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select((q) => q.fn.min('next_at').as('next_at'))
    .where(sql<boolean>`state = 'pending'`)
    .where('next_at', '>', p.now)
    .where(sql<boolean>`not (${isParked})`),
)

/** When the first message after now is due, Unix milliseconds; `Infinity` when none is. */
export const dueAfter = read('messagesNext.dueAfter', function* (args: { now: number }): Transaction<number> {
  return (yield* first(earliest, args))?.next_at ?? Number.POSITIVE_INFINITY
})
