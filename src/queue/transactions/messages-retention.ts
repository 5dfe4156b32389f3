import { all, change, type Transaction, write } from '../../store/operation.js'
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
