import { jsonWithBytes } from '../../base/index.js'
import { type AttemptOutcome, dueOf, type HeaderMap, type PendingMessage } from '../../queue/index.js'
import type { FailureReason } from '../runs/run-state.js'
import type { RunOfDelivery } from '../transactions/runs-read.js'
import { base64, firstBytes, textBytes } from './bytes.js'
import { CALL_RESPONSE_LIMIT_BYTES } from './outbound.js'
import { PROTOCOL_HEADER } from './protocol.js'

/** The last response of a delivery; a substitute if there was none. */
export interface LastResponse {
  /** 0 if there was no response. */
  readonly status: number
  readonly headers: HeaderMap
  readonly body: Uint8Array
  /** The response was larger: this is its start. */
  readonly truncated: boolean
  /** Why there was no response, or why it is not acceptable. */
  readonly error?: string
}

/** Users, and tests of the SDK, know these failures by these texts (reference workflow 4.4). */
const UNKNOWN_SDK = 'trigger rest api is only usable with sdk versions after v1.0.0 major version'
const TEXTS: Readonly<Partial<Record<FailureReason, string>>> = {
  'not-a-workflow':
    'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint',
  'no-first-contact': UNKNOWN_SDK,
  'unknown-sdk': UNKNOWN_SDK,
}

/** Builds the last response of a delivery. */
export function lastResponse(outcome: AttemptOutcome, reason: FailureReason | undefined): LastResponse {
  const text = reason && TEXTS[reason]
  if (outcome.kind === 'answered') {
    const { status, headers, body, truncated } = outcome.response
    return { status, headers, body, truncated, ...(text !== undefined && { error: text }) }
  }
  // The SDK passes `message` of a JSON body to the failure function.
  const body = errorBody(outcome.error)
  return { status: 0, headers: JSON_TYPE, body, truncated: false, error: text ?? outcome.error }
}

const JSON_TYPE: HeaderMap = { 'Content-Type': ['application/json'] }

/** A body that SDKs pass to the failure function as the error. */
function errorBody(message: string): Uint8Array {
  return textBytes(JSON.stringify({ error: 'DeliveryError', message }))
}

/** A response as it is recorded with its run. */
export interface RecordedResponse extends Omit<LastResponse, 'body' | 'truncated'> {
  /** Base64. */
  readonly body: string
}

/** Builds the record of a response. @param keepBytes bytes of its body to keep: logs show many records at once. */
export function recordOf({ truncated: _, body, ...response }: LastResponse, keepBytes: number): RecordedResponse {
  return { ...response, body: base64(firstBytes(body, keepBytes)) }
}

/**
 * The body that reports the outcome of a call to the program (reference queue 3.6, workflow 4.6.1).
 * @param largestStepBytes limit of the step that the SDK makes of it.
 */
export function resultBody(
  message: PendingMessage,
  outcome: AttemptOutcome,
  largestStepBytes: number,
): Promise<Uint8Array> {
  const response = lastResponse(usableResponse(outcome, largestStepBytes), undefined)
  return jsonWithBytes({
    status: response.status,
    header: response.headers,
    body: response.body,
    retried: message.retried,
    // Equal to `retried`: the SDK ignores a failure that does not look final, and no other report follows.
    maxRetries: message.retried,
    sourceMessageId: message.messageId,
    url: message.url,
    method: message.method,
    sourceHeader: message.headers,
    sourceBody: '',
    notBefore: dueOf(message),
    createdAt: message.createdAt,
  })
}

/** Replaces a response by an error if it is truncated, which the program could not see, or too large for a step. */
function usableResponse(outcome: AttemptOutcome, largestStepBytes: number): AttemptOutcome {
  if (outcome.kind === 'unanswered') return outcome
  const { startedAt, finishedAt, response } = outcome
  const error = response.truncated
    ? `the response is larger than ${CALL_RESPONSE_LIMIT_BYTES} bytes, the limit of a call`
    : tooLargeAsStep(stepBytesOf(response.body, response.headers), largestStepBytes)
  return error === undefined ? outcome : { kind: 'unanswered', startedAt, finishedAt, error }
}

function tooLargeAsStep(bytes: number, maxBytes: number): string | undefined {
  if (bytes <= maxBytes) return undefined
  return `the response takes ${bytes} bytes as a step of the run, with its quotes and control characters escaped; the limit of a request is ${maxBytes}`
}

/** The data of a failure callback. */
export interface FailureReport {
  readonly run: RunOfDelivery
  readonly message: PendingMessage
  readonly response: LastResponse
  readonly dlqId: string
  /** The initial payload of the run, or the failing list. */
  readonly source: Uint8Array
}

/** The body of a failure callback (reference workflow 4.10). */
export function failureBody({ run, message, response, dlqId, source }: FailureReport): Promise<Uint8Array> {
  return jsonWithBytes({
    body: reportedBody(response),
    sourceBody: source,
    status: response.status,
    header: response.headers,
    retried: message.retried,
    maxRetries: message.maxRetries,
    sourceMessageId: message.messageId,
    url: run.url,
    method: message.method,
    sourceHeader: message.headers,
    notBefore: message.nextAt,
    createdAt: message.createdAt,
    callerIP: message.callerIp,
    dlqId,
    workflowRunId: run.run_id,
    workflowCreatedAt: run.created_at,
  })
}

/** Characters quoted from a response that was too large to keep. */
const QUOTED_CHARACTERS = 2_000

/** SDKs parse the response as JSON, and truncated JSON cannot be parsed: quotes its start instead. */
function reportedBody({ truncated, headers, body }: LastResponse): Uint8Array {
  if (!truncated || !headers[PROTOCOL_HEADER]) return body
  const beginning = Buffer.from(firstBytes(body, QUOTED_CHARACTERS)).toString()
  return errorBody(`the failing response is too large to be kept; it begins with ${beginning}`)
}

/**
 * The size of a third party's response as a step. An SDK sends the response as JSON in JSON, with one character for each
 * byte: a quote takes four bytes, a control character seven.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Control characters with a short escape, such as `\n`: one backslash in the inner JSON, two in the outer. */
const SHORT = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d])
/** Allowance for the rest of the step. */
const WRAPPING_BYTES = 4 * 1024

const COSTS = Uint8Array.from({ length: 256 }, (_, byte) => costOf(byte))

function costOf(byte: number): number {
  if (byte === QUOTE || byte === BACKSLASH) return 4
  if (SHORT.has(byte)) return 3
  if (byte < 0x20) return 7
  return byte < 0x80 ? 1 : 2
}

/** Size of the step that an SDK makes of a response, in bytes. */
export function stepBytesOf(body: Uint8Array, headers: HeaderMap): number {
  let bytes = WRAPPING_BYTES + Buffer.byteLength(JSON.stringify(JSON.stringify(headers)))
  for (const byte of body) bytes += COSTS[byte] ?? 0
  return bytes
}
