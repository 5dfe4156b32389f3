import { isObject, newId } from '../../../base/index.js'
import { cancelWorkflowRuns } from '../../../contract/bulk/actions.js'
import { abortBulkAction, pauseBulkAction, resumeBulkAction } from '../../../contract/bulk/control.js'
import { isError } from '../../../contract/errors/errors.js'
import { publishMessage } from '../../../contract/queue/messages.js'
import { notifyEvent } from '../../../contract/workflow/events.js'
import { STARTS_AT_MS } from '../../../queue/testing/nodes/timeline.js'
import { programOf, type StepKind, triggerItem } from '../../../workflow/testing/model/program.js'
import * as bulkRead from '../../transactions/bulk-read.js'
import * as census from './census.js'
import { RETRY_SETTINGS } from './run-ledger.js'
import { type RunClientsDeps, RunOperators } from './run-operators.js'
import { EVENTS, isUnavailable } from './sdk.js'

const KINDS: readonly StepKind[] = ['run', 'run', 'run', 'sleep', 'wait', 'call', 'invoke']
/** Maximum time that a client waits for a cancel, which may be slow because of its rate limit. */
const PATIENCE_MS = 30_000

/** A slow request to pause takes effect within this time. */
const PAUSED_WITHIN_MS = 20_000

/** Which runs a client cancels, and how. */
interface Cancel {
  readonly workflowRunIds?: readonly string[]
  readonly ratePerSecond?: number
  readonly async?: true
}

/** Clients that trigger runs, notify events, cancel in bulk and control the cancels, undo them, and pause runs. */
export class RunClients {
  readonly #deps: RunClientsDeps

  readonly #operators: RunOperators

  constructor(deps: RunClientsDeps) {
    this.#deps = deps
    this.#operators = new RunOperators(deps)
  }

  /** Perhaps does something. */
  act(): void {
    const dice = this.#deps.stage.timeline.random.below(100)
    if (dice < 30) this.#try(() => this.#trigger())
    else if (dice < 45) this.#try(() => this.#notify())
    else if (dice < 51) this.#try(() => this.#cancel())
    else if (dice < 75) this.#control()
    else if (dice < 93) this.#try(() => this.#operators.act())
  }

  /** Sends requests. A refusal or an unknown outcome that a client must expect does not fail the simulation. */
  #try(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      const isExpected = isUnavailable(error) || isError(error, 'bulk_action_interrupted')
      if (!isExpected) this.#deps.stage.timeline.fail(`a client got ${String(error)}`)
    })
  }

  async #trigger(): Promise<void> {
    const { stage, clients, runs } = this.#deps
    const { random } = stage.timeline
    const program = programOf(random, () => random.pick(KINDS) ?? 'run')
    const run = runs.trigger(newId('wfr_', STARTS_AT_MS + stage.timeline.now), program)
    stage.timeline.note(`a client triggers ${run.runId}: ${JSON.stringify(program)}`)
    const { destination, headers, body } = triggerItem(run.runId, program, RETRY_SETTINGS)
    await clients.ask(publishMessage, { params: { destination }, headers, body })
    run.isAcknowledged = true
  }

  async #notify(): Promise<void> {
    const event = this.#deps.stage.timeline.random.pick(EVENTS)
    await this.#deps.clients.ask(notifyEvent, { params: { event }, body: new Uint8Array() })
  }

  #anyCancel(): Cancel {
    const { stage, runs } = this.#deps
    const { random } = stage.timeline
    const all = [...runs.runs.keys()]
    return {
      ...(random.chance(0.4) && { workflowRunIds: all.filter(() => random.chance(0.3)) }),
      ...(random.chance(0.6) && { ratePerSecond: 1 + random.below(4) }),
      ...(random.chance(0.3) && { async: true }),
    }
  }

  async #cancel(): Promise<void> {
    const { stage, clients, bulk } = this.#deps
    const cancel = this.#anyCancel()
    stage.timeline.note(`a client cancels runs: ${JSON.stringify(cancel)}`)
    const wanted = this.#wantedBy(cancel)
    const askedAt = stage.timeline.now
    const answer = await clients.ask(cancelWorkflowRuns, { body: { ...cancel, report: true } }, PATIENCE_MS)
    // With 202 the runs are cancelled later.
    if (!isObject(answer) || typeof answer.cancelled !== 'number') return
    stage.timeline.note(`the cancel is answered: ${JSON.stringify(answer)}`)
    const cancelled = bulk.answered(String(answer.actionId), answer.cancelled)
    const wasAborted = typeof answer.skipped === 'number'
    for (const { seq, run_id, state } of stage.memory.run(census.runs, {})) {
      const run = this.#deps.runs.runs.get(run_id)
      if (run && cancelled.has(seq) && bulk.all.has(seq)) run.isCancelled = true
      const isBack = bulk.wasBroughtBackSince(seq, askedAt)
      if (state === 'RUN_STARTED' && wanted.has(run_id) && !wasAborted && !isBack)
        stage.timeline.fail(`I8: ${run_id} is active after the answer to its cancel`)
    }
  }

  /** The acknowledged runs that a cancel must end. */
  #wantedBy({ workflowRunIds }: Cancel): ReadonlySet<string> {
    const acknowledged = [...this.#deps.runs.runs.values()].filter(({ isAcknowledged }) => isAcknowledged)
    const ids = acknowledged.map(({ runId }) => runId)
    return new Set(workflowRunIds ? ids.filter((id) => workflowRunIds.includes(id)) : ids)
  }

  /** Pauses or aborts a cancel that runs. */
  #control(): void {
    const { stage } = this.#deps
    const { random } = stage.timeline
    const action = random.pick(stage.memory.run(bulkRead.running, {}))
    if (!action) return
    const actionId = action.action_id
    stage.timeline.note(`a client stops action ${action.seq}`)
    const isAbort = random.chance(0.3)
    this.#try(() => this.#stop(isAbort ? abortBulkAction : pauseBulkAction, actionId))
    if (isAbort) return
    // Resumes even without an answer to the pause, because the action may be paused, or will be.
    const until = stage.timeline.now + PAUSED_WITHIN_MS
    stage.timeline.after(stage.timeline.between(500, 6_000), () => void this.#resume(actionId, until))
  }

  async #stop(endpoint: typeof pauseBulkAction | typeof abortBulkAction, actionId: string): Promise<void> {
    const { stage, clients, bulk } = this.#deps
    const askedAt = stage.timeline.now
    try {
      await clients.ask(endpoint, { params: { actionId } })
      bulk.stopped(actionId, askedAt)
    } catch (error) {
      // The action has ended, or somebody has stopped it before.
      if (!isError(error, 'bulk_action_refused')) throw error
    }
  }

  /** Retries to resume a cancel until that succeeds, or until no pause can be in flight any more. */
  async #resume(actionId: string, until: number): Promise<void> {
    const { timeline } = this.#deps.stage
    try {
      await this.#deps.clients.ask(resumeBulkAction, { params: { actionId } })
    } catch (error) {
      const isRunning = isError(error, 'bulk_action_refused')
      if (isRunning && timeline.now > until) return
      if (!isRunning && !isUnavailable(error)) timeline.fail(`a client got ${String(error)}`)
      timeline.after(1_500, () => void this.#resume(actionId, until))
    }
  }
}
