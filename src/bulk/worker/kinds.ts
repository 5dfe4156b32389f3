import { type Clock, newId } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import type { DropSelector, Queue } from '../../queue/index.js'
import type * as messagesDead from '../../queue/transactions/messages-dead.js'
import type { Store } from '../../store/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import type { WorkflowMeter } from '../../telemetry/index.js'
import { type Overrides, type RevivalKind, revivalOf, type StartWork } from '../../workflow/index.js'
import type { RunPause } from '../../workflow/transactions/runs-pause.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import type * as bulkBatch from '../transactions/bulk-batch.js'
import type { PauseSettings } from '../transactions/bulk-kinds.js'
import * as bulkKinds from '../transactions/bulk-kinds.js'
import * as bulkUndo from '../transactions/bulk-undo.js'
import { reportCancelledChildren } from './cancelled-children.js'
import type { Fences } from './fences.js'
import type { Batch } from './job.js'

/** Collaborators of the kinds. */
export interface KindDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'dropEverywhere' | 'offer' | 'refuseForbidden'>
  readonly clock: Clock
  /** The nodes that use the store. */
  readonly cluster: Cluster
  readonly fences: Pick<Fences, 'pass' | 'refuses'>
  /** Counts the runs that actions cancel and start. */
  readonly runMeter?: Pick<WorkflowMeter, 'ended' | 'activity'>
}

/** A kind of action. */
export interface BulkKind {
  /** Type of its items. */
  readonly itemType: 'runs' | 'messages'
  /** Wire name of the successful outcome. */
  readonly successOutcome:
    | 'cancelled'
    | 'resumed'
    | 'restarted'
    | 'deleted'
    | 'retried'
    | 'undone'
    | 'paused'
    | 'unpaused'
  /** Decides a batch in one transaction, and updates the queue in memory with the result. */
  decide(deps: KindDeps, action: bulkAction.BulkActionRow, batch: Batch): Promise<bulkBatch.DecidedBatch>
}

/** All kinds of actions by name. */
export const KINDS: Readonly<Record<BulkKindName, BulkKind>> = {
  cancelRuns: {
    itemType: 'runs',
    successOutcome: 'cancelled',
    decide: async (deps, action, batch) => {
      const decided = await deps.store.run(bulkKinds.cancelRunsBatch, argsOf(deps, action, batch))
      countCancelled(deps, action, decided.succeeded.length)
      offerToQueue(deps, decided)
      await dropEverywhere(deps, { groupKeys: decided.succeeded })
      return decided
    },
  },
  cancelMessages: {
    itemType: 'messages',
    successOutcome: 'cancelled',
    decide: async (deps, action, batch) => {
      const decided = await deps.store.run(bulkKinds.cancelMessagesBatch, argsOf(deps, action, batch))
      offerToQueue(deps, decided)
      await dropEverywhere(deps, { seqs: decided.succeeded })
      return decided
    },
  },
  resumeRuns: { itemType: 'runs', successOutcome: 'resumed', decide: reviving('resume') },
  restartRuns: { itemType: 'runs', successOutcome: 'restarted', decide: reviving('restart') },
  retryFailureCallbacks: {
    itemType: 'runs',
    successOutcome: 'retried',
    decide: async (deps, action, batch) =>
      offerToQueue(deps, await deps.store.run(bulkKinds.retryCallbacksBatch, argsOf(deps, action, batch))),
  },
  deleteDeadRuns: {
    itemType: 'runs',
    successOutcome: 'deleted',
    decide: (deps, action, batch) => deps.store.run(bulkKinds.deleteDeadRunsBatch, argsOf(deps, action, batch)),
  },
  deleteDeadLetters: {
    itemType: 'messages',
    successOutcome: 'deleted',
    decide: (deps, action, batch) => deps.store.run(bulkKinds.deleteDeadLettersBatch, argsOf(deps, action, batch)),
  },
  retryDeadLetters: { itemType: 'messages', successOutcome: 'retried', decide: retry },
  undoCancelRuns: { itemType: 'runs', successOutcome: 'undone', decide: undoRuns },
  undoCancelMessages: { itemType: 'messages', successOutcome: 'undone', decide: undoMessages },
  pauseRuns: { itemType: 'runs', successOutcome: 'paused', decide: pauseBatch },
  unpauseRuns: { itemType: 'runs', successOutcome: 'unpaused', decide: unpauseBatch },
}

function countCancelled({ runMeter }: KindDeps, { account_id }: bulkAction.BulkActionRow, runs: number): void {
  if (!runMeter) return
  runMeter.ended.cancelled += runs
  runMeter.activity.add(account_id, 'cancelled_runs', runs)
}

function argsOf({ clock, cluster }: KindDeps, action: bulkAction.BulkActionRow, batch: Batch): bulkBatch.BatchArgs {
  return { actionSeq: action.seq, ...batch, at: clock.now(), owner: cluster.incarnation }
}

/** Awaited before the batch counts as decided, so that no node delivers anything of it after the answer. */
async function dropEverywhere({ queue }: KindDeps, which: DropSelector): Promise<void> {
  const items = 'seqs' in which ? which.seqs : which.groupKeys
  if (items.length > 0) await queue.dropEverywhere(which)
}

/** Called right after the commit, not after the drop: another cancel may end these messages while other nodes answer. */
function offerToQueue({ queue }: KindDeps, decided: bulkBatch.DecidedBatch): bulkBatch.DecidedBatch {
  queue.offer(decided.offers)
  return decided
}

/** Pauses a batch of runs. No node sends anything more of them; requests in flight run to their end. */
async function pauseBatch(
  deps: KindDeps,
  action: bulkAction.BulkActionRow,
  batch: Batch,
): Promise<bulkBatch.DecidedBatch> {
  // This module wrote it when it stored the action.
  const { clock, workflowUrl } = JSON.parse(action.settings ?? '') as PauseSettings
  const pause: RunPause = {
    by: action.actor,
    clock,
    ...(action.reason !== null && { reason: action.reason }),
    ...(workflowUrl !== undefined && { ofWorkflow: true }),
  }
  const args = { ...argsOf(deps, action, batch), pause, workflowUrl }
  const decided = await deps.store.run(bulkKinds.pauseRunsBatch, args)
  const { succeeded: groupKeys } = decided
  if (groupKeys.length > 0) await deps.queue.dropEverywhere({ groupKeys, inFlight: 'ends' })
  return decided
}

/** Resumes a batch of runs. It passes the fences like a trigger: a new pause waits for it before it fixes its set. */
async function unpauseBatch(
  deps: KindDeps,
  action: bulkAction.BulkActionRow,
  batch: Batch,
): Promise<bulkBatch.DecidedBatch> {
  // This module wrote it when it stored the action.
  const { workflowUrl } = JSON.parse(action.settings ?? '{}') as Partial<PauseSettings>
  const args = { ...argsOf(deps, action, batch), workflowUrl }
  const unpause = () => deps.store.run(bulkKinds.unpauseRunsBatch, args)
  return offerAgain(deps, await deps.fences.pass(action.account_id, [], args.at, unpause))
}

/** Resumes or restarts dead runs. A fence blocks single runs, not the whole batch. */
function reviving(kind: RevivalKind): BulkKind['decide'] {
  return async (deps, action, batch) => {
    const { store, fences } = deps
    const { account_id: accountId } = action
    const args = argsOf(deps, action, batch)
    // This module wrote it when it stored the action.
    const overrides = JSON.parse(action.settings ?? '') as Overrides
    const dead = await store.run(bulkKinds.revivableBatch, { ...args, accountId })
    const all = dead.map((run) => revivalOf(kind, run, overrides, args.at))
    const revivals = all.filter(({ run }) => !fences.refuses(accountId, run, args.at))
    const fenced = all.filter((revival) => !revivals.includes(revival)).map(({ seq }) => seq)
    const { dueAt } = overrides
    const starting = revivals.map(({ run }) => run)
    const revive: StartWork<bulkBatch.DecidedBatch> = (paused) =>
      store.run(bulkKinds.reviveRunsBatch, { ...args, revivals, fenced, dueAt, paused })
    const decided = await fences.pass(accountId, starting, args.at, revive)
    deps.runMeter?.activity.add(accountId, 'started_runs', decided.succeeded.length)
    return offerToQueue(deps, decided)
  }
}

async function retry(deps: KindDeps, action: bulkAction.BulkActionRow, batch: Batch): Promise<bulkBatch.DecidedBatch> {
  const args = argsOf(deps, action, batch)
  // This module wrote it when it stored the action.
  const revision = JSON.parse(action.settings ?? '') as messagesDead.Revision
  const ids = Array.from({ length: batch.to - batch.from }, () => newId('msg_', args.at))
  return offerToQueue(deps, await deps.store.run(bulkKinds.retryDeadLettersBatch, { ...args, ids, revision }))
}

// This module wrote it when it stored the action.
const undoSettings = ({ settings }: bulkAction.BulkActionRow) => JSON.parse(settings ?? '') as bulkUndo.UndoSettings

/** Offers messages that the queue may still remember as dropped. */
function offerAgain({ queue }: KindDeps, decided: bulkBatch.DecidedBatch): bulkBatch.DecidedBatch {
  queue.offer(decided.offers, true)
  return decided
}

/** Brings cancelled runs back. A fence blocks single runs, not the whole batch. */
async function undoRuns(
  deps: KindDeps,
  action: bulkAction.BulkActionRow,
  batch: Batch,
): Promise<bulkBatch.DecidedBatch> {
  const { store, fences } = deps
  const { account_id: accountId } = action
  const args = argsOf(deps, action, batch)
  const runs = await store.run(bulkUndo.cancelledBatch, { ...args, accountId })
  const refused = new Set(runs.filter((run) => fences.refuses(accountId, run, args.at)))
  const starting = runs.filter((run) => !refused.has(run))
  const fenced = [...refused].map(({ seq }) => seq)
  const undo: StartWork<bulkBatch.DecidedBatch> = (paused) =>
    store.run(bulkUndo.undoRunsBatch, { ...args, ...undoSettings(action), fenced, paused })
  const decided = offerAgain(deps, await fences.pass(accountId, starting, args.at, undo))
  const { state, failed } = decided.action
  if (state === 'finished' && failed > 0) await reportCancelledChildren(deps, action)
  return decided
}

async function undoMessages(
  deps: KindDeps,
  action: bulkAction.BulkActionRow,
  batch: Batch,
): Promise<bulkBatch.DecidedBatch> {
  const args = { ...argsOf(deps, action, batch), ...undoSettings(action) }
  return offerAgain(deps, await deps.store.run(bulkUndo.undoMessagesBatch, args))
}
