import { all, change, type Transaction, write } from '../operation.js'
import { query } from '../query.js'
import { deletePendingOfGroups, type PendingRow } from './messages.js'
import { type EndedChild, tellParents } from './runs-parents.js'

/** Which runs to cancel, and when that is. */
export interface CancelRunsArgs {
  /** `runs.seq`; unknown ones are passed over. */
  readonly seqs: readonly number[]
  /** Unix milliseconds. */
  readonly at: number
  /** The bulk action that cancels, as `bulk_actions.seq`. Absent: none. */
  readonly by?: number
}

interface CancelQuery {
  seqs: readonly number[]
  at: number
  by: number | null
}

/** What a cancellation did. */
export interface CanceledRuns {
  /** The runs that this very call moved to `RUN_CANCELED`. The others had ended before, or do not exist. */
  readonly canceled: readonly number[]
  /** New messages to hand to `queue.offer` after the commit: they tell runs that invoked a canceled one. */
  readonly offers: readonly PendingRow[]
}

const cancelStarted = query<CancelQuery, EndedChild & { seq: number }>(({ db, p, d }) =>
  db
    .updateTable('runs')
    .set({ state: 'RUN_CANCELED', finished_at: p.at, canceled_by: p.by })
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', 'RUN_STARTED')
    .returning(['seq', 'parent_seq', 'parent']),
)
const dropWaits = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('run_waits').where(d.inNumbers('run_seq', p.seqs)),
)

/** Deletes what runs wait for, as part of another transaction. */
export function* dropWaitsOf(seqs: readonly number[]): Transaction<void> {
  if (seqs.length > 0) yield* change(dropWaits, { seqs })
}

/**
 * Cancels runs for ever: their pending messages and waits are gone, runs that invoked them learn of it. All of it is
 * set-based, so thousands of runs may come in one call. After the commit the caller hands `canceled` to
 * `queue.drop({ groupKeys })` and then `offers` to `queue.offer`.
 */
export const cancelRuns = write('runs.cancel', function* (args: CancelRunsArgs): Transaction<CanceledRuns> {
  const ended = yield* all(cancelStarted, { ...args, by: args.by ?? null })
  const canceled = ended.map((run) => run.seq)
  yield* deletePendingOfGroups(canceled)
  yield* dropWaitsOf(canceled)
  return { canceled, offers: yield* tellParents(ended, { isCanceled: true, isFailed: false }, args.at) }
})
