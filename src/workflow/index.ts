/**
 * Workflows: runs of steps that live on the user's own endpoints and survive everything.
 *
 * A run is an append-only list. Its first element is the payload of the trigger. Whenever something has to happen, the
 * endpoint gets the list so far; its SDK replays it, does one new thing (or plans several at once), sends what came of
 * it back to the queue's publish endpoints, and answers 200. The list grows by that, and the growth causes the next
 * delivery. When the program returns, the SDK ends the run.
 *
 *   trigger ─┐                                    ┌─▶ the list up to the element ─▶ endpoint
 *   step ────┼─ intake ─ one commit: element + its message ─ queue ─┤
 *   wait ────┘                                    └─▶ a third party (call) ─▶ result ─▶ endpoint
 *
 * Every element is delivered by one message of the kind `workflow`, whose `group_key` is the run. Each delivery carries
 * the list up to its own element, never further: parallel branches and retries depend on it. Sleeping is a message that
 * is due later; waiting for an event is a message that is due at the deadline and comes forward when the event comes.
 *
 * The states of a run and who may move it stand in `run-state.ts`, which is pure; `intake.ts`, `kind.ts` and the
 * routes perform what it says. The operation of the store behind each arrow checks in its own transaction that the run
 * is still going on, so a cancellation that has been committed wins over every step, result and failure that comes
 * after it, even one that was sent earlier.
 *
 * Promises: what was acknowledged is on disk; a step is delivered at least once; of parallel results exactly one list
 * is the first to hold them all; nothing of an ended run is delivered again but the failure callback of a failed one;
 * a step for an ended run is refused with 400 as a whole request, which tells the SDK to stop. Steps are opaque bytes:
 * nothing here looks into them but the run logs, to show them.
 *
 * A failed run keeps what was still to come of it (`run_remains`) as long as it is a dead letter. Resuming makes a new
 * run of its list and of that; restarting makes one of its payload. Either takes the letter out in the same
 * transaction. Every run that has not ended can say why it waits (`because.ts`); what failed before a step came through
 * stays in its log (`run_attempts`). Ended runs are deleted when they are old, or too many to fit.
 *
 * A room above may guard the start of runs (`gate.ts`): a run that it refuses is not created.
 *
 * In memory are only copies, which a restart may lose: since when a delivery is under way (`flights.ts`), and the lists
 * that have just grown, so that what was committed need not be read to be sent (`recent-lists.ts`).
 *
 * What this room never does: it makes no HTTP request itself (the queue's engine does), and cancels nothing in bulk
 * (the room `bulk` does, through the same operation of the store).
 */
export { type DeadQuery, selectorOf as deadRunSelectorOf } from './dead-letters/dead-letter-filter.js'
export { type Overrides, overridesOf, type RevivalKind, revivalOf, settingsIn } from './dead-letters/revival.js'
export type { Starting, TriggerGate } from './runs/intake.js'
export { judge, mayDeliver, type Role, type Verdict } from './runs/run-state.js'
export { createWorkflow, type Workflow, type WorkflowDeps } from './workflow.js'
