import { unreachable } from '../../base/index.js'
import type { AttemptOutcome, Decision, DeliveryResponse } from '../../queue/index.js'
import type { FailureState, RunState } from '../../store/schema/runs.js'
import { PROTOCOL_HEADER, SDK_HEADER } from '../protocol/protocol.js'

/**
 * The state machine of a run, pure: it is told what happened and says what follows. The shells around it
 * (`kind.ts`, `intake.ts`, the routes) perform that, and the operation of the store that they call holds the check
 * behind the arrow, in the same transaction.
 *
 *                       ┌── finish: the program has returned ──────────────▶ RUN_SUCCESS
 *   trigger ▶ RUN_STARTED ── fail: a delivery failed forever,
 *               │  ▲    │          or the program is no workflow ──────────▶ RUN_FAILED ─┐
 *               └──┘    └── cancel: wins over everything that comes later ─▶ RUN_CANCELED│
 *              append                             CALLBACK_INPROGRESS ◀── failure callback
 *                                                   │            │
 *                                          CALLBACK_SUCCESS  CALLBACK_FAIL
 *
 * Who may take an arrow: `append` and `finish` come from the program, `fail` from the outcome of a delivery, `cancel`
 * from anyone with the token. The three ends are final: nothing is appended to an ended run, and nothing of it is
 * delivered but the failure callback.
 */

/**
 * What a message of a run is for.
 * - `contact`: the first element, to a program that is asked to confirm the run before it begins (reference workflow 4.4);
 * - `first`: the first element, to a program that must show that it is a workflow;
 * - `untried`: the first element of a trigger without an SDK, to a program that must show that its SDK is 1.0 or newer;
 * - `step`: the list up to an element; while the run waits for an event, the deadline of that;
 * - `call`: a request to a third party for `context.call`;
 * - `result`: what came of such a request, to the program;
 * - `failure`: the failure callback of a failed run.
 */
export type Role = 'contact' | 'first' | 'untried' | 'step' | 'call' | 'result' | 'failure'

/** Why a run fails. */
export type FailureReason =
  /** The program's last answer, or that there was none. */
  | 'delivery'
  /** The destination of an SDK's trigger answered without the SDK's header. */
  | 'not-a-workflow'
  /** The program has not confirmed the first contact. */
  | 'no-first-contact'
  /** The destination of a trigger without an SDK answered without the version of an SDK of 1.0 or newer. */
  | 'unknown-sdk'

/** What follows from the outcome of a delivery. */
export type Verdict =
  /** The message is done and the run goes on by itself. */
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'fail'; readonly reason: FailureReason }
  /** The run fails if nobody has answered the contact by now: the answer comes before the delivery's own. */
  | { readonly kind: 'fail-unless-confirmed' }
  /** The third party has answered, or will not: its result goes to the program. */
  | { readonly kind: 'return-call' }
  /** `null`: the program has no failure function. */
  | { readonly kind: 'callback-ended'; readonly state: FailureState | null }

/** Whether a message of a run in this state is still to be sent. */
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
 * @param decision what the queue's rules of retrying make of the outcome.
 */
export function judge(role: Role, decision: Decision, outcome: AttemptOutcome): Verdict {
  switch (decision.kind) {
    case 'retry':
      return { kind: 'retry', at: decision.at }
    case 'delivered':
      return outcome.kind === 'answered' ? judgeAnswer(role, outcome.response) : { kind: 'done' }
    case 'failed':
      return judgeFailure(role)
    default:
      return unreachable(decision)
  }
}

function judgeAnswer(role: Role, response: DeliveryResponse): Verdict {
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

/** SDKs before 1.0 do not say their version, nor do they know all that a trigger without an SDK relies on. */
function isModernSdk({ headers }: DeliveryResponse): boolean {
  return /^v?[1-9]/.test(headers[SDK_HEADER]?.[0]?.trim() ?? '')
}

function hasFailureFunction(response: DeliveryResponse): boolean {
  return response.headers['Upstash-Workflow-Failure-Callback-Notfound']?.[0] !== 'true'
}
