/**
 * Workflows: durable runs of steps. The steps execute on the user's own endpoint; this module stores their results.
 *
 * A run is an append-only list of elements. The first element is the payload of the trigger. The server delivers the
 * list to the endpoint; the SDK replays it, executes the next step (or plans several in parallel), sends the result to
 * the publish endpoints of the queue, and answers 200. The result becomes the next element, and its arrival causes the
 * next delivery. When the program returns, the SDK ends the run.
 *
 *   trigger ─┐                                    ┌─▶ the list up to the element ─▶ endpoint
 *   step ────┼─ intake ─ one commit: element + its message ─ queue ─┤
 *   wait ────┘                                    └─▶ a third party (call) ─▶ result ─▶ endpoint
 *
 * One message of the kind `workflow` delivers each element; its `group_key` is the run. A delivery carries the list up
 * to its own element, never further: parallel branches and retries depend on it. A sleep is a message that is due
 * later. A wait for an event is a message that is due at the deadline; when the event arrives, the message becomes due
 * immediately.
 *
 * `run-state.ts` is the state machine of a run, as pure functions. `intake.ts`, `run-messages.ts` and the routes
 * execute its verdicts. Every transaction that changes a run checks that the run is still active. So a committed cancel
 * wins over every step, result and failure that is committed later, even if it was sent earlier.
 *
 * Guarantees: what was acknowledged is on disk. A step is delivered at least once. Exactly one list is the first that
 * holds all results of a group of parallel steps. An ended run gets no more deliveries, except the failure callback of a
 * failed run. A step for an ended run is refused with 400, and its whole request with it; the SDK then stops. Steps are
 * opaque bytes: only the run logs parse them, to show them.
 *
 * A failed run keeps its pending messages and waits (`run_remains`) while it is a dead letter. Resume makes a new run from
 * its list, its messages and its waits; restart makes one from its payload. Both remove the dead letter in the same
 * transaction.
 *
 * Any run can be restarted from any of its steps (`restart-routes.ts`): a new run begins with the results of the steps
 * before it. The original stays as it is.
 *
 * A trigger with a debounce or singleton key cancels an older run, or starts none, in its own commit
 * (`transactions/runs-rules.ts`).
 *
 * An active run can be paused: its messages are parked in the store until it is resumed (`transactions/runs-pause.ts`).
 *
 * The log of an active run says why it waits (`because.ts`); that of a finished step, where its time went
 * (`step-time.ts`). Failed attempts of a step stay in the log of the run (`run_attempts`). Ended runs are deleted when they
 * are too old, or when they take too much space.
 *
 * `bulk` may register a gate (`TriggerGate`) that refuses the start of runs, or makes them begin paused.
 *
 * Memory holds only what a restart may lose: the times of deliveries in flight (`InFlightDeliveries`), recently changed
 * lists, so that a delivery need not read them again (`recent-lists.ts`), and requests that were built while the store
 * committed their elements (`request-ahead.ts`). The nodes of a cluster exchange such state through `run-nodes.ts`.
 *
 * This module makes no HTTP request (the dispatcher of the queue does), and cancels nothing in bulk (`bulk` does, with
 * the same transactions).
 */
export { type DeadQuery, selectorOf as deadRunSelectorOf } from './dead-letters/dead-letter-filter.js'
export { type Overrides, overridesOf, type RevivalKind, revivalOf, settingsIn } from './dead-letters/revival.js'
export { deadRunStanding, runStandings, type Standing, textsOfAttempt } from './logs/standing.js'
export { judge, mayDeliver, type Role, type Verdict } from './runs/run-state.js'
export type { Starting, StartWork, TriggerGate } from './runs/trigger-gate.js'
export { createWorkflow, type Workflow, type WorkflowDeps } from './workflow.js'
