import { isObject, type JsonLimits, JsonScan, mapInSlices, tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { storedLink } from '../runs/columns.js'
import type { InvokedRun, LoggedElement } from '../transactions/runs-logs.js'
import type { ElementRow, ParentLink } from '../transactions/runs-rows.js'

/** Parsing of what SDKs send. Steps are opaque to the server: every field may be absent or of another type. */

/** A parsed step; no field of it is validated. */
export interface SentStep {
  readonly element: ElementRow
  readonly step: Readonly<Record<string, unknown>>
}

/** The steps of a list without the first element, and without duplicates: the first one counts. */
export async function sentSteps(elements: readonly LoggedElement[]): Promise<SentStep[]> {
  const steps = elements.filter(({ kind, position }) => kind === 'step' && position > 0)
  return distinct(await mapInSlices(steps, toSent))
}

/** Parses a step. */
export function toSent(element: LoggedElement): SentStep {
  const { body, isCut } = element
  const step = asObject(parseJson(body))
  if (step) return { element, step }
  if (isCut) return { element, step: withoutResult(body, 'the steps of this run take more than 32 MiB') ?? {} }
  return { element, step: (isTooMuch(body) && withoutResult(body, TOO_MUCH)) || {} }
}

/** Parses the body of a step; without fields if it is not a JSON object. */
export function parseStep(body: Uint8Array | undefined): SentStep['step'] {
  return asObject(parseJson(body)) ?? {}
}

/** Bytes searched for the start of the result. The fields that SDKs send before it, such as the name, are shorter. */
const HEAD_BYTES = 65_536

/** A step without its result. SDKs send the result after the name; within a text its quotes would be escaped. */
function withoutResult(body: Uint8Array, because: string): SentStep['step'] | undefined {
  const text = new TextDecoder().decode(body.subarray(0, HEAD_BYTES))
  const end = text.indexOf(',"out":')
  const step = end < 0 ? undefined : asObject(tryParseJson(`${text.slice(0, end)}}`))
  return step && { ...step, out: `(left out, because ${because})` }
}

/** Removes duplicates. SDKs may send a step twice; the first counts, also for SDKs. */
function distinct(sent: readonly SentStep[]): SentStep[] {
  const first = new Map<string, SentStep>()
  for (const one of sent) {
    const key = `${String(one.step.stepId)}:${String(one.step.targetStep ?? '')}`
    if (!first.has(key)) first.set(key, one)
  }
  return [...first.values()]
}

/** Whether a step plans a parallel branch. */
export function isPlan(step: SentStep['step']): boolean {
  return step.stepId === 0 && typeof step.targetStep === 'number'
}

/**
 * Groups plans that were sent together, by the id of their branch. Their branches have consecutive ids, and each plan has
 * the number of branches.
 */
export function planGroups(plans: readonly SentStep[]): Map<number, SentStep[]> {
  const sorted = [...plans].sort((a, b) => Number(a.step.targetStep) - Number(b.step.targetStep))
  const groups = new Map<number, SentStep[]>()
  for (let at = 0; at < sorted.length; ) {
    const group = sorted.slice(at, at + Math.max(1, Number(sorted[at]?.step.concurrent) || 1))
    for (const { step } of group) groups.set(Number(step.targetStep), group)
    at += group.length
  }
  return groups
}

/** Reads a field of the step of a call. A call describes its step in the headers that its result will carry. */
export function callHeader(element: ElementRow, name: string): string | undefined {
  const headers = asObject(asObject(asObject(parseText(element.meta))?.callback)?.headers)
  const value = headers?.[`upstash-forward-upstash-workflow-${name}`]
  return typeof value === 'string' ? value : undefined
}

/** The id of the step of a call. */
export function stepIdOfCall(element: ElementRow): number {
  return Number(callHeader(element, 'stepid'))
}

/** The link from an invoked run to the run that invoked it. */
export function linkOf({ parent }: InvokedRun): ParentLink {
  return storedLink(parent)
}

/** Parses JSON text; `undefined` if it is invalid, or has too many values. */
export function parseText(text: string | null | undefined): unknown {
  const isLong = text && text.length > SURELY_QUICK_BYTES
  return isLong ? parseJson(new TextEncoder().encode(text)) : tryParseJson(text ?? '')
}

/** The request of a run that invokes another one (reference workflow 4.8). */
export interface Invocation {
  /** The initial payload of the invoked run. */
  readonly payload: Uint8Array
  /** The run to notify when it ends. */
  readonly link: Omit<ParentLink, 'messageId'>
}

/**
 * Parses the body of an invocation.
 * @throws HomeportError `invalid_request` if it is not one, `setting_limit` if its step is too large.
 */
export function parseInvocation(body: Uint8Array | undefined): Invocation {
  const sent = asObject(parseJson(body))
  const { workflowRunId: runId, workflowUrl: url, workflowRunCreatedAt: createdAt } = sent ?? {}
  const step = asObject(sent?.step)
  if (typeof runId !== 'string' || typeof url !== 'string' || !step) {
    throw new HomeportError('invalid_request', {
      problem:
        'Upstash-Workflow-Invoke is "true", but the body is not an invocation. Send a JSON object with workflowRunId, workflowUrl and step of the invoking run.',
    })
  }
  const payload = typeof sent?.body === 'string' ? sent.body : ''
  const link = { runId, url, createdAt: typeof createdAt === 'number' ? createdAt : 0, step }
  refuseLarge(link, 'The step of the invocation')
  return { payload: new TextEncoder().encode(payload), link }
}

/** Limit of the data of an invoked run or a wait, because the data of many of them is read at once. */
const MAX_BYTES = 65_536

/** @throws HomeportError `setting_limit` for data that is too large to be stored with an invoked run or a wait. */
export function refuseLarge(stored: object, what: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(stored))
  if (bytes <= MAX_BYTES) return
  const limit = `${MAX_BYTES} bytes`
  throw new HomeportError('setting_limit', {
    setting: `${what}, with its names and URLs,`,
    found: String(bytes),
    limit,
  })
}

/** The value if it is a JSON object, else `undefined`. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isObject(value) && !Array.isArray(value) ? value : undefined
}

/** A text up to this length is parsed in a few milliseconds, regardless of its content. */
const SURELY_QUICK_BYTES = 65_536
/** Maximum values of a longer text. Texts of SDKs have a handful, because results are strings in them. */
const MAX_VALUES = 50_000
const TOO_MUCH = `it has more than ${MAX_VALUES} values, or more than 64 levels`
const LIMITS: JsonLimits = { levels: 64, values: MAX_VALUES, members: MAX_VALUES, text: Number.POSITIVE_INFINITY }

/** Whether parsing would block the event loop for long: ten megabytes of empty lists take a second. */
function isTooMuch(json: Uint8Array): boolean {
  return json.length > SURELY_QUICK_BYTES && new JsonScan(json, LIMITS).advance(json.length) !== undefined
}

/** Parses bytes as JSON; `undefined` if they are not JSON, or have too many values. */
export function parseJson(bytes: Uint8Array | undefined): unknown {
  return bytes && isTooMuch(bytes) ? undefined : tryParseJson(new TextDecoder().decode(bytes))
}

/** A step that creates a webhook contains little besides the address. */
const MAX_STEP_BYTES = 16_384
const MARK = '"CreateWebhook"'
/** Longer event ids would not fit into an index. */
export const MAX_EVENT_ID_BYTES = 2_000

/**
 * The event id of the webhook that a step creates; `undefined` for any other step, and for an id that no event can have.
 * The SDK makes the address itself. Nobody can guess the event id in it, so the id serves as the credentials.
 * @param body the step as sent.
 */
export function webhookOf(body: Uint8Array | undefined): string | undefined {
  if (!body || body.byteLength > MAX_STEP_BYTES) return undefined
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!text.includes(MARK)) return undefined
  const step = tryParseJson(text.toString())
  if (!isObject(step) || step.stepType !== 'CreateWebhook') return undefined
  const made = typeof step.out === 'string' ? tryParseJson(step.out) : step.out
  return isObject(made) && typeof made.eventId === 'string' && isStorable(made.eventId) ? made.eventId : undefined
}

const isStorable = (eventId: string): boolean =>
  !eventId.includes('\0') && Buffer.byteLength(eventId) <= MAX_EVENT_ID_BYTES
