import type { Stage } from '../../../queue/testing/nodes/stage.js'
import { type BulkActionRow, decidedItems } from '../../transactions/bulk-action.js'
import * as bulkControl from '../../transactions/bulk-control.js'
import * as bulkKinds from '../../transactions/bulk-kinds.js'
import * as census from './census.js'

/** What bulk cancels have done, by their commits. */
export class BulkLedger {
  readonly #stage: Stage
  /** By `bulk_actions.seq`: `runs.seq` of those that it has cancelled. */
  readonly #cancelled = new Map<number, Set<number>>()
  /** By id of actions: since the answer to a pause or an abort they do nothing more. */
  readonly #stopped = new Set<string>()
  /** By id of actions: when they were last resumed. */
  readonly #resumed = new Map<string, number>()

  constructor(stage: Stage) {
    this.#stage = stage
    stage.effects.on(bulkKinds.cancelRunsBatch, (_, { succeeded, action }) => this.#decided(action, succeeded))
    stage.effects.on(bulkControl.resume, ({ actionId }) => {
      this.#stopped.delete(actionId)
      this.#resumed.set(actionId, stage.timeline.now)
    })
  }

  #decided(action: BulkActionRow, succeeded: readonly number[]): void {
    const { timeline } = this.#stage
    const known = this.#cancelled.get(action.seq) ?? new Set()
    this.#cancelled.set(action.seq, known)
    // The result also has those of an earlier attempt.
    const fresh = succeeded.filter((seq) => !known.has(seq))
    if (fresh.length === 0) return
    timeline.note(`action ${action.seq} cancels the runs ${fresh.join(', ')}`)
    if (this.#stopped.has(action.action_id))
      timeline.fail(`I8: action ${action.seq} went on after the answer to its stop`)
    for (const seq of fresh) {
      if (this.all.has(seq)) timeline.fail(`I8: two actions have cancelled run ${seq}`)
      known.add(seq)
    }
  }

  /** All cancelled runs. */
  get all(): ReadonlySet<number> {
    return new Set([...this.#cancelled.values()].flatMap((seqs) => [...seqs]))
  }

  /**
   * A pause or an abort is answered. Somebody may have resumed the action before its client hears of the pause.
   * @param askedAt when the client asked for it.
   */
  stopped(actionId: string, askedAt: number): void {
    const resumedAt = this.#resumed.get(actionId)
    if (resumedAt === undefined || resumedAt < askedAt) this.#stopped.add(actionId)
  }

  #find(actionId: string): BulkActionRow | undefined {
    return this.#stage.memory.run(census.actions, {}).find(({ action_id }) => action_id === actionId)
  }

  /** An action is answered: the runs that it has cancelled. @param count in the answer. */
  answered(actionId: string, count: unknown): ReadonlySet<number> {
    const cancelled = this.#cancelled.get(this.#find(actionId)?.seq ?? 0) ?? new Set()
    if (count !== cancelled.size)
      this.#stage.timeline.fail(
        `I8: ${actionId} was answered with ${String(count)} cancelled runs of ${cancelled.size}`,
      )
    return cancelled
  }

  /** Counts add up: each item of each action has one outcome, and the cancelled runs are those of the actions. */
  checkEnd(): void {
    for (const action of this.#stage.memory.run(census.actions, {})) this.#checkAction(action)
  }

  #checkAction(action: BulkActionRow): void {
    const { timeline } = this.#stage
    const { seq, state, matched, succeeded } = action
    if (state !== 'finished' && state !== 'aborted') timeline.fail(`I8: action ${seq} has not ended: ${state}`)
    if (decidedItems(action) !== matched)
      timeline.fail(`I8: action ${seq} has ${decidedItems(action)} outcomes for ${matched} runs`)
    const known = this.#cancelled.get(seq)?.size ?? 0
    if (succeeded !== known) timeline.fail(`I8: action ${seq} counts ${succeeded} cancelled runs of ${known}`)
  }
}
