import type { AttemptOutcome, HeaderMap, PendingMessage } from '../../queue/index.js'
import type { FailureReason } from '../runs/run-state.js'
import type { RunOfDelivery } from '../transactions/runs-read.js'
import { base64, firstBytes, textBytes } from './bytes.js'
import { CALL_ANSWER_LIMIT_BYTES } from './outbound.js'
import { PROTOCOL_HEADER } from './protocol.js'

/** What came of the last attempt of a delivery, with something to show also when there was no answer. */
export interface LastAnswer {
  /** 0 when there was no answer. */
  readonly status: number
  readonly headers: HeaderMap
  readonly body: Uint8Array
  /** The answer was larger: this is its beginning. */
  readonly truncated: boolean
  /** Why there was no answer, or why the answer does not do. */
  readonly error?: string
}

/** The texts by which users (and tests of the SDK) know these failures (reference workflow 4.4). */
const UNKNOWN_SDK = 'trigger rest api is only usable with sdk versions after v1.0.0 major version'
const TEXTS: Readonly<Partial<Record<FailureReason, string>>> = {
  'not-a-workflow':
    'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint',
  'no-first-contact': UNKNOWN_SDK,
  'unknown-sdk': UNKNOWN_SDK,
}

/** The last answer of a delivery. */
export function lastAnswer(outcome: AttemptOutcome, reason: FailureReason | undefined): LastAnswer {
  const text = reason && TEXTS[reason]
  if (outcome.kind === 'answered') {
    const { status, headers, body, truncated } = outcome.response
    return { status, headers, body, truncated, ...(text !== undefined && { error: text }) }
  }
  // Our own words: the SDK shows the `message` of a JSON body to the failure function.
  const body = ownWords(outcome.error)
  return { status: 0, headers: JSON_TYPE, body, truncated: false, error: text ?? outcome.error }
}

const JSON_TYPE: HeaderMap = { 'Content-Type': ['application/json'] }

/** What an SDK shows its failure function as what has failed. */
function ownWords(message: string): Uint8Array {
  return textBytes(JSON.stringify({ error: 'DeliveryError', message }))
}

/** An answer as it is recorded with its run. */
export interface RecordedAnswer extends Omit<LastAnswer, 'body' | 'truncated'> {
  /** Base64. */
  readonly body: string
}

/** The record of an answer. @param keepBytes of its body this much is kept, because logs show many of them at once. */
export function recordOf({ truncated: _, body, ...answer }: LastAnswer, keepBytes: number): RecordedAnswer {
  return { ...answer, body: base64(firstBytes(body, keepBytes)) }
}

/**
 * The body that tells a program what came of a call (reference queue 3.6, workflow 4.6.1).
 * @param largestStepBytes a step that is larger would not be accepted.
 */
export function resultBody(message: PendingMessage, outcome: AttemptOutcome, largestStepBytes: number): Uint8Array {
  const answer = lastAnswer(usableAnswer(outcome, largestStepBytes), undefined)
  return textBytes(
    JSON.stringify({
      status: answer.status,
      header: answer.headers,
      body: base64(answer.body),
      retried: message.retried,
      // This is the only report, also where retries are left: the SDK ignores a failed one that does not look final.
      maxRetries: message.retried,
      sourceMessageId: message.messageId,
      url: message.url,
      method: message.method,
      sourceHeader: message.headers,
      sourceBody: '',
      notBefore: message.nextAt,
      createdAt: message.createdAt,
    }),
  )
}

/** Half an answer would look like a whole one to the program, and what it cannot send back would fail its run. */
function usableAnswer(outcome: AttemptOutcome, largestStepBytes: number): AttemptOutcome {
  if (outcome.kind === 'unanswered') return outcome
  const { startedAt, finishedAt, response } = outcome
  const error = response.truncated
    ? `the answer is larger than ${CALL_ANSWER_LIMIT_BYTES} bytes, the most that a call can bring`
    : tooLargeAsStep(stepBytesOf(response.body, response.headers), largestStepBytes)
  return error === undefined ? outcome : { kind: 'unanswered', startedAt, finishedAt, error }
}

function tooLargeAsStep(bytes: number, mostBytes: number): string | undefined {
  if (bytes <= mostBytes) return undefined
  return `the answer takes ${bytes} bytes as a step of the run, where its quotes and control characters are escaped; a request may have ${mostBytes}`
}

/** What the body of a failure callback is made of. */
export interface FailureReport {
  readonly run: RunOfDelivery
  readonly message: PendingMessage
  readonly answer: LastAnswer
  readonly dlqId: string
  /** What the program learns what it was about from: the initial payload of the run, or the failing list. */
  readonly source: Uint8Array
}

/** The body of a failure callback (reference workflow 4.10). */
export function failureBody({ run, message, answer, dlqId, source }: FailureReport): Uint8Array {
  const others = JSON.stringify({
    status: answer.status,
    header: answer.headers,
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
  // Both may have many MiB, and base64 needs none of the escaping that JSON.stringify would look for.
  const large = [`{"body":"`, base64(wholeAnswer(answer)), `","sourceBody":"`, base64(source), `",`]
  return asciiThenText(large, others.slice(1))
}

/** Of an answer that could not be kept whole so many characters are quoted. */
const QUOTED_CHARACTERS = 2_000

/** An SDK reads the answer of an SDK as JSON, of which a part is worth nothing. */
function wholeAnswer({ truncated, headers, body }: LastAnswer): Uint8Array {
  if (!truncated || !headers[PROTOCOL_HEADER]) return body
  const beginning = Buffer.from(firstBytes(body, QUOTED_CHARACTERS)).toString()
  return ownWords(`the failing answer is too large to be kept, and begins with ${beginning}`)
}

function asciiThenText(ascii: readonly string[], text: string): Uint8Array {
  const asciiLength = ascii.reduce((sum, { length }) => sum + length, 0)
  const bytes = new Uint8Array(asciiLength + Buffer.byteLength(text))
  const view = Buffer.from(bytes.buffer)
  const end = ascii.reduce((at, part) => at + view.write(part, at, 'latin1'), 0)
  view.write(text, end, 'utf8')
  return bytes
}

/**
 * What the answer of a third party takes on its way back: an SDK sends it as a step, where it is text (a character for
 * each byte) in JSON in JSON. Quotes make it four times as large, and control characters seven times.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Control characters with a short escape, such as `\n`: one backslash in the inner JSON, two in the outer. */
const SHORT = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d])
/** The step around the answer, its names included. */
const WRAPPING_BYTES = 4 * 1024

const COSTS = Uint8Array.from({ length: 256 }, (_, byte) => costOf(byte))

function costOf(byte: number): number {
  if (byte === QUOTE || byte === BACKSLASH) return 4
  if (SHORT.has(byte)) return 3
  if (byte < 0x20) return 7
  return byte < 0x80 ? 1 : 2
}

/** Bytes of the step that an SDK makes of an answer. */
export function stepBytesOf(body: Uint8Array, headers: HeaderMap): number {
  let bytes = WRAPPING_BYTES + Buffer.byteLength(JSON.stringify(JSON.stringify(headers)))
  for (const byte of body) bytes += COSTS[byte] ?? 0
  return bytes
}
