/**
 * The queue: a message is published over HTTP, delivered to a URL, signed, retried, and never lost.
 *
 *   publish, batch ─ intakes of other rooms ─ draft (settings checked) ─ one commit ─ 2xx
 *                                                                          └─ offer ─┐
 *   store: pending messages in the order of falling due ── load ── backlog (near future, bounded) ── due
 *                                                                                     │
 *           kind.prepare ─ headers, signature ─ HTTP request ─ outcome ─ kind.settle (one commit) ─ what follows
 *
 * The life of a message (`state` in the store; one arrow is one statement that checks where it starts):
 *
 *   held ─ its turn in its queue has come ─> pending        (messages of queues only; cancelled like pending ones)
 *   pending ─ 2xx ──────────────────────────────> delivered
 *      │ └─ failed, retries left ─> pending, due later
 *      ├─ failed for good ──────────────────────> failed (in the dead letter queue until it is deleted or sent again)
 *      └─ cancelled by its owner ────────────────> cancelled
 *
 * `pending` covers waiting and being sent: an attempt writes nothing when it begins, so the happy path costs two
 * writes. Whatever dies between a request and the commit of its outcome is sent again after the next start.
 *
 * Promises: a 2xx of publish is sent after the commit; delivery is at least once; a callback is a message of the same
 * commit as the outcome it reports; a cancelled message is not sent again and its request in flight is aborted; no account,
 * queue or destination takes the memory or the requests in flight from others (`engine/backlog.ts`, `engine/turns.ts`).
 *
 * What stands between publishing and sending:
 *   - a URL group makes one message for each of its endpoints, in one commit;
 *   - a queue gives turns in the order of arrival; a turn lasts until the message and its callbacks have ended, and the
 *     next one is given by the very transaction that ends it (`transactions/queue-turns.ts`);
 *   - a schedule publishes in the transaction that moves it to its next fire (`schedules/scheduler.ts`);
 *   - a flow-control key lets a due message go when it has room, in memory, for messages of every kind
 *     (`engine/flow-control.ts`);
 *   - one gate decides which addresses may be contacted (`TargetGate` of base); what it can judge as it stands is refused
 *     when it is published (`publish/forbidden.ts`).
 *
 * The rooms above use the same engine for messages of their own: a `MessageKind` builds the requests and settles the
 * outcomes, an `Intake` claims items of publish requests. The queue itself knows nothing of what they are for. It
 * never follows a redirect, never looks into a body, and never decides by itself who may see what: every operation
 * stays within the account of its caller.
 */

export { revisionOf } from './api/dead-letter-routes.js'
export { checkUnit, readSelection, type WireFilters } from './api/filters.js'
export {
  bodyMembers,
  deadLetterView,
  messageView,
  redacted,
  redactHeaders,
  storedConfig,
  storedHeaders,
} from './api/message-view.js'
export { decideNext, defaultBackoffMs } from './dispatcher/decide.js'
export { toPending } from './dispatcher/entry.js'
export {
  forwardedHeaders,
  headerOf,
  isConnectionHeader,
  isTelemetry,
  isValidHeader,
  titleCase,
  toHeaderMap,
} from './headers.js'
export { attemptRecord, type CallbackFacts, callbackBody, callbackMessage, dlqIdOf, nextAttempt } from './plain-kind.js'
export { parseDestination, parseHttpUrl, refuseForbidden, refuseForbiddenCallbacks } from './publish/destination.js'
export { configOf, DEFAULT_RETRIES, draftMessage, firstAttemptAt, labelColumn } from './publish/draft.js'
export { itemOfRequest } from './publish/request.js'
export { AS_ACCEPTED, readSettings, type SettingLimits, type Settings } from './publish/settings.js'
export { createQueue, type QueueDeps } from './queue.js'
export { ByteBudget, type ByteBudgetDeps, Retention, type RetentionDeps, type SweepStep } from './retention.js'
export type * from './types.js'
