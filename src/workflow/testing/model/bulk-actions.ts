import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import * as bulkAction from '../../../bulk/transactions/bulk-action.js'
import type * as bulkBatch from '../../../bulk/transactions/bulk-batch.js'
import * as bulkControl from '../../../bulk/transactions/bulk-control.js'
import * as bulkKinds from '../../../bulk/transactions/bulk-kinds.js'
import * as bulkRead from '../../../bulk/transactions/bulk-read.js'
import * as bulkSelect from '../../../bulk/transactions/bulk-select.js'
import * as bulkUndo from '../../../bulk/transactions/bulk-undo.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import type { BulkKindName } from '../../../store/schema/bulk.js'
import { type RevivalKind, revivalOf } from '../../dead-letters/revival.js'
import type { PauseClock } from '../../transactions/runs-pause.js'
import type { DeadRun, Revival } from '../../transactions/runs-revive.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import type { UndoClock } from '../../transactions/runs-undo.js'
import type { KnownPause } from './knowledge.js'
import type { WorkflowPause } from './workflow-pause.js'

const CHUNK_ITEMS = 8
/** The kinds of actions on runs. */
const KINDS = [
  'cancelRuns',
  'deleteDeadRuns',
  'resumeRuns',
  'restartRuns',
  'retryFailureCallbacks',
] as const satisfies readonly BulkKindName[]
const REVERSIBLE_KINDS = [...KINDS, 'undoCancelRuns', 'pauseRuns', 'unpauseRuns'] as const
type Kind = (typeof REVERSIBLE_KINDS)[number]
const UNDO_CLOCKS = ['original', 'hold', 'now'] as const satisfies readonly UndoClock[]

interface Batch {
  readonly chunk: number
  readonly from: number
  readonly to: number
}

interface Action {
  readonly seq: number
  readonly actionId: string
  readonly kind: Kind
  /** The fixed set, in the order of its items. */
  readonly set: readonly number[]
  batches: Batch[]
  readonly undoClock: UndoClock
  readonly pauseClock: PauseClock
  isPaused: boolean
  /** Items with an outcome. */
  readonly decided: Set<number>
  succeeded: number
  /** Items that a fence refused. */
  fenced: number
}

/** Collaborators of the bulk actions. */
export interface BulkActionsDeps {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  /** Whether there are pauses, and undos of cancels. */
  readonly hasUndoAndPause: boolean
  now(): number
  rows(): Promise<readonly RunRow[]>
  /** Runs are about to be cancelled. */
  cancelling(runs: readonly RunRow[]): Promise<void>
  /** Runs have just been cancelled. */
  cancelled(runs: readonly RunRow[]): void
  /** Cancelled runs have just been brought back. */
  broughtBack(runs: readonly RunRow[], clock: UndoClock, at: number): Promise<void>
  /** Runs have just been paused. */
  paused(runs: readonly RunRow[], pause: KnownPause): void
  /** Called before paused runs are resumed. @returns a function that checks their deliveries and waits afterwards. */
  resuming(runs: readonly RunRow[]): Promise<(at: number) => Promise<void>>
  /** A dead run was resumed or restarted as a new run. */
  revived(dead: DeadRun, revival: Revival): void
  offer(rows: readonly PendingRow[], isAgain?: boolean): void
  /** The paused workflows. */
  readonly pause: Pick<WorkflowPause, 'pass' | 'workflows'>
}

/**
 * Bulk actions over the runs of a simulation, processed batch by batch while everything else continues. Each batch must
 * succeed for exactly the runs whose state allows it at that moment, and each action must have exactly one outcome for each
 * run of its set.
 */
export class BulkActions {
  readonly #deps: BulkActionsDeps
  #active: Action[] = []

  constructor(deps: BulkActionsDeps) {
    this.#deps = deps
  }

  /** Fixes a set of runs in any state and stores an action over it. */
  async start(): Promise<void> {
    const { random, store, accountId } = this.#deps
    const chosen = (await this.#deps.rows()).filter((run) => random.chance(this.#share(run)))
    const set = chosen.map(({ seq }) => seq)
    set.sort((a, b) => a - b)
    const kind = this.#someKind(chosen)
    const at = this.#deps.now()
    const chunks = bulkSelect.packChunks(set, CHUNK_ITEMS)
    const none = { settings: null, reason: null, ratePerSecond: null, fence: null, absent: [] }
    const who = { actor: 'model@example.com', source: 'QUEUE_TOKEN', ip: '::1', selector: '{}' }
    const args = { actionId: newId('bulk_', at), accountId, kind, chunks, at, ...none, ...who }
    const { seq } = await store.run(bulkAction.createAction, args)
    const batches = chunks.flatMap(({ items }, chunk) => batchesOf(chunk, items))
    const clocks = this.#someClocks()
    const progress = { ...clocks, isPaused: false, decided: new Set<number>(), succeeded: 0, fenced: 0 }
    this.#active.push({ seq, actionId: args.actionId, kind, set, batches, ...progress })
  }

  /**
   * The chance that a run is in a set. High for dead letters, because they are few, and most kinds work on them. Raised for
   * cancelled and paused runs, which undos need.
   */
  #share({ dlq_id, state, paused_at }: RunRow): number {
    if (dlq_id !== null) return 0.9
    return this.#deps.hasUndoAndPause && (state === 'RUN_CANCELED' || paused_at !== null) ? 0.6 : 0.2
  }

  #someClocks(): Pick<Action, 'undoClock' | 'pauseClock'> {
    const { random, hasUndoAndPause } = this.#deps
    if (!hasUndoAndPause) return { undoClock: 'original', pauseClock: 'keep' }
    return { undoClock: random.pick(UNDO_CLOCKS) ?? 'original', pauseClock: random.chance(0.5) ? 'hold' : 'keep' }
  }

  /** Prefers retries of callbacks, because few callbacks fail. Also prefers pauses, and cancels and undos of paused runs. */
  #someKind(chosen: readonly RunRow[]): Kind {
    const { random } = this.#deps
    const canRetry = chosen.some((run) => isPossible('retryFailureCallbacks', run))
    if (canRetry && random.chance(0.5)) return 'retryFailureCallbacks'
    const { hasUndoAndPause } = this.#deps
    if (hasUndoAndPause && random.chance(0.3)) return 'pauseRuns'
    if (hasUndoAndPause && random.chance(0.4)) {
      const held = chosen.filter(({ paused_at }) => paused_at !== null)
      if (held.some(({ state }) => state === 'RUN_CANCELED')) return 'undoCancelRuns'
      if (held.some(({ state }) => state === 'RUN_STARTED')) return 'cancelRuns'
      if (chosen.some(({ state }) => state === 'RUN_CANCELED')) return 'undoCancelRuns'
    }
    const kinds = hasUndoAndPause ? REVERSIBLE_KINDS : KINDS
    return kinds[random.below(kinds.length)] ?? 'cancelRuns'
  }

  /** Processes the next batch of some action; sometimes twice, as after a lost response. */
  async work(): Promise<void> {
    const { random } = this.#deps
    const action = random.pick(this.#active.filter(({ isPaused }) => !isPaused))
    if (!action) return
    const batch = action.batches.shift()
    if (batch) await this.#decide(action, batch)
    if (batch && random.chance(0.1)) await this.#decide(action, batch)
    if (action.batches.length === 0) await this.#check(action, 'finished')
  }

  /** Aborts some action. */
  async abort(): Promise<void> {
    const { random, store, accountId } = this.#deps
    const action = random.pick(this.#active)
    if (!action || action.batches.length === 0) return
    await store.run(bulkControl.abort, { accountId, ...this.#controlling(action) })
    await this.#expectNothing(action, 'aborted')
    await this.#check(action, 'aborted')
  }

  /** Pauses or resumes some action. */
  async pause(): Promise<void> {
    const { random, store, accountId } = this.#deps
    const action = random.pick(this.#active)
    if (!action || action.batches.length === 0) return
    if (action.isPaused) return this.#resume(action)
    await store.run(bulkControl.pause, { accountId, ...this.#controlling(action) })
    action.isPaused = true
    await this.#expectNothing(action, 'paused')
  }

  async #resume(action: Action): Promise<void> {
    const { store, accountId } = this.#deps
    await store.run(bulkControl.resume, { accountId, ...this.#controlling(action) })
    action.isPaused = false
  }

  /** After a restart the server continues the running actions, and no others. */
  async restart(): Promise<void> {
    const { store, accountId } = this.#deps
    const rows = (await store.run(bulkRead.running, {})).filter((row) => row.account_id === accountId)
    const expected = this.#active.filter(({ isPaused, batches }) => !isPaused && batches.length > 0)
    const isSame = rows.length === expected.length && rows.every(({ seq }) => expected.some((one) => one.seq === seq))
    if (!isSame) {
      const names = (actions: readonly { readonly seq: number }[]): string => actions.map(({ seq }) => seq).join()
      throw new Error(`a restart continues the actions ${names(rows)} instead of ${names(expected)}`)
    }
    for (const action of expected) {
      const chunks = await store.run(bulkRead.openChunks, { actionSeq: action.seq, from: 0, limit: 1_000 })
      action.batches = chunks.flatMap(({ chunk, items }) => batchesOf(chunk, items))
    }
  }

  #controlling({ actionId }: Action) {
    const at = this.#deps.now()
    const by = { actor: 'model@example.com', source: 'QUEUE_TOKEN', ip: '::1', logId: newId('log_', at) }
    return { actionId, by, reason: null, at }
  }

  /** Processes all remaining batches. */
  async finish(): Promise<void> {
    for (const action of this.#active) if (action.isPaused) await this.#resume(action)
    while (this.#active.length > 0) await this.work()
  }

  async #decide(action: Action, batch: Batch): Promise<void> {
    const all = action.set.slice(batch.chunk * CHUNK_ITEMS + batch.from, batch.chunk * CHUNK_ITEMS + batch.to)
    const items = all.filter((seq) => !action.decided.has(seq))
    const before = (await this.#deps.rows()).filter(({ seq }) => items.includes(seq))
    const fenced = before.filter((run) => isFenced(action.kind, run))
    const possible = before.filter((run) => isPossible(action.kind, run) && !fenced.includes(run))
    if (action.kind === 'cancelRuns') await this.#deps.cancelling(possible)
    const check = action.kind === 'unpauseRuns' ? await this.#deps.resuming(possible) : undefined
    const at = this.#deps.now()
    const { action: row, offers } = await this.#run(action, batch)
    for (const seq of items) action.decided.add(seq)
    this.#checkFenced(action, row, fenced.length)
    const succeeded = row.succeeded - action.succeeded
    if (succeeded !== possible.length) {
      throw new Error(`a batch of ${action.actionId} (${action.kind}) did ${succeeded} instead of ${possible.length}`)
    }
    action.succeeded = row.succeeded
    if (action.kind === 'cancelRuns') this.#deps.cancelled(possible)
    if (action.kind === 'undoCancelRuns') await this.#deps.broughtBack(possible, action.undoClock, at)
    if (action.kind === 'pauseRuns') this.#deps.paused(possible, { clock: action.pauseClock, since: at })
    await check?.(at)
    this.#deps.offer(offers, action.kind === 'undoCancelRuns' || action.kind === 'unpauseRuns')
  }

  /** Checks that each run that a fence refuses counts as failed once. */
  #checkFenced(action: Action, row: bulkBatch.DecidedBatch['action'], expected: number): void {
    const refused = row.failed - action.fenced
    if (refused !== expected) {
      throw new Error(`a batch of ${action.actionId} (${action.kind}) refused ${refused} instead of ${expected}`)
    }
    action.fenced = row.failed
  }

  async #expectNothing(action: Action, state: string): Promise<void> {
    const [batch] = action.batches
    const before = action.succeeded
    const decided = batch && (await this.#run(action, batch))
    // Compares the row of the action, because `succeeded` of the batch also has the items of earlier attempts.
    if (decided && decided.action.succeeded > before) {
      throw new Error(`${action.actionId} continued after it was ${state}`)
    }
  }

  #run(action: Action, batch: Batch): Promise<bulkBatch.DecidedBatch> {
    const { store } = this.#deps
    const args = { actionSeq: action.seq, ...batch, at: this.#deps.now() }
    switch (action.kind) {
      case 'cancelRuns':
        return store.run(bulkKinds.cancelRunsBatch, args)
      case 'undoCancelRuns':
        return this.#undo(action, args)
      case 'pauseRuns': {
        const pause = { by: 'model@example.com', clock: action.pauseClock }
        return store.run(bulkKinds.pauseRunsBatch, { ...args, pause })
      }
      case 'unpauseRuns':
        return store.run(bulkKinds.unpauseRunsBatch, args)
      case 'deleteDeadRuns':
        return store.run(bulkKinds.deleteDeadRunsBatch, args)
      case 'retryFailureCallbacks':
        return store.run(bulkKinds.retryCallbacksBatch, args)
      case 'resumeRuns':
        return this.#revive('resume', args)
      case 'restartRuns':
        return this.#revive('restart', args)
    }
  }

  async #undo({ undoClock: clock }: Action, args: bulkBatch.BatchArgs): Promise<bulkBatch.DecidedBatch> {
    const { store, accountId } = this.#deps
    const cancelled = await store.run(bulkUndo.cancelledBatch, { ...args, accountId })
    const fenced = cancelled.filter(isBehindFence).map(({ seq }) => seq)
    return store.run(bulkUndo.undoRunsBatch, { ...args, clock, fenced, paused: this.#deps.pause.workflows })
  }

  async #revive(kind: RevivalKind, args: bulkBatch.BatchArgs): Promise<bulkBatch.DecidedBatch> {
    const { store, accountId } = this.#deps
    const dead = await store.run(bulkKinds.revivableBatch, { ...args, accountId })
    const overrides = { revision: { config: {}, headers: {} }, dueAt: args.at }
    const revivals = dead.filter((run) => !isBehindFence(run)).map((run) => revivalOf(kind, run, overrides, args.at))
    const fenced = dead.filter(isBehindFence).map(({ seq }) => seq)
    const starting = revivals.map(({ run }) => run)
    const decided = await this.#deps.pause.pass(accountId, starting, args.at, (paused) =>
      store.run(bulkKinds.reviveRunsBatch, { ...args, revivals, fenced, dueAt: args.at, paused }),
    )
    const done = new Set(decided.succeeded)
    for (const revival of revivals.filter(({ seq }) => done.has(seq))) {
      const before = dead.find(({ seq }) => seq === revival.seq)
      if (before) this.#deps.revived(before, revival)
    }
    return decided
  }

  /** Every run of the set has exactly one outcome. */
  async #check(action: Action, state: 'finished' | 'aborted'): Promise<void> {
    this.#active = this.#active.filter((other) => other !== action)
    const { store, accountId } = this.#deps
    const row = await store.run(bulkRead.action, { accountId, actionId: action.actionId })
    // An action without runs ends immediately, and retention may have deleted it since.
    if (row === undefined && action.set.length === 0) return
    if (row?.state !== state) throw new Error(`${action.actionId} is ${row?.state} instead of ${state}`)
    const decided = bulkAction.decidedItems(row)
    if (decided !== action.set.length) {
      throw new Error(`${action.actionId} has ${decided} outcomes for ${action.set.length} runs`)
    }
  }
}

function isPossible(kind: Kind, run: RunRow): boolean {
  switch (kind) {
    case 'cancelRuns':
      return run.state === 'RUN_STARTED'
    case 'undoCancelRuns':
      return run.state === 'RUN_CANCELED'
    case 'pauseRuns':
      return run.state === 'RUN_STARTED' && run.paused_at === null
    case 'unpauseRuns':
      return run.state === 'RUN_STARTED' && run.paused_at !== null
    case 'retryFailureCallbacks':
      return run.dlq_id !== null && run.failure_state === 'CALLBACK_FAIL'
    case 'deleteDeadRuns':
    case 'resumeRuns':
    case 'restartRuns':
      return run.dlq_id !== null
  }
}

/** In every simulation a fence refuses runs with a flow-control key. */
const isBehindFence = ({ flow_key }: Pick<RunRow, 'flow_key'>): boolean => flow_key !== null

function isFenced(kind: Kind, run: RunRow): boolean {
  if (kind === 'undoCancelRuns') return run.state === 'RUN_CANCELED' && isBehindFence(run)
  const starts = kind === 'resumeRuns' || kind === 'restartRuns'
  return starts && run.dlq_id !== null && isBehindFence(run)
}

/** Splits a chunk into two batches: batches need not be whole chunks. */
function batchesOf(chunk: number, items: number): Batch[] {
  const middle = Math.floor(items / 2)
  const cuts = [
    { chunk, from: 0, to: middle },
    { chunk, from: middle, to: items },
  ]
  return cuts.filter(({ from, to }) => from < to)
}
