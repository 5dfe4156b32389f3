import { cancel as cancelMessages } from '../../queue/transactions/messages-cancel.js'
import { deleteLetters, type Revision, retryLetters } from '../../queue/transactions/messages-dead.js'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageState } from '../../store/schema/messages.js'
import type { RunState } from '../../store/schema/runs.js'
import { all, type Transaction } from '../../store/statement.js'
import { retryCallbacks } from '../../workflow/transactions/runs-callbacks.js'
import { askSomeChild, cancelRunsFor } from '../../workflow/transactions/runs-cancel.js'
import { deadAmong, removeDeadLetters } from '../../workflow/transactions/runs-dead.js'
import {
  type PauseClock,
  type PausedWorkflow,
  pauseRuns,
  type RunPause,
  resumeRuns,
} from '../../workflow/transactions/runs-pause.js'
import { dropRemains } from '../../workflow/transactions/runs-remains.js'
import { type DeadRun, type Revival, revivableAmong, reviveRuns } from '../../workflow/transactions/runs-revive.js'
import { type BatchArgs, batchOperation, type FinalOutcome, type KindResult } from './bulk-batch.js'
import { lockPaused } from './bulk-paused.js'
import { batchSeqs } from './bulk-read.js'

/**
 * The transactions of the kinds: each applies one kind to a batch. The effects themselves belong to the queue and the
 * workflow module.
 */

interface Seqs {
  readonly seqs: readonly number[]
}

const runStates = query<Seqs, { seq: number; state: RunState }>(({ db, p, d }) =>
  db.selectFrom('runs').select(['seq', 'state']).where(d.inNumbers('seq', p.seqs)),
)
const messageStates = query<Seqs, { seq: number; state: MessageState }>(({ db, p, d }) =>
  db.selectFrom('messages').select(['seq', 'state']).where(d.inNumbers('seq', p.seqs)),
)

/** Looks up the outcomes of items that were not changed; most batches have none. */
function* otherOutcomes<State extends RunState | MessageState>(
  items: readonly number[],
  succeeded: readonly number[],
  states: (seqs: readonly number[]) => Transaction<{ seq: number; state: State }[]>,
  meaning: (state: State) => FinalOutcome,
): Transaction<KindResult['outcomeOf']> {
  if (succeeded.length === items.length) return () => 'notFound'
  const done = new Set(succeeded)
  const found = yield* states(items.filter((seq) => !done.has(seq)))
  const outcomes = new Map(found.map(({ seq, state }) => [seq, meaning(state)]))
  return (seq) => outcomes.get(seq) ?? 'notFound'
}

function afterRun(state: RunState): FinalOutcome {
  switch (state) {
    case 'RUN_CANCELED':
      return 'alreadyCancelled'
    case 'RUN_SUCCESS':
    case 'RUN_FAILED':
      return 'alreadyFinished'
    case 'RUN_STARTED':
      return 'failed'
  }
}

function afterMessage(state: MessageState): FinalOutcome {
  switch (state) {
    case 'canceled':
      return 'alreadyCancelled'
    case 'delivered':
    case 'failed':
      return 'alreadyFinished'
    case 'held':
    case 'pending':
      return 'failed'
  }
}

const readRunStates = (seqs: readonly number[]) => all(runStates, { seqs })
const readMessageStates = (seqs: readonly number[]) => all(messageStates, { seqs })
/** Outcome of an item, in any state, that is no longer a dead letter. */
const noLongerDead = (): FinalOutcome => 'alreadyFinished'

/**
 * Cancels the runs of a batch. A run that ended before counts as `alreadyFinished` or `alreadyCancelled`, so if two
 * actions hold the same run, only one counts it as cancelled.
 */
export const cancelRunsBatch = batchOperation(
  'bulk.cancelBatch',
  function* (seqs, action, batch: BatchArgs, children): Transaction<KindResult> {
    const cancel = cancelRunsFor(action, { seqs, at: batch.at }, children.length > 0)
    const { cancelled: succeeded, offers, remaining } = yield* cancel
    return { succeeded, offers, remaining, outcomeOf: yield* otherOutcomes(seqs, succeeded, readRunStates, afterRun) }
  },
  askSomeChild(),
)

/** An active run that was not changed was already paused, or, for a resume, not paused. */
const afterPause = (state: RunState): FinalOutcome => (state === 'RUN_STARTED' ? 'alreadyFinished' : afterRun(state))

/** Settings that a bulk pause and the resume of a workflow store with their action. */
export interface PauseSettings {
  readonly clock: PauseClock
  /** The workflow, if the action belongs to the pause or resume of a whole workflow. */
  readonly workflowUrl?: string | undefined
}

/** A batch of runs to pause. */
export interface PauseBatch extends BatchArgs {
  readonly pause: RunPause
  /** The workflow that is paused. If it was resumed meanwhile, the action pauses nothing more. */
  readonly workflowUrl?: string | undefined
}

/** Pauses runs. */
export const pauseRunsBatch = batchOperation(
  'bulk.pauseRunsBatch',
  function* (seqs, action, { pause, at, workflowUrl: url }: PauseBatch): Transaction<KindResult> {
    const { account_id: accountId } = action
    const isDue = url === undefined || (yield* lockPaused({ accountId, url }))
    const succeeded = isDue ? yield* pauseRuns({ accountId, seqs, at, pause }) : []
    return { succeeded, offers: [], outcomeOf: yield* otherOutcomes(seqs, succeeded, readRunStates, afterPause) }
  },
)

/** A batch of paused runs. */
export interface UnpauseBatch extends BatchArgs {
  /** The workflow that is resumed. If it was paused again meanwhile, the action resumes no more runs. */
  readonly workflowUrl?: string | undefined
}

/** Resumes paused runs. */
export const unpauseRunsBatch = batchOperation(
  'bulk.unpauseRunsBatch',
  function* (seqs, action, { at, workflowUrl: url }: UnpauseBatch): Transaction<KindResult> {
    const { account_id: accountId } = action
    const isHeld = url !== undefined && (yield* lockPaused({ accountId, url }))
    const { resumed, offers } = yield* resumeRuns({ accountId, seqs: isHeld ? [] : seqs, at })
    return { succeeded: resumed, offers, outcomeOf: yield* otherOutcomes(seqs, resumed, readRunStates, afterPause) }
  },
)

/** Cancels messages. */
export const cancelMessagesBatch = batchOperation(
  'bulk.cancelMessagesBatch',
  function* (seqs, _, batch: BatchArgs): Transaction<KindResult> {
    const { seqs: succeeded, offers } = yield* cancelMessages.body({ seqs, at: batch.at })
    return { succeeded, offers, outcomeOf: yield* otherOutcomes(seqs, succeeded, readMessageStates, afterMessage) }
  },
)

/** Deletes dead runs; they stay in the logs as failed. */
export const deleteDeadRunsBatch = batchOperation(
  'bulk.deleteDeadRunsBatch',
  function* (seqs, action): Transaction<KindResult> {
    const succeeded = yield* deadAmong(seqs, action.account_id)
    yield* removeDeadLetters(succeeded)
    yield* dropRemains(succeeded)
    return { succeeded, offers: [], outcomeOf: yield* otherOutcomes(seqs, succeeded, readRunStates, noLongerDead) }
  },
)

/** Calls the failure functions of dead runs again, where they have failed. */
export const retryCallbacksBatch = batchOperation(
  'bulk.retryCallbacksBatch',
  function* (seqs, action, batch: BatchArgs): Transaction<KindResult> {
    const { seqs: succeeded, offers } = yield* retryCallbacks(seqs, { accountId: action.account_id, at: batch.at })
    return { succeeded, offers, outcomeOf: yield* otherOutcomes(seqs, succeeded, readRunStates, noLongerDead) }
  },
)

/** Deletes dead letters; the messages stay in the logs as failed. */
export const deleteDeadLettersBatch = batchOperation(
  'bulk.deleteDeadLettersBatch',
  function* (seqs): Transaction<KindResult> {
    const succeeded = yield* deleteLetters(seqs)
    return { succeeded, offers: [], outcomeOf: yield* otherOutcomes(seqs, succeeded, readMessageStates, noLongerDead) }
  },
)

/** A batch of dead letters to resend. */
export interface RetryBatch extends BatchArgs {
  /** A new message id for each item of the batch. */
  readonly ids: readonly string[]
  readonly revision: Revision
}

/** Resends dead letters as new messages. */
export const retryDeadLettersBatch = batchOperation(
  'bulk.retryDeadLettersBatch',
  function* (seqs, _, batch: RetryBatch): Transaction<KindResult> {
    const { seqs: succeeded, offers } = yield* retryLetters(seqs, batch)
    return { succeeded, offers, outcomeOf: yield* otherOutcomes(seqs, succeeded, readMessageStates, noLongerDead) }
  },
)

/** Reads the dead runs of a batch with the data needed to plan their new runs. */
export const revivableBatch = read(
  'bulk.revivableBatch',
  function* (batch: BatchArgs & { accountId: string }): Transaction<DeadRun[]> {
    return yield* revivableAmong(yield* batchSeqs(batch), batch.accountId)
  },
)

/** A batch of dead runs to resume or restart. */
export interface ReviveBatch extends BatchArgs {
  /** A new run for each run of `revivableBatch`. */
  readonly revivals: readonly Revival[]
  /** Runs that a fence blocks. Absent: none. */
  readonly fenced?: readonly number[]
  /** Paused workflows that runs belong to. */
  readonly paused?: readonly PausedWorkflow[]
  /** Earliest delivery of the first steps, Unix milliseconds. */
  readonly dueAt: number
}

/** Resumes or restarts dead runs as new runs. */
export const reviveRunsBatch = batchOperation(
  'bulk.reviveRunsBatch',
  function* (seqs, action, batch: ReviveBatch): Transaction<KindResult> {
    const open = new Set(seqs)
    const revivals = batch.revivals.filter((revival) => open.has(revival.seq))
    const { dueAt, at, paused } = batch
    const { revived, offers } = yield* reviveRuns({ accountId: action.account_id, revivals, dueAt, at, paused })
    const succeeded = revived.map((run) => run.seq)
    const fenced = new Set(batch.fenced)
    const others = yield* otherOutcomes(seqs, succeeded, readRunStates, noLongerDead)
    return { succeeded, offers, outcomeOf: (seq) => (fenced.has(seq) ? 'fenced' : others(seq)) }
  },
)
