import type { Stage } from '../../../queue/testing/nodes/stage.js'
import * as runsPause from '../../../workflow/transactions/runs-pause.js'
import { type BulkActionRow, decidedItems } from '../../transactions/bulk-action.js'
import type { DecidedBatch } from '../../transactions/bulk-batch.js'
import * as bulkControl from '../../transactions/bulk-control.js'
import * as bulkKinds from '../../transactions/bulk-kinds.js'
import * as bulkUndo from '../../transactions/bulk-undo.js'
import * as census from './census.js'

/** Records from the commits what bulk actions and pauses have done, and checks it. */
export class BulkLedger {
  readonly #stage: Stage
  /** `runs.seq` of the runs that each action has changed, by `bulk_actions.seq`. */
  readonly #done = new Map<number, Set<number>>()
  /** `runs.seq` of the cancelled runs. */
  readonly #cancelled = new Set<number>()
  /** `runs.seq` of the paused runs, with what paused them. */
  readonly #paused = new Map<number, 'alone' | 'with workflow'>()
  /** When a run was last brought back, by `runs.seq`. */
  readonly #broughtBackAt = new Map<number, number>()
  /** Ids of actions whose pause or abort was answered. They must do nothing more. */
  readonly #stopped = new Set<string>()
  /** When an action was last resumed, by its id. */
  readonly #resumed = new Map<string, number>()
  readonly #changed: (seq: number) => void

  /** @param changed called when a run was brought back, or its pause has ended. */
  constructor(stage: Stage, changed: (seq: number) => void) {
    this.#stage = stage
    this.#changed = changed
    const decided = (_: unknown, { succeeded, action }: DecidedBatch): number[] => this.#decided(action, succeeded)
    stage.effects.on(bulkKinds.cancelRunsBatch, decided)
    stage.effects.on(bulkUndo.undoRunsBatch, (batch, result) => {
      const undone = decided(batch, result)
      // If the pause of the workflow has ended, the runs that are brought back are no longer paused.
      if (!batch.paused?.length) for (const seq of undone) this.#leaveWorkflowPause(seq)
    })
    stage.effects.on(bulkKinds.pauseRunsBatch, decided)
    stage.effects.on(bulkKinds.unpauseRunsBatch, decided)
    stage.effects.on(runsPause.pauseRun, (_, result) => {
      if (result.kind === 'paused') this.#paused.set(result.runSeq, 'alone')
    })
    stage.effects.on(runsPause.resumeRun, ({ runId }, { kind }) => {
      const run = kind === 'resumed' && stage.memory.run(census.runs, {}).find(({ run_id }) => run_id === runId)
      if (run) this.#continued(run.seq)
    })
    stage.effects.on(bulkControl.resume, ({ actionId }) => {
      this.#stopped.delete(actionId)
      this.#resumed.set(actionId, stage.timeline.now)
    })
  }

  /** @returns the runs that the action had not changed before. */
  #decided(action: BulkActionRow, succeeded: readonly number[]): number[] {
    const { timeline } = this.#stage
    const known = this.#done.get(action.seq) ?? new Set()
    this.#done.set(action.seq, known)
    // The result also has the runs of an earlier attempt.
    const fresh = succeeded.filter((seq) => !known.has(seq))
    if (fresh.length === 0) return fresh
    timeline.note(`action ${action.seq} (${action.kind}) changes the runs ${fresh.join(', ')}`)
    if (this.#stopped.has(action.action_id))
      timeline.fail(`I8: action ${action.seq} went on after the answer to its stop`)
    for (const seq of fresh) {
      known.add(seq)
      this.#change(action.kind, seq)
    }
    return fresh
  }

  #change(kind: BulkActionRow['kind'], seq: number): void {
    const { timeline } = this.#stage
    const isCancelled = this.#cancelled.has(seq)
    switch (kind) {
      case 'cancelRuns':
        if (isCancelled) timeline.fail(`I8: two actions have cancelled run ${seq}`)
        this.#cancelled.add(seq)
        return
      case 'undoCancelRuns':
        if (!isCancelled) timeline.fail(`I8: run ${seq} was brought back, and was not cancelled`)
        this.#cancelled.delete(seq)
        this.#broughtBackAt.set(seq, timeline.now)
        this.#changed(seq)
        return
      case 'pauseRuns':
        if (isCancelled || this.#paused.has(seq)) timeline.fail(`I8: run ${seq} was paused, and could not be`)
        // Clients of the simulation pause many runs only with their workflow.
        this.#paused.set(seq, 'with workflow')
        return
      case 'unpauseRuns':
        this.#continued(seq)
        return
      default:
        timeline.fail(`I8: nobody has started an action of the kind ${kind}`)
    }
  }

  #leaveWorkflowPause(seq: number): void {
    if (this.#paused.get(seq) === 'with workflow') this.#continued(seq)
  }

  #continued(seq: number): void {
    this.#paused.delete(seq)
    this.#changed(seq)
  }

  /** All runs that are cancelled now. */
  get all(): ReadonlySet<number> {
    return this.#cancelled
  }

  /** Whether a run is paused now. */
  isPaused(seq: number): boolean {
    return this.#paused.has(seq)
  }

  /** Whether a run was brought back at or after `at`. */
  wasBroughtBackSince(seq: number, at: number): boolean {
    return (this.#broughtBackAt.get(seq) ?? Number.NEGATIVE_INFINITY) >= at
  }

  /**
   * Records that a pause or an abort was answered. Somebody may have resumed the action before the client got the answer.
   * @param askedAt when the client sent its request.
   */
  stopped(actionId: string, askedAt: number): void {
    const resumedAt = this.#resumed.get(actionId)
    if (resumedAt === undefined || resumedAt < askedAt) this.#stopped.add(actionId)
  }

  #find(actionId: string): BulkActionRow | undefined {
    return this.#stage.memory.run(census.actions, {}).find(({ action_id }) => action_id === actionId)
  }

  /** Checks the count in the answer to a cancel. @returns the runs that the cancel has cancelled. */
  answered(actionId: string, count: unknown): ReadonlySet<number> {
    const cancelled = this.#done.get(this.#find(actionId)?.seq ?? 0) ?? new Set()
    if (count !== cancelled.size)
      this.#stage.timeline.fail(
        `I8: ${actionId} was answered with ${String(count)} cancelled runs of ${cancelled.size}`,
      )
    return cancelled
  }

  /** Checks that counts add up: each item of each action has one outcome, and each action counts the runs it has changed. */
  checkEnd(): void {
    for (const action of this.#stage.memory.run(census.actions, {})) this.#checkAction(action)
  }

  #checkAction(action: BulkActionRow): void {
    const { timeline } = this.#stage
    const { seq, state, matched, succeeded } = action
    if (state !== 'finished' && state !== 'aborted')
      timeline.fail(`${state === 'running' ? 'stuck' : 'I8'}: action ${seq} has not ended: ${state}`)
    if (decidedItems(action) !== matched)
      timeline.fail(`I8: action ${seq} has ${decidedItems(action)} outcomes for ${matched} runs`)
    const known = this.#done.get(seq)?.size ?? 0
    if (succeeded !== known) timeline.fail(`I8: action ${seq} counts ${succeeded} changed runs of ${known}`)
  }
}
