import { type RawBuilder, sql } from 'kysely'
import { askDeletePendingOfGroups, deletePendingOfGroups, type PendingRow } from '../../queue/transactions/messages.js'
import { write } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { type Ask, all, askAll, askChange, atOnce, change, type Transaction } from '../../store/statement.js'
import { askAttemptsToKeep, keepAttemptsOfRuns } from './runs-attempts.js'
import { askToKeep } from './runs-kept.js'
import { type EndedChild, notifyParents } from './runs-parents.js'

/** The runs to cancel, and the time. */
export interface CancelRunsArgs {
  /** `runs.seq`; unknown ones are ignored. */
  readonly seqs: readonly number[]
  /** Unix milliseconds. */
  readonly at: number
}

/** Outcome of a cancel. */
export interface CancelledRuns {
  /** The runs that this call cancelled. The others had ended before, or do not exist. */
  readonly cancelled: readonly number[]
  /** New messages for `queue.offer` after the commit: they notify the runs that invoked a cancelled one. */
  readonly offers: readonly PendingRow[]
}

interface EndedRun extends EndedChild {
  readonly seq: number
  readonly account_id: string
}

interface Seqs {
  readonly seqs: readonly number[]
}

/**
 * Selects the active runs of the call. On PostgreSQL it locks them in the order of docs/store.md before any of them is
 * changed; on SQLite this extra read would be useless.
 */
function activeAmong({ db, p, d }: Building<Seqs>): RawBuilder<boolean> {
  const active = db
    .selectFrom('runs')
    .select('seq')
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('RUN_STARTED'))
    .orderBy('seq', 'desc')
  return d.name === 'sqlite' ? d.inSharedNumbers('seq', p.seqs) : d.inLocked('seq', d.forUpdate(active))
}

const cancelStarted = query<CancelRunsArgs, EndedRun>((building) =>
  building.db
    .updateTable('runs')
    .set({ state: 'RUN_CANCELED', finished_at: building.p.at })
    .where(activeAmong(building))
    .where('state', '=', sql.lit('RUN_STARTED'))
    .returning(['seq', 'account_id', 'parent_seq', 'parent']),
)
type CancelBy = CancelRunsArgs & { by: number; accountId: string }

/** On PostgreSQL, `open_runs` is a table. Its trigger ignores these runs, so this statement removes them from it. */
function cancelBy({ db, p, d }: Building<CancelBy>, among: RawBuilder<boolean>) {
  const values = { state: 'RUN_CANCELED', finished_at: p.at, canceled_by: p.by } as const
  const started = sql<boolean>`${among} and state = 'RUN_STARTED'`
  if (d.name === 'sqlite') return db.updateTable('runs').set(values).where(started)
  // The statement may name runs that it does not cancel. These have ended, so they are not in `open_runs`.
  const removed = db.with('removed', (q) =>
    q.deleteFrom('open_runs').where('account_id', '=', p.accountId).where(d.inNumbers('seq', p.seqs)),
  )
  return removed.updateTable('runs').set(values).where(started)
}
const cancelStartedInOrder = query<CancelBy>((building) => cancelBy(building, activeAmong(building)))
/** Locks the runs in no certain order, which saves a separate lock of each row and a third of the time. */
const cancelStartedInAnyOrder = query<CancelBy>((building) =>
  cancelBy(building, building.d.inSharedNumbers('seq', building.p.seqs)),
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
/** The database answers this from the index of children alone. */
const someChild = query<object, { parent_seq: number | null }>(({ db }) =>
  db.selectFrom('runs').select('parent_seq').where('parent_seq', 'is not', null).limit(1),
)
const dropWaits = query<Seqs>(({ db, p, d }) => db.deleteFrom('run_waits').where(d.inNumbers('run_seq', p.seqs)))
const dropWaitsOfMany = query<Seqs>(({ db, p, d }) =>
  db.deleteFrom('run_waits').where(d.inSharedNumbers('run_seq', p.seqs)),
)

/** Deletes the waits of runs, as part of another transaction. */
export function* dropWaitsOf(seqs: readonly number[]): Transaction<void> {
  if (seqs.length > 0) yield* change(dropWaits, { seqs })
}

/**
 * Cancels runs: deletes their pending messages and waits, keeps the data that an undo needs, and notifies the runs that
 * invoked them. Right after the commit the caller passes `cancelled` to `queue.drop({ groupKeys })` and `offers` to
 * `queue.offer`.
 */
export const cancelRuns = write('runs.cancel', function* (args: CancelRunsArgs): Transaction<CancelledRuns> {
  const ended = yield* all(cancelStarted, args)
  for (const { seq, account_id: accountId } of ended) {
    yield* atOnce(askToKeep({ seqs: [seq], accountId, by: 0, at: args.at }))
  }
  const cancelled = ended.map((run) => run.seq)
  return yield* cleanUp(cancelled, ended, args.at)
})

/** Outcome of a bulk cancel. */
export interface BulkCancelled extends CancelledRuns {
  /** Statements that the caller must still run in this transaction: they keep and delete data of the cancelled runs. */
  readonly remaining: readonly Ask<number>[]
}

/** Asks whether a run of the store has invoked another one: for `cancelRunsFor`. */
export const askSomeChild = (): Ask<object[]> => askAll(someChild, {})

/**
 * Cancels thousands of runs, at least one, as part of a bulk action. RETURNING would make the UPDATE 50 % more expensive,
 * and the UPDATE usually changes all runs. So the changed runs are read only if their count differs.
 * @param action it has not cancelled any of these runs before.
 * @param hasChildren the answer of `askSomeChild`. Without children, only bulk actions lock more than one run.
 */
export function* cancelRunsFor(
  action: { readonly seq: number; readonly account_id: string },
  { seqs, at }: CancelRunsArgs,
  hasChildren: boolean,
): Transaction<BulkCancelled> {
  const { seq: by, account_id: accountId } = action
  const cancelStarted = hasChildren ? cancelStartedInOrder : cancelStartedInAnyOrder
  const [changed, toKeep] = yield* atOnce([
    askChange(cancelStarted, { seqs, at, by, accountId }),
    askAttemptsToKeep(seqs),
  ])
  const cancelled = changed === seqs.length ? seqs : (yield* all(canceledBy, { seqs, by })).map((run) => run.seq)
  if (cancelled.length === 0) return { cancelled, offers: [], remaining: [] }
  if (toKeep.length > 0) yield* keepAttemptsOfRuns(cancelled)
  const children = hasChildren ? yield* all(childrenAmong, { seqs: cancelled }) : []
  const offers = yield* notifyParents(children, CANCELED, at)
  // Later statements, because they must see what other transactions added to the runs before the UPDATE locked them.
  return {
    cancelled,
    offers,
    remaining: [
      ...askToKeep({ seqs: cancelled, accountId, by, at }),
      askDeletePendingOfGroups(cancelled),
      askChange(dropWaitsOfMany, { seqs: cancelled }),
    ],
  }
}

const CANCELED = { isCanceled: true, isFailed: false }

/** Deletes the pending messages and waits of cancelled runs, and notifies their parents. */
function* cleanUp(cancelled: readonly number[], ended: readonly EndedChild[], at: number): Transaction<CancelledRuns> {
  yield* keepAttemptsOfRuns(cancelled)
  yield* deletePendingOfGroups(cancelled)
  yield* dropWaitsOf(cancelled)
  return { cancelled, offers: yield* notifyParents(ended, CANCELED, at) }
}
