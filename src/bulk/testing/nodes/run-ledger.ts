import type { Stage } from '../../../queue/testing/nodes/stage.js'
import { firstResults, type ListedStep, type Program } from '../../../workflow/testing/model/program.js'
import type { ChildEnd, ParentLink } from '../../../workflow/transactions/runs-rows.js'
import * as census from './census.js'

/** A run that a client has triggered, or tried to. */
export interface KnownRun {
  readonly runId: string
  readonly program: Program
  isAcknowledged: boolean
  /** A client got the answer to a cancel of the run. */
  isCancelled: boolean
  /** A client got the answer to a pause of the run, or to a pause of its workflow before it triggered the run. */
  isPaused: boolean
  /** Of a restarted run: its first new step; earlier ones are kept from the original run. Of other runs: 0. */
  readonly fromStep: number
  /** Responses of its program that were not 2xx. */
  failures: number
  /** The store has lost commits since the run began, perhaps with a step of the run. */
  isUnsure: boolean
  /** Results that its program has returned. */
  results: string | undefined
  /** The message whose list was the first to hold all results of a block of parallel steps, by the block's first step. */
  readonly firsts: Map<number, string>
}

/** A list as a program receives it. */
export interface Delivery {
  readonly runId: string
  readonly messageId: string
  /** Ids of the messages of its elements, in order. */
  readonly ids: readonly string[]
  readonly steps: readonly ListedStep[]
}

const decoder = new TextDecoder()

/** The step of an element that a simulated program has sent. */
export function stepIn(body: Uint8Array): ListedStep {
  // Written by the programs of the simulation, or by the server from their requests.
  return JSON.parse(decoder.decode(body)) as ListedStep
}

/** Records what programs know of their runs, and checks each delivery. */
export class RunLedger {
  readonly #stage: Pick<Stage, 'timeline' | 'memory'>
  readonly runs = new Map<string, KnownRun>()
  deliveries = 0
  /** A client got the answer to a pause of the workflow. */
  #isWorkflowPaused = false
  #workflowResumedAt = Number.NEGATIVE_INFINITY

  constructor(stage: Pick<Stage, 'timeline' | 'memory'>) {
    this.#stage = stage
  }

  /** Records a run that a client is about to trigger, or to restart from a step. */
  trigger(runId: string, program: Program, fromStep = 0): KnownRun {
    const run: KnownRun = {
      runId,
      program,
      fromStep,
      isPaused: this.#isWorkflowPaused,
      isAcknowledged: false,
      isCancelled: false,
      isUnsure: false,
      failures: 0,
      results: undefined,
      firsts: new Map(),
    }
    this.runs.set(runId, run)
    return run
  }

  /** The store has lost commits that clients and programs know of. Only runs that begin later must end. */
  lostCommits(): void {
    this.#stage.timeline.forgive(/^(I[278]|a (client|program) got HomeportError)/)
    for (const run of this.runs.values()) run.isUnsure = true
  }

  /** I8: a request of a run must not begin after the answer to its cancel or pause. */
  begin(runId: string): void {
    this.deliveries++
    if (this.runs.get(runId)?.isCancelled)
      this.#stage.timeline.fail(`I8: a request of ${runId} began after the answer to its cancel`)
    // The results of requests in flight may have ended the run meanwhile, and with the run its pause.
    if (this.runs.get(runId)?.isPaused && this.#isActive(runId))
      this.#stage.timeline.fail(`I8: a request of ${runId} began after the answer to its pause`)
  }

  #isActive(runId: string): boolean {
    const row = this.#stage.memory.run(census.runs, {}).find(({ run_id }) => run_id === runId)
    return row?.state === 'RUN_STARTED'
  }

  /** A pause of the workflow was answered. Somebody may have resumed the workflow before the client got the answer. */
  workflowPaused(askedAt: number): void {
    this.#isWorkflowPaused = this.#workflowResumedAt < askedAt
  }

  /** The workflow is resumed. An action then resumes its stored runs; runs whose trigger is in flight begin as usual. */
  workflowResumed(): void {
    const stored = new Set(this.#stage.memory.run(census.runs, {}).map(({ run_id }) => run_id))
    for (const run of this.runs.values()) if (!stored.has(run.runId)) run.isPaused = false
    this.#isWorkflowPaused = false
    this.#workflowResumedAt = this.#stage.timeline.now
  }

  /** A run may be sent again: it was brought back, or its pause has ended. */
  continued(seq: number): void {
    const row = this.#stage.memory.run(census.runs, {}).find((each) => each.seq === seq)
    const run = this.runs.get(row?.run_id ?? '')
    if (!run) return
    run.isCancelled = false
    run.isPaused = false
  }

  /**
   * I7: a delivered list is the stored list up to its last element, and one list is the first to hold all results of a block
   * of parallel steps.
   */
  delivered({ runId, messageId, ids, steps }: Delivery): void {
    const { timeline, memory } = this.#stage
    const run = this.runs.get(runId)
    if (!run) {
      timeline.fail(`I7: ${runId} is delivered, which nobody has triggered`)
      return
    }
    const elements = memory.run(census.elements, { runId })
    this.#checkGaps(runId, elements)
    const stored = elements.filter(({ kind }) => kind === 'step').map(({ message_id }) => message_id)
    const isPrefix = ids.every((id, index) => id === stored[index]) && ids.at(-1) === messageId
    if (!isPrefix) timeline.fail(`I7: the list of ${runId} up to ${messageId} is not what is stored`)
    for (const firstId of firstToHold(run.program, steps)) this.#first(run, firstId, messageId)
  }

  #checkGaps(runId: string, elements: readonly census.ElementCensus[]): void {
    const gap = elements.findIndex(({ position }, index) => position !== index)
    if (gap >= 0) this.#stage.timeline.fail(`I7: the list of ${runId} has no element ${gap}`)
  }

  #first({ runId, firsts }: KnownRun, firstId: number, messageId: string): void {
    const known = firsts.get(firstId)
    if (known !== undefined && known !== messageId)
      this.#stage.timeline.fail(`I7: two lists of ${runId} are the first with all results of block ${firstId}`)
    firsts.set(firstId, messageId)
  }

  /** Checks what must hold when everything has ended. @param cancelled `runs.seq` of the cancelled runs. */
  checkEnd(cancelled: ReadonlySet<number>): void {
    const { timeline, memory } = this.#stage
    const rows = new Map(memory.run(census.runs, {}).map((row) => [row.run_id, row]))
    this.#checkInvocations()
    for (const run of this.runs.values()) {
      const row = rows.get(run.runId)
      if (!row && run.isAcknowledged) timeline.fail(`I2: the acknowledged run ${run.runId} is gone`)
      if (row) this.#checkRun(run, row, cancelled)
    }
  }

  /** I7: a step invokes one run, whose result it gets. */
  #checkInvocations(): void {
    const { timeline, memory } = this.#stage
    const invoked = new Set<string>()
    for (const { run_id, parent_seq, parent, response } of memory.run(census.invocations, {})) {
      const { step, messageId } = linkOf(parent)
      const of = `step ${step.stepId} of run ${parent_seq}`
      if (invoked.has(of)) timeline.fail(`I7: ${of} has invoked two runs`)
      invoked.add(of)
      const [answer] = memory.run(census.answer, { messageId })
      const body = answer && endOf(stepIn(answer.body)).body
      if (body !== undefined && body !== response) timeline.fail(`I7: ${of} got ${body} of ${run_id}, not ${response}`)
    }
  }

  #checkRun(run: KnownRun, { seq, state }: census.RunCensus, cancelled: ReadonlySet<number>): void {
    const { timeline, memory } = this.#stage
    const { runId, program, fromStep, firsts, results } = run
    const elements = memory.run(census.elements, { runId })
    this.#checkGaps(runId, elements)
    if ((state === 'RUN_CANCELED') !== cancelled.has(seq)) timeline.fail(`I8: ${runId} is ${state}`)
    if (state === 'RUN_STARTED' && !run.isUnsure) timeline.fail(`stuck: ${runId} has not ended`)
    if (state === 'RUN_FAILED' && run.failures <= RETRIES) timeline.fail(`I7: ${runId} has failed without a reason`)
    if (state !== 'RUN_SUCCESS') return
    const steps = elements.filter(({ kind, position }) => kind === 'step' && position > 0)
    const expected = resultsOf(steps.map(({ body }) => stepIn(body)))
    if (results !== expected) timeline.fail(`I7: ${runId} returned ${results} instead of ${expected}`)
    for (const [firstId, length] of parallelBlocks(program))
      if (firstId + length > fromStep && !firsts.has(firstId))
        timeline.fail(`I7: no list of ${runId} held all results of block ${firstId}`)
  }
}

/** Retries of each delivery of a run. */
const RETRIES = 4
/** The settings of every run. */
export const RETRY_SETTINGS = { 'upstash-retries': String(RETRIES), 'upstash-retry-delay': '1000' }

/** The link of an invoked run, which the server has written. */
const linkOf = (parent: string): ParentLink & { step: ListedStep } => JSON.parse(parent)

/** The end of an invoked run in the step that invoked it, which the server has written. */
const endOf = ({ out = '{}' }: ListedStep): ChildEnd => JSON.parse(out)

/** What a program returns: the first result of each step. */
export function resultsOf(steps: readonly ListedStep[]): string {
  const results = firstResults(steps)
  const ids = [...results.keys()].filter((id) => id > 0).sort((a, b) => a - b)
  return JSON.stringify(ids.map((id) => results.get(id) ?? null))
}

/** The blocks of parallel steps: first step to number of steps. */
function parallelBlocks(program: Program): ReadonlyMap<number, number> {
  const blocks = new Map<number, number>()
  let firstId = 1
  for (const { length } of program) {
    if (length > 1) blocks.set(firstId, length)
    firstId += length
  }
  return blocks
}

/** The blocks whose last missing result is the last element of this list. */
function* firstToHold(program: Program, steps: readonly ListedStep[]): Generator<number> {
  const [now, before] = [firstResults(steps), firstResults(steps.slice(0, -1))]
  for (const [firstId, length] of parallelBlocks(program)) {
    const ids = Array.from({ length }, (_, index) => firstId + index)
    if (ids.every((id) => now.has(id)) && !ids.every((id) => before.has(id))) yield firstId
  }
}
