import { sql } from 'kysely'
import { all, change, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'

interface SweepQuery {
  after: number
  limit: number
}

/** The next messages by number, whatever their state: a sweep walks over all of them in steps of one size. */
const nextSeqs = query<SweepQuery, { seq: number; created_at: number; finished_at: number | null }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'created_at', 'finished_at'])
    .where('seq', '>', p.after)
    .orderBy('seq')
    .limit(p.limit),
)

const remove = query<{ seqs: readonly number[]; finishedBefore: number }>(({ db, p, d }) =>
  db.deleteFrom('messages').where(d.inNumbers('seq', p.seqs)).where('finished_at', '<', p.finishedBefore),
)

const removeKeys = query<{ now: number }>(({ db, p }) => db.deleteFrom('message_keys').where('expires_at', '<=', p.now))

/** Where a sweep stands and what it deletes. */
export interface SweepArgs {
  /** Number of the last message that the step before has looked at; 0 at first. */
  readonly after: number
  readonly finishedBefore: number
  readonly now: number
  readonly limit: number
}

/**
 * One step of a sweep: deletes what ended long enough ago, of the next messages by number. Answers the number to go on
 * after, or `undefined` when the rest is too young.
 */
export const sweep = write('messages.sweep', function* (args: SweepArgs): Transaction<number | undefined> {
  if (args.after === 0) yield* change(removeKeys, { now: args.now })
  const { after, finishedBefore, limit } = args
  const rows = yield* all(nextSeqs, { after, limit })
  const old = rows.filter((row) => row.finished_at !== null && row.finished_at < finishedBefore)
  if (old.length > 0) yield* change(remove, { seqs: old.map((row) => row.seq), finishedBefore })
  const last = rows.at(-1)
  // Numbers grow with time: what comes after a young message is young too.
  return last && rows.length === limit && last.created_at < finishedBefore ? last.seq : undefined
})

/** Where a look at sizes stands: items before a number are next, and this many bytes may still be kept. */
export interface BudgetStep {
  readonly before: number
  readonly leftBytes: number
  /** How many items are looked at. */
  readonly limit: number
}

/** What a step came to: the number of the newest item that does not fit any more, where to go on, or that all fits. */
export type BudgetPart =
  | { readonly kind: 'beyond'; readonly seq: number }
  | { readonly kind: 'more'; readonly before: number; readonly leftBytes: number }
  | { readonly kind: 'fits' }

/** Takes sizes, newest first, off what is left. Done where the rows are read: of millions only this needs to travel. */
export function takeOff(
  rows: readonly { readonly seq: number; readonly bytes: number }[],
  { leftBytes, limit }: BudgetStep,
): BudgetPart {
  let left = leftBytes
  for (const { seq, bytes } of rows) {
    // A sum is a decimal number in PostgreSQL.
    left -= Number(bytes)
    if (left < 0) return { kind: 'beyond', seq }
  }
  const last = rows.at(-1)
  return last && rows.length === limit ? { kind: 'more', before: last.seq, leftBytes: left } : { kind: 'fits' }
}

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
