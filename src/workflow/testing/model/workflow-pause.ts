import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import * as bulkPaused from '../../../bulk/transactions/bulk-paused.js'
import type { Store } from '../../../store/index.js'
import type { Starting, StartWork, TriggerGate } from '../../runs/trigger-gate.js'
import { type PausedWorkflow, storedPause } from '../../transactions/runs-pause.js'
import { runsOf } from './census.js'
import type { Knowledge, KnownPause } from './knowledge.js'
import { PROGRAM_URL } from './program.js'

const WHO = { actor: 'model@example.com', source: 'QUEUE_TOKEN', ip: '::1', details: '{}', entity: PROGRAM_URL }

/** Collaborators of the pause of the workflow. */
export interface WorkflowPauseDeps {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  readonly known: Knowledge
  now(): number
  /** Resumes all paused runs. */
  resumeRuns(): Promise<void>
}

/** The pause of the workflow of a simulation. Expects each run that begins during it to be paused, and sends none of it. */
export class WorkflowPause implements TriggerGate {
  readonly #deps: WorkflowPauseDeps
  /** The paused workflows that a server has in memory. */
  #workflows: readonly PausedWorkflow[] = []
  #expected: KnownPause | undefined

  constructor(deps: WorkflowPauseDeps) {
    this.#deps = deps
  }

  /** The pause that runs which begin now are expected to have. */
  get expected(): KnownPause | undefined {
    return this.#expected
  }

  /** The paused workflows, as a server knows them. */
  get workflows(): readonly PausedWorkflow[] {
    return this.#workflows
  }

  async pass<Made>(accountId: string, runs: readonly Starting[], _at: number, work: StartWork<Made>): Promise<Made> {
    const paused = this.#workflows.filter((workflow) => runs.some(({ url }) => url === workflow.url))
    if (!this.#expected) return work(paused)
    const { store, known } = this.#deps
    const before = new Set((await runsOf(store, accountId)).map(({ run_id }) => run_id))
    const made = await work(paused)
    const starting = new Set(runs.map(({ run_id }) => run_id))
    for (const { run_id: runId } of await runsOf(store, accountId)) {
      if (before.has(runId) || !starting.has(runId)) continue
      known.run(runId)
      known.paused.set(runId, this.#expected)
    }
    return made
  }

  /** Pauses the workflow, or ends its pause. */
  change(): Promise<void> {
    return this.#expected ? this.end() : this.#begin()
  }

  async #begin(): Promise<void> {
    const { store, random, accountId, now } = this.#deps
    const at = now()
    const clock = random.chance(0.5) ? 'hold' : 'keep'
    const pause = JSON.stringify({ by: WHO.actor, clock, ofWorkflow: true })
    const row = { account_id: accountId, url: PROGRAM_URL, paused_at: at, pause }
    const audit = this.#audit('Pause Workflow')
    await store.run(bulkPaused.pause, { row, most: 10, audit })
    this.#expected = { clock, since: at, ofWorkflow: true }
    await this.restart()
  }

  /** Ends the pause, if there is one. */
  async end(): Promise<void> {
    if (!this.#expected) return
    const { store, accountId, resumeRuns } = this.#deps
    await store.run(bulkPaused.resume, { accountId, url: PROGRAM_URL, audit: this.#audit('Resume Workflow') })
    this.#expected = undefined
    await this.restart()
    await resumeRuns()
  }

  /** Reads the paused workflows, as a server does when it starts. */
  async restart(): Promise<void> {
    const { store, accountId } = this.#deps
    const rows = await store.run(bulkPaused.paused, { accountId })
    this.#workflows = rows.map(({ url, paused_at: at, pause }) => ({ url, at, pause: storedPause(pause) }))
  }

  #audit(action: string) {
    const { accountId, now } = this.#deps
    return { ...WHO, action, log_id: newId('log_', now()), account_id: accountId, at: now() }
  }
}
