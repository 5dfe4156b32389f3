import { isObject, parseDuration } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isPlan, planGroups, type SentStep, sentSteps, webhookOf } from '../protocol/sent-steps.js'
import type { ElementRow } from '../transactions/runs-rows.js'

/** The step at which a run restarts, and its changed inputs. */
export interface RestartRequest {
  readonly fromStep: number
  /** Absent: the payload of the run. */
  readonly payload?: string | undefined
  /** Replaces results of earlier steps, by step id. */
  readonly results: ReadonlyMap<number, unknown>
  /** If the step is a parallel branch: whether results of the other branches are kept, or these branches run again. */
  readonly siblings: 'keep' | 'again'
}

/** An element that the new run begins with, after its payload. */
export interface KeptElement {
  readonly body: Uint8Array
  /** JSON of `ElementMeta`. */
  readonly meta: string | null
  /** When the original run got it, Unix milliseconds; absent for an element that the restart makes. */
  readonly cameAt?: number
  /** When a message delivers it, Unix milliseconds; absent for an element that only precedes others. */
  readonly dueAt?: number
}

/** The list that a restarted run begins with. */
export interface RestartPlan {
  readonly payload: Uint8Array
  /** Empty: the run begins with its first step. */
  readonly kept: readonly KeptElement[]
}

/**
 * Plans the list of a restarted run. The SDK executes the step that follows the list that it receives. So the list ends
 * before the chosen step, and its last element is delivered. Within a parallel group, the SDK executes the branch whose
 * plan ends the list: results of the other branches come first, then a delivery for the plan of each branch without result.
 * @param elements the list of the original run, in order.
 * @throws HomeportError `restart_refused` if the steps before the chosen one are incomplete, or cannot be replayed.
 */
export async function planRestart(
  runId: string,
  elements: readonly ElementRow[],
  request: RestartRequest,
  dueAt: number,
): Promise<RestartPlan> {
  const [first] = elements
  if (first?.position !== 0) throw refused(runId, 'its payload is no longer stored')
  const run = new RestartableRun(runId, await sentSteps(elements), request)
  const payload = request.payload === undefined ? first.body : new TextEncoder().encode(request.payload)
  return { payload, kept: run.kept(dueAt) }
}

class RestartableRun {
  readonly #runId: string
  readonly #sent: readonly SentStep[]
  readonly #request: RestartRequest
  readonly #results: ReadonlyMap<number, SentStep>
  /** The plans of the parallel group of the chosen step, by branch; empty if the step is not in a group. */
  readonly #branches: ReadonlyMap<number, SentStep>
  /** All steps below this id stay. */
  readonly #end: number

  constructor(runId: string, sent: readonly SentStep[], request: RestartRequest) {
    this.#runId = runId
    this.#sent = sent
    this.#request = request
    this.#results = new Map(sent.filter(({ step }) => !isPlan(step)).map((one) => [Number(one.step.stepId), one]))
    const group = planGroups(sent.filter(({ step }) => isPlan(step))).get(request.fromStep) ?? []
    this.#branches = new Map(group.map((one) => [Number(one.step.targetStep), one]))
    this.#end = Math.min(request.fromStep, ...this.#branches.keys())
  }

  kept(dueAt: number): KeptElement[] {
    this.#requireResults()
    const before = this.#sent.filter((one) => idOf(one) < this.#end)
    const { finished, open } = this.#splitBranches()
    this.#requireEdited([...before, ...finished])
    refuseLostWebhooks(this.#runId, [...before, ...finished])
    const kept = [...before, ...finished].map((one): KeptElement => this.#edited(one))
    if (open.length > 0) return [...kept, ...open.map((plan) => ({ ...begun(plan), dueAt: dueOf(plan, dueAt) }))]
    const last = kept.pop()
    return last ? [...kept, { ...last, dueAt }] : []
  }

  /** The SDK counts steps, so after a gap in the list, a step would get the result of another step. */
  #requireResults(): void {
    for (let id = 1; id < this.#end; id++) {
      if (this.#results.has(id)) continue
      const found = `step ${id} has no result, which step ${this.#request.fromStep} needs`
      throw refused(this.#runId, `${found}. Restart it from step ${id} or an earlier one`)
    }
  }

  #splitBranches(): { finished: readonly SentStep[]; open: readonly SentStep[] } {
    const { fromStep, siblings } = this.#request
    if (siblings === 'again' || this.#branches.size === 0) return { finished: [], open: [] }
    const isFinished = (id: number): boolean => id !== fromStep && this.#results.has(id)
    const ofGroup = this.#sent.filter((one) => this.#branches.has(idOf(one)))
    return {
      finished: ofGroup.filter((one) => isFinished(idOf(one))),
      open: [...this.#branches].filter(([id]) => !isFinished(id)).map(([, plan]) => plan),
    }
  }

  #requireEdited(kept: readonly SentStep[]): void {
    const ids = new Set(kept.filter(({ step }) => !isPlan(step)).map(idOf))
    for (const id of this.#request.results.keys()) {
      if (ids.has(id)) continue
      const rule = 'Only results of steps that the new run keeps can be replaced'
      throw refused(
        this.#runId,
        `step ${id} is not one that it keeps when it begins with step ${this.#request.fromStep}. ${rule}`,
      )
    }
  }

  #edited(one: SentStep): KeptElement {
    const id = idOf(one)
    if (isPlan(one.step) || !this.#request.results.has(id)) return plainly(one)
    const problem = whyFixed(one.step)
    if (problem) throw refused(this.#runId, `the result of step ${id} cannot be replaced: ${problem}`)
    const step = { ...one.step, ...resultFields(one.step, this.#request.results.get(id)) }
    return { ...begun(one), body: new TextEncoder().encode(JSON.stringify(step)) }
  }
}

/** An element of the original run, unchanged. */
const plainly = ({ element }: SentStep): KeptElement => {
  return { body: element.body, meta: element.meta, cameAt: element.created_at }
}

/** An element that the restart begins again or has edited: its time is that of the restart. */
const begun = ({ element: { body, meta } }: SentStep): KeptElement => ({ body, meta })

/** The id of the step that an element belongs to; a plan belongs to its branch. */
function idOf({ step }: SentStep): number {
  return Number(isPlan(step) ? step.targetStep : step.stepId)
}

function whyFixed({ stepType, sleepFor, sleepUntil }: SentStep['step']): string | undefined {
  if (sleepFor !== undefined || sleepUntil !== undefined) return 'it is a sleep, which has none'
  if (stepType === 'CreateWebhook') return 'it is the address of a webhook'
  if (stepType === 'WaitForWebhook') return 'it is a request to a webhook'
  return undefined
}

/** The fields of a step that hold its result, as its SDK stores them. */
function resultFields({ stepType, waitEventId }: SentStep['step'], result: unknown): object {
  const text = JSON.stringify(result)
  if (typeof waitEventId === 'string') return { out: Buffer.from(text).toString('base64'), waitTimeout: false }
  // The SDK decodes some results of calls as if each character was a byte. ASCII decodes correctly either way.
  return { out: stepType === 'Call' ? inAscii(text) : text }
}

function inAscii(json: string): string {
  return json.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The plan of a sleep is delivered when the sleep ends. */
function dueOf({ step: { sleepFor, sleepUntil } }: SentStep, dueAt: number): number {
  if (typeof sleepUntil === 'number') return Math.max(dueAt, Math.round(sleepUntil * 1_000))
  const ms = typeof sleepFor === 'number' ? sleepFor * 1_000 : parseDuration(String(sleepFor ?? ''))
  return dueAt + Math.max(0, Math.round(ms ?? 0))
}

/** Refuses kept webhooks that received nothing: their address names the original run, so they cannot reach the new one. */
function refuseLostWebhooks(runId: string, kept: readonly SentStep[]): void {
  const received = new Set(kept.map(({ step }) => step.waitEventId))
  const lost = kept.find(({ element }) => {
    const eventId = webhookOf(element.body)
    return eventId !== undefined && !received.has(eventId)
  })
  if (!lost) return
  const found = `step ${idOf(lost)} created a webhook whose address belongs to this run, and nothing was received from it`
  throw refused(runId, `${found}. Restart it from step ${idOf(lost)} or an earlier one`)
}

function refused(runId: string, problem: string): HomeportError {
  return new HomeportError('restart_refused', { runId, problem })
}

/** Parses the replaced results of a request, whose names are step ids. */
export function editedResults(results: Readonly<Record<string, unknown>> | undefined): ReadonlyMap<number, unknown> {
  return new Map(isObject(results) ? Object.entries(results).map(([id, result]) => [Number(id), result]) : [])
}
