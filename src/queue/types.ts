import type { Static } from 'typebox'
import type { Service } from '../base/index.js'
import type { HomeportError } from '../contract/errors/errors.js'
import type { DeadLetter, Message } from '../contract/queue/fields.js'
import type { Caller, Route } from '../http/index.js'
import type { SpanValues } from '../telemetry/index.js'
import type { KeyRule } from './key-rule.js'
import type { PendingRow } from './transactions/messages.js'
import type { MessageFilter } from './transactions/messages-filter.js'

/** Header names in Title-Case (`Content-Type`), each with its values in order. */
export type HeaderMap = Readonly<Record<string, readonly string[]>>

/** A callback or failure callback: a message that reports the response, sent with the settings in `headers`. */
export interface CallbackConfig {
  readonly url: string
  /** Settings of the callback as its own publish headers, lower-case: `upstash-retries`, `upstash-forward-x`, ... */
  readonly headers: Readonly<Record<string, string>>
}

/** Which fields the reading endpoints show only as `REDACTED:<SHA256>`. */
export interface Redaction {
  readonly body?: true
  /** `all`, or header names in lower case. */
  readonly headers?: 'all' | readonly string[]
}

/** The limit of a flow-control key that blocks another request now. Times are Unix milliseconds. */
export type FlowHold =
  | { readonly by: 'pause' }
  | { readonly by: 'parallelism'; readonly parallelism: number }
  /** Until the current period ends. */
  | { readonly by: 'rate'; readonly rate: number; readonly periodMs: number; readonly until: number }

/** Limits that a message sets for its flow-control key. */
export interface FlowValue {
  readonly parallelism?: number
  readonly rate?: number
  /** Seconds. */
  readonly period?: number
}

/** Delivery settings without a column of their own. All are optional: `{}` means all defaults. */
export interface MessageConfig {
  /** Time limit of a whole attempt. Default: the server's limit. */
  readonly timeoutMs?: number
  /** `Upstash-Retry-Delay` as it was sent. Default: the default backoff. */
  readonly retryDelay?: string
  readonly callback?: CallbackConfig
  readonly failureCallback?: CallbackConfig
  readonly redact?: Redaction
  readonly flow?: FlowValue
  /** The publisher named the time of the first attempt, so a correction of the clock does not move it. */
  readonly fixedTime?: true
  readonly rule?: KeyRule
  /** Seconds that the message counts as due earlier when it waits with others; negative: later. */
  readonly priority?: number
  /** Settings of the module that owns the kind of the message. */
  readonly [extra: `x-${string}`]: unknown
}

/** A pending message as the dispatcher holds it. */
export interface PendingMessage {
  readonly seq: number
  readonly messageId: string
  readonly accountId: string
  readonly kind: string
  readonly groupKey: number | undefined
  readonly url: string
  readonly method: string
  readonly headers: HeaderMap
  readonly body: Uint8Array | undefined
  readonly config: MessageConfig
  readonly maxRetries: number
  /** Failed attempts so far; 0 before the first. Sent as `Upstash-Retried`. */
  readonly retried: number
  /** Unix milliseconds. */
  readonly nextAt: number
  readonly createdAt: number
  readonly callerIp: string | undefined
  readonly labels: readonly string[]
  readonly flowKey: string | undefined
  /** The URL group that it was published to. */
  readonly topic?: string | undefined
  /** The name of the endpoint in its URL group. */
  readonly endpoint?: string | undefined
  readonly queue?: string | undefined
  /**
   * The message of a queue whose turn lasts until this one has ended: this message, or the one that it is a callback
   * of.
   */
  readonly turn?: number | undefined
  readonly scheduleId?: string | undefined
  /** The node of a cluster that owns this partition sends it. Absent: any. */
  readonly partition?: number | undefined
}

/** The fields of a message that appear in the headers of its request. */
export type ToSign = Pick<PendingMessage, 'messageId' | 'accountId' | 'retried' | 'topic' | 'scheduleId' | 'callerIp'>

/** The headers of a request, made before its message is committed. See `Queue.signAhead`. */
export interface SignedAhead {
  readonly messageId: string
  readonly retried: number
  /** The signing key. */
  readonly key: string
  /** Unix milliseconds. */
  readonly at: number
  /** All headers as a flat list: name, value, name, value. */
  readonly headers: string[]
}

/** The request of one attempt, without the headers that the dispatcher adds to every delivery (reference queue 3.1). */
export interface Outbound {
  readonly url: string
  readonly method: string
  readonly headers: HeaderMap
  readonly body: Uint8Array | undefined
  /** Bytes of the response body that are kept. Default: the server's limit. */
  readonly keepBytes?: number
  /** Bytes of the response body that are kept if the status is not 2xx and memory for large responses is free. */
  readonly keepFailingBytes?: number
  /** The headers, if they were made ahead. */
  readonly ahead?: SignedAhead
}

/** The response of a destination. */
export interface DeliveryResponse {
  readonly status: number
  readonly headers: HeaderMap
  /** The first bytes, up to the limit. `truncated`: there were more. */
  readonly body: Uint8Array
  readonly truncated: boolean
}

/** Outcome of an attempt. An attempt whose message was dropped is aborted and has no outcome. */
export type AttemptOutcome =
  | {
      readonly kind: 'answered'
      readonly startedAt: number
      readonly finishedAt: number
      readonly response: DeliveryResponse
    }
  | {
      readonly kind: 'unanswered'
      readonly startedAt: number
      readonly finishedAt: number
      readonly error: string
      /** The server forbids the destination, so retries are pointless. */
      readonly isRefused?: true
    }

/** What happens to the message after an outcome (`decideNext`). */
export type Decision =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'failed'; readonly reason: 'exhausted' | 'refused' }

/** The effects of a committed outcome on memory. */
export interface Settled {
  /** The message with its next attempt. Absent when it has ended or is gone. */
  readonly retry?: PendingMessage
  /** New messages of the same commit. */
  readonly offers: readonly PendingRow[]
  /** Groups whose messages the same commit ended. */
  readonly dropGroups?: readonly number[]
}

/** How long a due message has waited in line before its attempt, milliseconds. */
export interface LineWait {
  /** For a place under its flow-control key. */
  readonly heldMs: number
  /** For its turn among all messages that may be sent. */
  readonly lineMs: number
}

/**
 * Claims memory for a request. A kind calls it before it reads more than about 1 MiB for the request. It throws when too
 * much memory is in use; the dispatcher prepares the message again when there is enough.
 */
export type ClaimMemory = (bytes: number) => void

/** A kind of messages. Builds their requests and settles their outcomes. */
export interface MessageKind {
  /** Value of the column `kind`. */
  readonly name: string
  /** Builds the request of one attempt. `undefined`: there is nothing to send, and the dispatcher forgets the message. */
  prepare(
    message: PendingMessage,
    wait: LineWait,
    claim: ClaimMemory,
  ): Promise<Outbound | undefined> | Outbound | undefined
  /** Commits the outcome of an attempt with its follow-ups. Rejects when nothing was committed. */
  settle(message: PendingMessage, outcome: AttemptOutcome): Promise<Settled>
  /** Additional attributes for the span of an attempt. Called only while traces are on. */
  spanValues?(message: PendingMessage): SpanValues
}

/** One publish request, or one item of a batch. */
export interface PublishItem {
  /** The URL as it was sent, with its query. */
  readonly destination: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Its buffer holds only bodies that are published together, because the whole buffer moves to another thread. */
  readonly body: Uint8Array | undefined
  /** Name of the queue, if one was given. */
  readonly queue?: string
}

/** The reply to one item. Intakes may add members. */
export interface PublishReply {
  readonly messageId: string
  readonly url?: string
  readonly deduplicated?: true
  /** The message of the same debounce or singleton key that this one has replaced. */
  readonly replaced?: string
  /** Why this message was skipped for an older one, or has replaced it. */
  readonly because?: string
  readonly workflowRunId?: string
  readonly workflowCreatedAt?: number
}

/** The reply to an item that went to a URL group: one entry for each endpoint. */
export type GroupReply = readonly PublishReply[]

/** The reply to one item of a batch. A refused item does not block the others. */
export type BatchReply = PublishReply | { readonly error: string }

/** Who publishes. */
export interface Publisher {
  readonly caller: Caller
  /** IP address of the peer. */
  readonly ip: string
  /** Id of the request, for traces. */
  readonly requestId?: string
}

/** Handles the items of publish requests that belong to another module. */
export interface Intake {
  readonly name: string
  /** Whether an item belongs to this intake. Looks only at its headers. */
  claims(item: PublishItem): boolean
  /**
   * Commits all claimed items of one request, in order, in one transaction. Throws `HomeportError` to fail the whole
   * request.
   */
  submit(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly BatchReply[]>
  /** The error for an unreadable request that contains this claimed item. Absent: the error stays as it is. */
  refusal?(item: PublishItem, error: HomeportError): HomeportError
}

/** A message as the wire shows it. */
export type MessageView = Static<typeof Message>
/** A dead letter as the wire shows it. */
export type DeadLetterView = Static<typeof DeadLetter>

/** Dead letters of another module, listed by `GET /v2/dlq?source=<name>`. */
export interface DeadLetterSource {
  /** Value of `source`. */
  readonly name: string
  /** One page for the query of the request, with entries in wire form. */
  list(
    caller: Caller,
    query: Readonly<Record<string, unknown>>,
  ): Promise<{ messages: DeadLetterView[]; cursor?: string }>
}

/**
 * Cancels many messages as a bulk action: in batches, and resumed after a crash. Returns how many, or `undefined` when
 * they are so few that the caller should cancel them at once.
 */
export type LargeCancel = (
  caller: Caller,
  request: { readonly filter: MessageFilter; readonly most: number },
) => Promise<number | undefined>

/** Which messages to forget. */
export type DropSelector = ({ readonly groupKeys: readonly number[] } | { readonly seqs: readonly number[] }) & {
  /** These messages, or others of their group, may be offered again. Without it, an offer after the drop is ignored. */
  readonly mayBeOfferedAgain?: true
  /** The messages are parked: requests in flight finish and are settled, without a next attempt. Absent: abort them. */
  readonly inFlight?: 'ends'
}

/** Whether the queue is idle now, and when it next has something to do. */
export interface QueueRest {
  /** Nothing is being read, sent or committed, and no schedule is due. */
  readonly isIdle: boolean
  /** When the next message or schedule is due, Unix milliseconds; `Infinity` when none is. */
  readonly nextAt: number
}

/** What the dispatcher has in memory now. */
export interface QueueLoad {
  /** Requests in flight, without slow ones, and their limit. */
  readonly sending: number
  readonly most: number
  /** Pending messages in memory. */
  readonly held: number
}

/** The queue as other modules see it. */
export interface Queue extends Service {
  /**
   * Hands committed messages to the dispatcher. Call it right after their commit.
   * @param isAgain the messages were brought back after they, or others of their group, were dropped.
   */
  offer(rows: readonly PendingRow[], isAgain?: boolean): void
  /**
   * Forgets messages whose end is committed: no further attempt starts, requests in flight are aborted, and their
   * outcomes are ignored.
   */
  drop(which: DropSelector): void
  /**
   * Drops on all nodes. Resolves when no node starts another attempt. For callers whose reply promises that nothing more is
   * delivered.
   * @throws HomeportError `store_unavailable` when a node does not answer and the store does not either.
   */
  dropEverywhere(which: DropSelector): Promise<void>
  /** Call it after flow-control keys were deleted: all nodes forget the keys that no message uses. */
  forgetFlowKeys(keys: readonly { readonly account_id: string; readonly flow_key: string }[]): Promise<void>
  /**
   * Call it after accounts were suspended, resumed or deleted. The queue stops the deliveries of held accounts and resumes
   * those of released ones. Requests in flight finish.
   */
  accountsChanged(): void
  /**
   * Refuses forbidden addresses that need no DNS lookup. Intakes pass the delivery URLs of an item and its headers,
   * which may name callbacks.
   * @throws HomeportError `destination_forbidden`.
   */
  refuseForbidden(urls: readonly string[], headers: PublishItem['headers']): void
  /**
   * Signs the first request of a message while the message is being committed. It changes and sends nothing. If the
   * message's kind prepares this same request soon after the commit, the signed headers are used; otherwise they are
   * made again.
   */
  signAhead(message: ToSign, outbound: Outbound): Outbound
  /** The limit of a flow-control key that blocks another request now; `undefined` if none does. */
  flowHold(accountId: string, flowKey: string): FlowHold | undefined
  /** Whether the queue is idle. Reads the store: it is for tests of applications, which advance the clock to `nextAt`. */
  rest(): Promise<QueueRest>
  /** Registers a kind. Before `start`. */
  addKind(kind: MessageKind): void
  /** Registers an intake. Before `start`. The first intake that claims an item gets it. */
  addIntake(intake: Intake): void
  /** Registers the handler of large cancels. Before `start`. */
  delegateLargeCancels(cancel: LargeCancel): void
  /** Registers dead letters that are not plain messages. Before `start`. */
  addDeadLetters(source: DeadLetterSource): void
  /** For metrics. */
  readonly load: QueueLoad
  /** The HTTP operations of the queue. */
  routes(): readonly Route[]
}
