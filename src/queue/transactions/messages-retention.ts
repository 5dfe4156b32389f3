import { sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, type Transaction } from '../../store/statement.js'

interface SweepQuery {
  after: number
  limit: number
}

/** The next messages by number, in any state. A sweep walks all of them in steps of equal size. */
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

const expiryAhead = query<{ now: number; ahead: number }, { at: number }>(({ db, p }) =>
  db
    .selectFrom('message_keys')
    .select('expires_at as at')
    .where('expires_at', '<=', p.now)
    .orderBy('expires_at')
    .offset(p.ahead)
    .limit(1),
)
const removeKeys = query<{ upTo: number }>(({ db, p }) =>
  db.deleteFrom('message_keys').where('expires_at', '<=', p.upTo),
)

/** Deletes about `limit` of the deduplication keys that expired first. Returns whether there may be more. */
export const removeExpiredKeys = write(
  'messages.removeExpiredKeys',
  function* ({ now, limit }: { now: number; limit: number }): Transaction<boolean> {
    const last = yield* first(expiryAhead, { now, ahead: limit - 1 })
    yield* change(removeKeys, { upTo: last?.at ?? now })
    return last !== undefined
  },
  { turn: 'background' },
)

/** One step of a sweep. */
export interface SweepArgs {
  /** Number of the last message that the previous step scanned; 0 for the first step. */
  readonly after: number
  readonly finishedBefore: number
  readonly now: number
  readonly limit: number
}

/**
 * One step of a sweep: scans the next messages by number and deletes those that ended long enough ago. Returns the
 * number of the next step, or `undefined` when the rest is too young.
 */
export const sweep = write('messages.sweep', function* (args: SweepArgs): Transaction<number | undefined> {
  const { after, finishedBefore, limit } = args
  const rows = yield* all(nextSeqs, { after, limit })
  const old = rows.filter((row) => row.finished_at !== null && row.finished_at < finishedBefore)
  if (old.length > 0) yield* change(remove, { seqs: old.map((row) => row.seq), finishedBefore })
  const last = rows.at(-1)
  return last && rows.length === limit && !isYoung(last.created_at, args) ? last.seq : undefined
})

/**
 * Whether an item is too young to be deleted. Numbers grow with time, so all items after it are too young as well. An
 * item from the future was stored by a wrong clock and says nothing about the items after it.
 */
export const isYoung = (at: number, { finishedBefore, now }: Pick<SweepArgs, 'finishedBefore' | 'now'>): boolean =>
  at >= finishedBefore && at <= now

/** Position of a size measurement: items before this number are next, and this many bytes may still be kept. */
export interface BudgetStep {
  readonly before: number
  readonly leftBytes: number
  /** Items measured in one step. */
  readonly limit: number
}

/** Result of one step: the newest item that does not fit, where the next step starts, or that everything fits. */
export type BudgetResult =
  | { readonly kind: 'beyond'; readonly seq: number }
  | { readonly kind: 'more'; readonly before: number; readonly leftBytes: number }
  | { readonly kind: 'fits' }

/**
 * Subtracts sizes, newest first, from the bytes left. Runs where the rows are read, so that only the result crosses
 * threads.
 */
export function measureAgainst(
  rows: readonly { readonly seq: number; readonly bytes: number }[],
  { leftBytes, limit }: BudgetStep,
): BudgetResult {
  let left = leftBytes
  for (const { seq, bytes } of rows) {
    // PostgreSQL returns a sum as a decimal string.
    left -= Number(bytes)
    if (left < 0) return { kind: 'beyond', seq }
  }
  const last = rows.at(-1)
  return last && rows.length === limit ? { kind: 'more', before: last.seq, leftBytes: left } : { kind: 'fits' }
}

/**
 * Retention by size: the newest ended messages that fit are kept, and older ones are deleted. Only content counts, not
 * indexes or free space in the database file.
 */

/** Bytes of a row besides its texts and blobs. */
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

/** Measures the next older messages before a number. Messages that have not ended count 0 bytes. */
export const measure = read('messages.measure', function* (step: BudgetStep): Transaction<BudgetResult> {
  const { before, limit } = step
  return measureAgainst(yield* all(newestBefore, { before, limit }), step)
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
 * One step of a trim: deletes ended messages after one number and up to another, oldest first. Returns the number of
 * the next step, or `undefined` at the end.
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
