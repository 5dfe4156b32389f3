import { sql } from 'kysely'
import { all, change, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { type BudgetPart, type BudgetStep, takeOff } from './budget.js'

/**
 * Retention by size: the newest finished messages are kept, as many as fit, and older ones deleted. Sizes are those of
 * the contents; indexes and the free space of the database file come on top.
 */

/** What a row takes besides its texts and bytes. */
const ROW_BYTES = 300

const bytesOf = (column: string) => sql<number>`coalesce(octet_length(${sql.ref(column)}), 0)`

const ofAttempts = sql<number>`(
  select coalesce(sum(${sql.lit(ROW_BYTES)} + ${bytesOf('a.headers')} + ${bytesOf('a.body')}), 0)
  from message_attempts as a where a.message_seq = messages.seq)`

const size = sql<number>`case when finished_at is null then 0 else ${sql.lit(ROW_BYTES)} + ${bytesOf('url')}
  + ${bytesOf('messages.headers')} + ${bytesOf('config')} + ${bytesOf('messages.body')} + ${bytesOf('response_headers')}
  + ${bytesOf('response_body')} + ${ofAttempts} end`

const newestBefore = query<{ before: number; limit: number }, { seq: number; bytes: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['seq', size.as('bytes')])
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .limit(p.limit),
)

/** Measures the next older messages before a number; what has not finished takes nothing. */
export const measure = read('messages.measure', function* (step: BudgetStep): Transaction<BudgetPart> {
  const { before, limit } = step
  return takeOff(yield* all(newestBefore, { before, limit }), step)
})

const oldest = query<{ after: number; upTo: number; limit: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select('seq')
    .where('seq', '>', p.after)
    .where('seq', '<=', p.upTo)
    .orderBy('seq')
    .limit(p.limit),
)

const removeFinished = query<{ after: number; upTo: number }>(({ db, p }) =>
  db.deleteFrom('messages').where('seq', '>', p.after).where('seq', '<=', p.upTo).where('finished_at', 'is not', null),
)

/**
 * One step of a trim: deletes what has finished of the oldest messages after a number and up to another. Answers the
 * number to go on after, or `undefined` at the end.
 */
export const trim = write(
  'messages.trim',
  function* (args: { after: number; upTo: number; limit: number }): Transaction<number | undefined> {
    const seqs = yield* all(oldest, args)
    const last = seqs.at(-1)?.seq
    if (last === undefined) return undefined
    yield* change(removeFinished, { after: args.after, upTo: last })
    return seqs.length === args.limit ? last : undefined
  },
)
