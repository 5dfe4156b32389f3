/**
 * The queue publishes messages over HTTP, delivers them to URLs with a signature, and retries them. It never loses one.
 *
 *   publish, batch ─ intakes of other modules ─ draft (settings checked) ─ one commit ─ 2xx
 *                                                                            └─ offer ─┐
 *   store: pending messages by due time ── load ── backlog (due soon, bounded) ── due ─┤
 *                                                                                      │
 *           kind.prepare ─ headers, signature ─ HTTP request ─ outcome ─ kind.settle (one commit) ─ follow-ups
 *
 * States of a message (`state` in the store). Each arrow is one statement that checks the state it starts from:
 *
 *   held ─ its turn in its queue has come ─> pending        (messages of queues only; cancelled like pending ones)
 *   pending ─ 2xx ──────────────────────────────> delivered
 *      │ └─ failed, retries left ─> pending, due later
 *      ├─ failed for good ──────────────────────> failed (in the dead letter queue until deleted or sent again)
 *      └─ cancelled by its owner ───────────────> cancelled
 *
 * `pending` covers both waiting and being sent. An attempt writes nothing when it begins, so a delivery without errors
 * costs two writes. If the server dies between a request and the commit of its outcome, it sends the message again after
 * the next start.
 *
 * A module may park the pending messages of its groups (`transactions/messages-parked.ts`): they are sent once it
 * resumes them.
 *
 * Guarantees:
 *   - publish answers 2xx after the commit;
 *   - delivery is at least once;
 *   - a callback is a message of the commit that stores the outcome it reports;
 *   - a cancelled message is not sent again, and its request in flight is aborted;
 *   - no account, queue or destination can use up the memory or the requests in flight of the others
 *     (`dispatcher/backlog.ts`, `dispatcher/round-robin.ts`).
 *
 * Between publishing and sending:
 *   - a message with a debounce or singleton key replaces an older one, or is not stored, in the commit that publishes it
 *     (`transactions/rule-keys.ts`);
 *   - a URL group makes one message for each of its endpoints, in one commit;
 *   - a queue gives turns in the order of arrival. A turn lasts until the message and its callbacks have ended; the
 *     transaction that ends it gives the next turn (`transactions/queue-turns.ts`);
 *   - a schedule publishes in the transaction that moves it to its next fire (`schedules/scheduler.ts`);
 *   - a flow-control key limits messages of every kind when they are due. Its limits are stored, its use is in memory
 *     (`dispatcher/flow-control.ts`);
 *   - in a cluster, the node that owns a message's partition sends it (`dispatcher/partitions.ts`);
 *   - requests use Homeport's own HTTP client while destinations answer in the usual form, otherwise undici (`sending/`);
 *   - one gate decides which addresses may be contacted (`TargetGate` of base). Addresses that need no DNS lookup are
 *     judged when the message is published (`publish/destination.ts`).
 *
 * Modules above send messages of their own through the same dispatcher: a `MessageKind` builds requests and settles
 * outcomes, an `Intake` claims items of publish requests. The queue does not know what they are for.
 *
 * The queue never follows a redirect and never reads a body. Every operation stays within the account of its caller.
 */

export { revisionOf } from './api/dead-letter-routes.js'
export { checkUnit, readSelection, type WireFilters } from './api/filters.js'
export { longList, PAGE } from './api/long-list.js'
export {
  bodyMembers,
  deadLetterView,
  messageView,
  redacted,
  redactHeaders,
  storedConfig,
  storedHeaders,
} from './api/message-view.js'
export { trimBodies } from './api/trim-bodies.js'
export { batchesOf } from './batches.js'
export { isDelivered } from './dispatcher/count-attempt.js'
export { NeverSent } from './dispatcher/damage.js'
export { decideNext, defaultBackoffMs } from './dispatcher/decide.js'
export { toPending } from './dispatcher/entry.js'
export {
  forwardable,
  forwardedHeaders,
  headerOf,
  isConnectionHeader,
  isTelemetry,
  isValidHeader,
  refuseInvalidOfCallbacks,
  titleCase,
  toHeaderMap,
} from './headers.js'
export { becauseOfRule, debouncedUntil, type KeyRule, storedKey } from './key-rule.js'
export { attemptRecord, dlqIdOf, nextAttempt } from './plain-kind.js'
export { parseDestination, parseHttpUrl, refuseForbidden, refuseForbiddenCallbacks } from './publish/destination.js'
export { configOf, DEFAULT_RETRIES, draftMessage, firstAttemptAt, labelColumn } from './publish/draft.js'
export { redactionForUrl } from './publish/provider-secrets.js'
export { quotaOf } from './publish/publishing.js'
export { headersOfItem, itemOfRequest } from './publish/request.js'
export { MAX_DELAY_MS } from './publish/setting-values.js'
export {
  AS_ACCEPTED,
  MAX_RETRIES,
  readSettings,
  refuseWithoutKey,
  type SettingLimits,
  type Settings,
} from './publish/settings.js'
export { endAll, endOf, isInTrace, itemInTrace, type TracedItem, traceItem, traceOf } from './publish/traced.js'
export { createQueue, type QueueDeps } from './queue.js'
export { ByteBudget, type ByteBudgetDeps, Retention, type RetentionDeps, type SweepStep } from './retention.js'
export { dueOf } from './transactions/priority.js'
export type * from './types.js'
export type { Attempt, OnAttempt } from './watched-kind.js'
