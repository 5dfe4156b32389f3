import { unreachable } from '../../base/index.js'
import type { AttemptOutcome, Decision, DeliveryResponse } from '../../queue/index.js'
import type { FailureState, RunState } from '../../store/schema/runs.js'
import { PROTOCOL_HEADER, SDK_HEADER } from '../protocol/protocol.js'

/**
 * The state machine of a run, as pure functions: outcome in, verdict out. `run-messages.ts`, `intake.ts` and the routes
 * execute the verdict, by a transaction that checks the state it starts from.
 *
 *                       ┌── finish: the program has returned ──────────────▶ RUN_SUCCESS
 *   trigger ▶ RUN_STARTED ── fail: a delivery failed for good,
 *               │  ▲    │          or the endpoint is no workflow ─────────▶ RUN_FAILED ─┐
 *               └──┘    └── cancel: wins over everything later ────────────▶ RUN_CANCELED│
 *              append                             CALLBACK_INPROGRESS ◀── failure callback
 *                                                   │            │
 *                                          CALLBACK_SUCCESS  CALLBACK_FAIL
 *
 * `append` and `finish` come from the program, `fail` from the outcome of a delivery, `cancel` from anyone with the token.
 * A run that is paused stays RUN_STARTED, and its messages are parked (`transactions/runs-pause.ts`).
 * `undo` leads from RUN_CANCELED back to RUN_STARTED (`transactions/runs-undo.ts`). Otherwise the three end states are
 * final: nothing is appended to an ended run, and only its failure callback is delivered.
 */

/**
 * What a message of a run delivers.
 * - `contact`: the first element; the SDK must confirm the run before it begins (reference workflow 4.4);
 * - `first`: the first element; the response must show that the endpoint is a workflow;
 * - `untried`: the first element of a trigger without an SDK; the response must show an SDK of 1.0 or newer;
 * - `step`: the list up to an element. During a wait for an event: its deadline;
 * - `call`: a request to a third party for `context.call`;
 * - `result`: the outcome of such a request, for the program;
 * - `failure`: the failure callback of a failed run.
 */
export type Role = 'contact' | 'first' | 'untried' | 'step' | 'call' | 'result' | 'failure'

/** Why a run fails. */
export type FailureReason =
  /** The last attempt of a delivery failed. */
  | 'delivery'
  /** An SDK triggered the run, and the response lacks the header of an SDK. */
  | 'not-a-workflow'
  /** The SDK did not confirm the first contact. */
  | 'no-first-contact'
  /** The trigger came without an SDK, and the response does not name an SDK of 1.0 or newer. */
  | 'unknown-sdk'

/** The consequence of a delivery's outcome. */
export type Verdict =
  /** The message is done; nothing else changes. */
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'fail'; readonly reason: FailureReason }
  /** The run fails unless it is confirmed by now: SDKs confirm before they answer the delivery. */
  | { readonly kind: 'fail-unless-confirmed' }
  /** The call to the third party has ended: its result goes to the program. */
  | { readonly kind: 'return-call' }
  /** `null`: the program has no failure function. */
  | { readonly kind: 'callback-ended'; readonly state: FailureState | null }

/** Whether a message delivers the list up to its element, and nothing else. */
export function deliversList(role: Role): boolean {
  return role === 'step' || role === 'first' || role === 'untried'
}

/** Whether a message of a run in this state may still be sent. */
export function mayDeliver(state: RunState, role: Role): boolean {
  switch (state) {
    case 'RUN_STARTED':
      return role !== 'failure'
    case 'RUN_FAILED':
      return role === 'failure'
    case 'RUN_SUCCESS':
    case 'RUN_CANCELED':
      return false
    default:
      return unreachable(state)
  }
}

/**
 * Judges the outcome of a delivery.
 * @param decision by the retry rules of the queue.
 */
export function judge(role: Role, decision: Decision, outcome: AttemptOutcome): Verdict {
  switch (decision.kind) {
    case 'retry':
      return { kind: 'retry', at: decision.at }
    case 'delivered':
      return outcome.kind === 'answered' ? judgeResponse(role, outcome.response) : { kind: 'done' }
    case 'failed':
      return judgeFailure(role)
    default:
      return unreachable(decision)
  }
}

function judgeResponse(role: Role, response: DeliveryResponse): Verdict {
  switch (role) {
    case 'contact':
      return { kind: 'fail-unless-confirmed' }
    case 'first':
      return response.headers[PROTOCOL_HEADER] ? { kind: 'done' } : { kind: 'fail', reason: 'not-a-workflow' }
    case 'untried':
      return isModernSdk(response) ? { kind: 'done' } : { kind: 'fail', reason: 'unknown-sdk' }
    case 'call':
      return { kind: 'return-call' }
    case 'failure':
      return { kind: 'callback-ended', state: hasFailureFunction(response) ? 'CALLBACK_SUCCESS' : null }
    case 'step':
    case 'result':
      return { kind: 'done' }
    default:
      return unreachable(role)
  }
}

function judgeFailure(role: Role): Verdict {
  switch (role) {
    case 'call':
      return { kind: 'return-call' }
    case 'failure':
      return { kind: 'callback-ended', state: 'CALLBACK_FAIL' }
    case 'contact':
    case 'first':
    case 'untried':
    case 'step':
    case 'result':
      return { kind: 'fail', reason: 'delivery' }
    default:
      return unreachable(role)
  }
}

/** SDKs before 1.0 do not send their version, and lack features that a trigger without an SDK needs. */
function isModernSdk({ headers }: DeliveryResponse): boolean {
  return /^v?[1-9]/.test(headers[SDK_HEADER]?.[0]?.trim() ?? '')
}

function hasFailureFunction(response: DeliveryResponse): boolean {
  return response.headers['Upstash-Workflow-Failure-Callback-Notfound']?.[0] !== 'true'
}
