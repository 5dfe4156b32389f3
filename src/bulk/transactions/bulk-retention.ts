import { all, change, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'

/** An action over a million runs has a thousand chunks: so few actions go in one transaction. */
const ACTIONS_A_STEP = 5

interface OldQuery {
  after: number
  finishedBefore: number
  now: number
  limit: number
}

/** Actions that ended long enough ago; one whose fence still stands is kept. */
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

/** Where a sweep stands and what it deletes. */
export interface SweepActionsArgs {
  /** `bulk_actions.seq` of the last action that the step before has deleted; 0 at first. */
  readonly after: number
  readonly finishedBefore: number
  /** Unix milliseconds. */
  readonly now: number
}

/** One step of a sweep: deletes the next few old actions. Answers where to go on, or `undefined` at the end. */
export const sweepActions = write(
  'bulk.sweep',
  function* ({ after, finishedBefore, now }: SweepActionsArgs): Transaction<number | undefined> {
    const rows = yield* all(oldActions, { after, finishedBefore, now, limit: ACTIONS_A_STEP })
    const seqs = rows.map((row) => row.seq)
    if (seqs.length === 0) return undefined
    yield* change(removeChunks, { seqs })
    yield* change(removeActions, { seqs })
    return rows.length === ACTIONS_A_STEP ? seqs.at(-1) : undefined
  },
)
