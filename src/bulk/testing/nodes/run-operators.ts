import { isObject, newId } from '../../../base/index.js'
import { pauseWorkflow, resumeWorkflow } from '../../../contract/bulk/paused.js'
import { undoBulkAction, undoCancelOfRun } from '../../../contract/bulk/undo.js'
import { type ErrorCode, isError } from '../../../contract/errors/errors.js'
import { pauseRun, unpauseRun } from '../../../contract/workflow/pause.js'
import { restartRun } from '../../../contract/workflow/restart.js'
import type { Clients } from '../../../queue/testing/nodes/clients.js'
import type { Stage } from '../../../queue/testing/nodes/stage.js'
import { STARTS_AT_MS } from '../../../queue/testing/nodes/timeline.js'
import { PROGRAM_URL } from '../../../workflow/testing/model/program.js'
import type { BulkLedger } from './bulk-ledger.js'
import * as census from './census.js'
import type { RunLedger } from './run-ledger.js'
import { isUnavailable } from './sdk.js'

/** A slow request to pause takes effect within this time. */
const PAUSED_WITHIN_MS = 20_000
const CLOCKS = ['original', 'hold', 'now'] as const
/** Expected errors: another client may have undone or cancelled the run or action, or it has ended. */
const TOO_LATE: readonly ErrorCode[] = [
  'bulk_action_refused',
  'bulk_action_not_found',
  'run_not_found',
  'undo_refused',
  'run_not_pausable',
  'restart_refused',
  'run_fenced',
]

/** What clients of runs are built from. */
export interface RunClientsDeps {
  readonly stage: Stage
  readonly clients: Clients
  readonly runs: RunLedger
  readonly bulk: BulkLedger
}

/** Clients that undo cancels, restart runs, and pause runs and their workflow for a while. */
export class RunOperators {
  readonly #deps: RunClientsDeps

  constructor(deps: RunClientsDeps) {
    this.#deps = deps
  }

  /** Does one of these at random. */
  async act(): Promise<void> {
    const { random } = this.#deps.stage.timeline
    const work = random.pick([
      () => this.#undoAction(),
      () => this.#undoRun(),
      () => this.#pauseRun(),
      () => this.#pauseAll(),
      () => this.#restart(),
    ])
    try {
      await work?.()
    } catch (error) {
      if (!TOO_LATE.some((code) => isError(error, code))) throw error
    }
  }

  async #undoAction(): Promise<void> {
    const { stage, clients } = this.#deps
    const { random } = stage.timeline
    const cancels = stage.memory.run(census.actions, {}).filter(({ kind }) => kind === 'cancelRuns')
    const action = random.pick(cancels)
    if (!action) return
    stage.timeline.note(`a client undoes action ${action.seq}`)
    const body = { clock: random.pick(CLOCKS), ...(random.chance(0.5) && { ratePerSecond: 1 + random.below(4) }) }
    await clients.ask(undoBulkAction, { params: { actionId: action.action_id }, body })
  }

  async #undoRun(): Promise<void> {
    const { stage, clients } = this.#deps
    const run = stage.timeline.random.pick(
      stage.memory.run(census.runs, {}).filter(({ state }) => state === 'RUN_CANCELED'),
    )
    if (!run) return
    stage.timeline.note(`a client undoes the cancel of ${run.run_id}`)
    await clients.ask(undoCancelOfRun, { params: { workflowRunId: run.run_id }, body: {} })
  }

  /** Pauses a run and resumes it later, even without an answer to the pause. */
  async #pauseRun(): Promise<void> {
    const { stage, clients, runs, bulk } = this.#deps
    const { timeline } = stage
    const row = timeline.random.pick(stage.memory.run(census.runs, {}).filter(({ state }) => state === 'RUN_STARTED'))
    if (!row) return
    timeline.note(`a client pauses ${row.run_id}`)
    const params = { workflowRunId: row.run_id }
    this.#later(() => clients.ask(unpauseRun, { params }))
    await clients.ask(pauseRun, { params, body: { clock: timeline.random.pick(['keep', 'hold']) } })
    const run = runs.runs.get(row.run_id)
    // Another client may have resumed the run before this client got its answer.
    if (run && bulk.isPaused(row.seq)) run.isPaused = true
  }

  async #pauseAll(): Promise<void> {
    const { stage, clients, runs } = this.#deps
    const body = { workflowUrl: PROGRAM_URL }
    const askedAt = stage.timeline.now
    stage.timeline.note('a client pauses the workflow')
    this.#later(() => clients.ask(resumeWorkflow, { body }))
    const answer = await clients.ask(pauseWorkflow, { body })
    if (!isObject(answer)) stage.timeline.fail(`the pause of the workflow was answered ${String(answer)}`)
    runs.workflowPaused(askedAt)
  }

  /** Restarts a run, active or ended, from any of its steps. */
  async #restart(): Promise<void> {
    const { stage, clients, runs } = this.#deps
    const { timeline, memory } = stage
    const original = runs.runs.get(timeline.random.pick(memory.run(census.runs, {}))?.run_id ?? '')
    if (!original) return
    const fromStep = 1 + timeline.random.below(original.program.flat().length)
    const run = runs.trigger(newId('wfr_', STARTS_AT_MS + timeline.now), original.program, fromStep)
    timeline.note(`a client restarts ${original.runId} from step ${fromStep} as ${run.runId}`)
    const headers = { 'upstash-workflow-runid': run.runId }
    await clients.ask(restartRun, { params: { workflowRunId: original.runId }, headers, body: { fromStep } })
    run.isAcknowledged = true
  }

  /** Ends a pause. Repeats that while a pause may be in flight, or an undo may bring back a run that is still paused. */
  #later(resume: () => Promise<unknown>): void {
    const { timeline, memory } = this.#deps.stage
    const until = timeline.now + PAUSED_WITHIN_MS
    const again = async (): Promise<void> => {
      try {
        await resume()
      } catch (error) {
        const isExpected = isUnavailable(error) || TOO_LATE.some((code) => isError(error, code))
        if (!isExpected) timeline.fail(`a client got ${String(error)}`)
      }
      if (timeline.now > until && !memory.run(census.isBusy, {})) return
      timeline.after(3_000, () => void again())
    }
    timeline.after(timeline.between(500, 6_000), () => void again())
  }
}
