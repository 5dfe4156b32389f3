import { isObject, tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { storedLink } from '../runs/columns.js'
import type { InvokedRun } from '../transactions/runs-logs.js'
import type { ElementRow, ParentLink } from '../transactions/runs-rows.js'

/** What the list of a run says, as far as it can be understood: steps are opaque, and nothing of them is certain. */

/** A step as its SDK sent it; nothing of it is certain. */
export interface SentStep {
  readonly element: ElementRow
  readonly step: Readonly<Record<string, unknown>>
}

/** The steps of a list without its first element; of those that came twice, the first. */
export function sentSteps(elements: readonly ElementRow[]): SentStep[] {
  return distinct(elements.filter(({ kind, position }) => kind === 'step' && position > 0).map(toSent))
}

/** Reads a step. */
export function toSent(element: ElementRow): SentStep {
  return { element, step: asObject(parseJson(element.body)) ?? {} }
}

/** SDKs may send a step twice; the first one counts, for them as well. */
function distinct(sent: readonly SentStep[]): SentStep[] {
  const first = new Map<string, SentStep>()
  for (const one of sent) {
    const key = `${String(one.step.stepId)}:${String(one.step.targetStep ?? '')}`
    if (!first.has(key)) first.set(key, one)
  }
  return [...first.values()]
}

/** Whether a step announces a parallel branch. */
export function isPlan(step: SentStep['step']): boolean {
  return step.stepId === 0 && typeof step.targetStep === 'number'
}

/** What a call says about its step stands in the headers that its result will carry. */
export function callHeader(element: ElementRow, name: string): string | undefined {
  const headers = asObject(asObject(asObject(parseText(element.meta))?.callback)?.headers)
  const value = headers?.[`upstash-forward-upstash-workflow-${name}`]
  return typeof value === 'string' ? value : undefined
}

/** The step that a call is for. */
export function stepIdOfCall(element: ElementRow): number {
  return Number(callHeader(element, 'stepid'))
}

/** Whom an invoked run tells of its end. */
export function linkOf({ parent }: InvokedRun): ParentLink {
  return storedLink(parent)
}

/** The value of a JSON text; `undefined` when it is none. */
export function parseText(text: string | null | undefined): unknown {
  return tryParseJson(text ?? '')
}

/** What a run that invokes another one sends (reference workflow 4.8). */
export interface Invocation {
  /** The initial payload of the invoked run. */
  readonly payload: Uint8Array
  /** Whom to tell of its end. */
  readonly link: Omit<ParentLink, 'messageId'>
}

/**
 * Reads the body of an invocation.
 * @throws HomeportError `invalid_request` when it is not one.
 */
export function parseInvocation(body: Uint8Array | undefined): Invocation {
  const sent = asObject(parseJson(body))
  const { workflowRunId: runId, workflowUrl: url, workflowRunCreatedAt: createdAt } = sent ?? {}
  const step = asObject(sent?.step)
  if (typeof runId !== 'string' || typeof url !== 'string' || !step) {
    throw new HomeportError('invalid_request', {
      problem:
        'Upstash-Workflow-Invoke is "true", but the body is no invocation: it must be a JSON object with workflowRunId, workflowUrl and step of the run that invokes.',
    })
  }
  const payload = typeof sent?.body === 'string' ? sent.body : ''
  return {
    payload: new TextEncoder().encode(payload),
    link: { runId, url, createdAt: typeof createdAt === 'number' ? createdAt : 0, step },
  }
}

/** A JSON object, or `undefined` for everything else. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isObject(value) && !Array.isArray(value) ? value : undefined
}

/** The value that bytes hold as JSON text, or `undefined` when they do not. */
export function parseJson(bytes: Uint8Array | undefined): unknown {
  return tryParseJson(new TextDecoder().decode(bytes))
}

/** The step that has made a webhook says little besides the address. */
const MAX_STEP_BYTES = 16_384
const MARK = '"CreateWebhook"'

/**
 * The event of the webhook that a step has made; `undefined` for any other step. The client makes the address by itself,
 * with an event id that nobody can guess: knowing it is what the webhook asks for instead of credentials.
 * @param body the step as it was sent.
 */
export function webhookOf(body: Uint8Array | undefined): string | undefined {
  if (!body || body.byteLength > MAX_STEP_BYTES) return undefined
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!text.includes(MARK)) return undefined
  const step = tryParseJson(text.toString())
  if (!isObject(step) || step.stepType !== 'CreateWebhook') return undefined
  const made = typeof step.out === 'string' ? tryParseJson(step.out) : step.out
  return isObject(made) && typeof made.eventId === 'string' ? made.eventId : undefined
}
