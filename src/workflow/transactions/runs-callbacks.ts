import { deletePendingOfGroups, type PendingRow } from '../../queue/transactions/messages.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { FailureState } from '../../store/schema/runs.js'
import { all, change, type Transaction } from '../../store/statement.js'
import { deliverElements } from './runs-append.js'
import { type DeadRunSelector, selectDead } from './runs-dead.js'
import type { ElementMeta, ElementRow, RunRow } from './runs-rows.js'

/** Retry and cancel of the failure callbacks of dead letters. */

/** Identifies a dead letter. */
export interface OneDeadRun {
  readonly accountId: string
  readonly dlqId: string
  /** Unix milliseconds. */
  readonly at: number
}

/** `refused`: the callback is not in the state that the change requires. */
export type CallbackChange =
  | { readonly kind: 'changed'; readonly run: RunRow; readonly offers: readonly PendingRow[] }
  | { readonly kind: 'refused'; readonly run: RunRow }
  | { readonly kind: 'missing' }

const setCallbacks = query<{ seqs: readonly number[]; state: FailureState }>(({ db, p, d }) =>
  db.updateTable('runs').set({ failure_state: p.state }).where(d.inNumbers('seq', p.seqs)),
)
const failedAmong = query<{ seqs: readonly number[]; accountId: string }, { seq: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select('seq')
      .where(d.inNumbers('seq', p.seqs))
      .where('account_id', '=', p.accountId)
      .where('dlq_id', 'is not', null)
      .where('failure_state', '=', 'CALLBACK_FAIL')
      .orderBy('seq', 'desc'),
  ),
)
/** A failure callback, without its body, which may be large and does not change. */
type Callback = Pick<ElementRow, 'run_seq' | 'message_id' | 'meta'>

const callbacksOf = query<{ seqs: readonly number[] }, Callback>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .select(['run_seq', 'message_id', 'meta'])
    .where(d.inNumbers('run_seq', p.seqs))
    .where('kind', '=', 'failureCall')
    .orderBy('run_seq')
    .orderBy('position'),
)

function* changeCallback(
  { accountId, dlqId }: OneDeadRun,
  from: FailureState,
  to: FailureState,
): Transaction<CallbackChange> {
  const selector: DeadRunSelector = { accountId, filter: { dlqIds: [dlqId] }, order: 'earliestFirst', limit: 1 }
  const { runs } = yield* selectDead(selector, 'locking')
  const [run] = runs
  if (!run) return { kind: 'missing' }
  if (run.failure_state !== from) return { kind: 'refused', run }
  yield* change(setCallbacks, { seqs: [run.seq], state: to })
  return { kind: 'changed', run, offers: [] }
}

/** Retries a failure callback that has failed for good. */
export const retryCallback = write('runs.retryCallback', function* (args: OneDeadRun): Transaction<CallbackChange> {
  const changed = yield* changeCallback(args, 'CALLBACK_FAIL', 'CALLBACK_INPROGRESS')
  if (changed.kind !== 'changed') return changed
  return { ...changed, offers: yield* redeliverCallbacks([changed.run.seq], args) }
})

/** Cancels a pending failure callback. The caller passes the run to `queue.dropEverywhere` after the commit. */
export const cancelCallback = write('runs.cancelCallback', function* (args: OneDeadRun): Transaction<CallbackChange> {
  const changed = yield* changeCallback(args, 'CALLBACK_INPROGRESS', 'CALLBACK_CANCELED')
  if (changed.kind === 'changed') yield* deletePendingOfGroups([changed.run.seq])
  return changed
})

/** The account of the callbacks, and the time. */
interface Calling {
  readonly accountId: string
  /** Unix milliseconds. */
  readonly at: number
}

/** Retries failure callbacks of dead letters if they have failed for good, as part of another transaction. */
export function* retryCallbacks(
  seqs: readonly number[],
  calling: Calling,
): Transaction<{ readonly seqs: readonly number[]; readonly offers: readonly PendingRow[] }> {
  const failed = (yield* all(failedAmong, { seqs, accountId: calling.accountId })).map((run) => run.seq)
  yield* change(setCallbacks, { seqs: failed, state: 'CALLBACK_INPROGRESS' })
  return { seqs: failed, offers: yield* redeliverCallbacks(failed, calling) }
}

/** Delivers the last failure callback of each of these runs again. */
function* redeliverCallbacks(seqs: readonly number[], { accountId, at }: Calling): Transaction<PendingRow[]> {
  const rows = yield* all(callbacksOf, { seqs })
  const lastCalls = new Map(rows.map((row) => [row.run_seq, row]))
  const again = seqs.map((runSeq) => {
    const row = lastCalls.get(runSeq)
    // Written by this module when the run failed.
    const { delivery } = JSON.parse(row?.meta ?? '{}') as ElementMeta
    if (!row || !delivery) throw new Error(`run ${runSeq} has no failure callback to retry`)
    return { accountId, runSeq, element: { messageId: row.message_id, dueAt: at, delivery } }
  })
  return yield* deliverElements(again, at)
}
