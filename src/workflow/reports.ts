import type { AttemptOutcome, HeaderMap, PendingMessage } from '../queue/index.js'
import type { RunOfDelivery } from '../store/operations/runs.js'
import { base64, textBytes } from './bytes.js'
import { stepBytesOf } from './call-size.js'
import { CALL_ANSWER_LIMIT_BYTES } from './outbound.js'
import type { FailureReason } from './run-state.js'

/** What came of the last attempt of a delivery, with something to show also when there was no answer. */
export interface LastAnswer {
  /** 0 when there was no answer. */
  readonly status: number
  readonly headers: HeaderMap
  /** Base64. */
  readonly body: string
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
    const { status, headers, body } = outcome.response
    return { status, headers, body: base64(body), ...(text !== undefined && { error: text }) }
  }
  // Our own words: the SDK shows the `message` of a JSON body to the failure function.
  const body = base64(textBytes(JSON.stringify({ error: 'DeliveryError', message: outcome.error })))
  return { status: 0, headers: { 'Content-Type': ['application/json'] }, body, error: text ?? outcome.error }
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
      body: answer.body,
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
  return textBytes(
    JSON.stringify({
      status: answer.status,
      header: answer.headers,
      body: answer.body,
      retried: message.retried,
      maxRetries: message.maxRetries,
      sourceMessageId: message.messageId,
      url: run.url,
      method: message.method,
      sourceHeader: message.headers,
      sourceBody: base64(source),
      notBefore: message.nextAt,
      createdAt: message.createdAt,
      callerIP: message.callerIp,
      dlqId,
      workflowRunId: run.run_id,
      workflowCreatedAt: run.created_at,
    }),
  )
}
