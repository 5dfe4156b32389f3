import { sql } from 'kysely'
import { deletePendingOfGroups, type PendingRow } from '../../queue/transactions/messages.js'
import { all, change, first, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { keepAttemptsOfRuns } from './runs-attempts.js'
import { type EndedChild, notifyParents } from './runs-parents.js'

/** Which runs to cancel, and when that is. */
export interface CancelRunsArgs {
  /** `runs.seq`; unknown ones are passed over. */
  readonly seqs: readonly number[]
  /** Unix milliseconds. */
  readonly at: number
}

/** What a cancellation did. */
export interface CancelledRuns {
  /** The runs that this very call moved to `RUN_CANCELED`. The others had ended before, or do not exist. */
  readonly cancelled: readonly number[]
  /** New messages to hand to `queue.offer` after the commit: they tell runs that invoked a cancelled one. */
  readonly offers: readonly PendingRow[]
}

interface Seqs {
  readonly seqs: readonly number[]
}

const cancelStarted = query<CancelRunsArgs, EndedChild & { seq: number }>(({ db, p, d }) =>
  db
    .updateTable('runs')
    .set({ state: 'RUN_CANCELED', finished_at: p.at })
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('RUN_STARTED'))
    .returning(['seq', 'parent_seq', 'parent']),
)
const cancelStartedBy = query<CancelRunsArgs & { by: number }>(({ db, p, d }) =>
  db
    .updateTable('runs')
    .set({ state: 'RUN_CANCELED', finished_at: p.at, canceled_by: p.by })
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('RUN_STARTED')),
)
const canceledBy = query<Seqs & { by: number }, { seq: number }>(({ db, p, d }) =>
  db.selectFrom('runs').select('seq').where(d.inNumbers('seq', p.seqs)).where('canceled_by', '=', p.by),
)
const childrenAmong = query<Seqs, EndedChild>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['parent_seq', 'parent'])
    .where(d.inNumbers('seq', p.seqs))
    .where('parent_seq', 'is not', null),
)
/** Answered by the index of children alone. */
const someChild = query<object, { parent_seq: number | null }>(({ db }) =>
  db.selectFrom('runs').select('parent_seq').where('parent_seq', 'is not', null).limit(1),
)
const dropWaits = query<Seqs>(({ db, p, d }) => db.deleteFrom('run_waits').where(d.inNumbers('run_seq', p.seqs)))

/** Deletes what runs wait for, as part of another transaction. */
export function* dropWaitsOf(seqs: readonly number[]): Transaction<void> {
  if (seqs.length > 0) yield* change(dropWaits, { seqs })
}

/**
 * Cancels runs forever: their pending messages and waits are gone, what had failed of them before is kept for the logs,
 * and runs that invoked them learn of it. After the commit the caller hands `canceled` to `queue.drop({ groupKeys })` and
 * then `offers` to `queue.offer`.
 */
export const cancelRuns = write('runs.cancel', function* (args: CancelRunsArgs): Transaction<CancelledRuns> {
  const ended = yield* all(cancelStarted, args)
  const cancelled = ended.map((run) => run.seq)
  return yield* cleanUp(cancelled, ended, args.at)
})

/**
 * The same as part of a bulk action, for thousands of runs in one call. A list of what an UPDATE has changed costs half as
 * much again as the UPDATE, and most often it has changed all of them.
 * @param by the action, as `bulk_actions.seq`; it has cancelled none of these runs before.
 */
export function* cancelRunsFor(by: number, { seqs, at }: CancelRunsArgs): Transaction<CancelledRuns> {
  const changed = yield* change(cancelStartedBy, { seqs, at, by })
  const cancelled = changed === seqs.length ? seqs : (yield* all(canceledBy, { seqs, by })).map((run) => run.seq)
  return yield* cleanUp(cancelled, yield* childrenOf(cancelled), at)
}

/** Those of the runs that others have invoked. In a store without any, not every run is looked at for it. */
function* childrenOf(seqs: readonly number[]): Transaction<EndedChild[]> {
  const isThereAny = (yield* first(someChild, {})) !== undefined
  return isThereAny ? yield* all(childrenAmong, { seqs }) : []
}

/** Takes away what cancelled runs have left, and tells their parents. */
function* cleanUp(cancelled: readonly number[], ended: readonly EndedChild[], at: number): Transaction<CancelledRuns> {
  yield* keepAttemptsOfRuns(cancelled)
  yield* deletePendingOfGroups(cancelled)
  yield* dropWaitsOf(cancelled)
  return { cancelled, offers: yield* notifyParents(ended, { isCanceled: true, isFailed: false }, at) }
}
