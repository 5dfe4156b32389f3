import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, type Transaction } from '../../store/statement.js'

/** Few actions per transaction, because an action over a million runs has hundreds of chunks. */
const ACTIONS_PER_STEP = 5

interface OldQuery {
  after: number
  finishedBefore: number
  now: number
  limit: number
}

/** Actions that ended before a time and have no fence in force. */
const oldActions = query<OldQuery, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select('seq')
    .where('seq', '>', p.after)
    .where('finished_at', '<', p.finishedBefore)
    .where((eb) => eb.or([eb('fence_until', 'is', null), eb('fence_until', '<=', p.now)]))
    .orderBy('seq')
    .limit(p.limit),
)
const removeChunks = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('bulk_chunks').where(d.inNumbers('action_seq', p.seqs)),
)
const removeActions = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('bulk_actions').where(d.inNumbers('seq', p.seqs)),
)

/** Position of a sweep, and what it deletes. */
export interface SweepActionsArgs {
  /** `bulk_actions.seq` of the last action that the previous step deleted; 0 at first. */
  readonly after: number
  readonly finishedBefore: number
  /** Unix milliseconds. */
  readonly now: number
}

/** Deletes the next few old actions. @returns where to continue, or `undefined` at the end. */
export const sweepActions = write(
  'bulk.sweep',
  function* ({ after, finishedBefore, now }: SweepActionsArgs): Transaction<number | undefined> {
    const rows = yield* all(oldActions, { after, finishedBefore, now, limit: ACTIONS_PER_STEP })
    const seqs = rows.map((row) => row.seq)
    if (seqs.length === 0) return undefined
    yield* change(removeChunks, { seqs })
    yield* change(removeActions, { seqs })
    return rows.length === ACTIONS_PER_STEP ? seqs.at(-1) : undefined
  },
)
