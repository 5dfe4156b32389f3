import type { Static } from 'typebox'
import type { Service } from '../base/index.js'
import type { HomeportError } from '../contract/errors/errors.js'
import type { DeadLetter, Message } from '../contract/queue/fields.js'
import type { Caller, Route } from '../http/index.js'
import type { PendingRow } from './transactions/messages.js'
import type { MessageFilter } from './transactions/messages-filter.js'

/** Header names in Title-Case (`Content-Type`), each with its values in order. */
export type HeaderMap = Readonly<Record<string, readonly string[]>>

/** Where an answer or a failure is reported: itself a message, sent with the settings in `headers`. */
export interface CallbackConfig {
  readonly url: string
  /** Settings of the callback as its own publish headers, lower-case: `upstash-retries`, `upstash-forward-x`, ... */
  readonly headers: Readonly<Record<string, string>>
}

/** Which parts of a message the reading endpoints show only as `REDACTED:<SHA256>`. */
export interface Redaction {
  readonly body?: true
  /** `all`, or header names in lower case. */
  readonly headers?: 'all' | readonly string[]
}

/** Which limit of a flow-control key leaves no room for another call now. Times are Unix milliseconds. */
export type FlowHold =
  | { readonly by: 'pause' }
  | { readonly by: 'parallelism'; readonly parallelism: number }
  /** Until the present period ends. */
  | { readonly by: 'rate'; readonly rate: number; readonly periodMs: number; readonly until: number }

/** Limits that a message asks its flow-control key to have. */
export interface FlowValue {
  readonly parallelism?: number
  readonly rate?: number
  /** Seconds. */
  readonly period?: number
}

/** How a message is delivered, beyond what has a column of its own. Everything is optional: `{}` is all defaults. */
export interface MessageConfig {
  /** A whole attempt may take this long; absent: the server's limit. */
  readonly timeoutMs?: number
  /** `Upstash-Retry-Delay` as it was sent; absent: the default back-off. */
  readonly retryDelay?: string
  readonly callback?: CallbackConfig
  readonly failureCallback?: CallbackConfig
  readonly redact?: Redaction
  readonly flow?: FlowValue
  /** The first attempt is due at a time of day that was asked for, whatever the clock said by then. */
  readonly fixedTime?: true
  /** Settings of the room that owns the kind of the message. */
  readonly [extra: `x-${string}`]: unknown
}

/** A message that waits for its next attempt, as the engine holds it. */
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
  /** The message of a queue whose turn lasts until this one has ended: itself, or the one that it is a callback of. */
  readonly turn?: number | undefined
  readonly scheduleId?: string | undefined
}

/** The request of one attempt, without the headers that the engine adds to every delivery (reference queue 3.1). */
export interface Outbound {
  readonly url: string
  readonly method: string
  readonly headers: HeaderMap
  readonly body: Uint8Array | undefined
  /** Of the body of the answer this much is kept; absent: the server's limit. */
  readonly keepBytes?: number
  /** Of the body of an answer that is not 2xx this much is kept, as long as there is memory for large ones. */
  readonly keepFailingBytes?: number
}

/** The answer of a destination. */
export interface DeliveryResponse {
  readonly status: number
  readonly headers: HeaderMap
  /** The first bytes, up to the server's limit; `truncated` when there were more. */
  readonly body: Uint8Array
  readonly truncated: boolean
}

/** How an attempt ended. An attempt that was aborted because its message was dropped has no outcome. */
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
      /** The server itself forbids the destination: trying again makes no sense. */
      readonly isRefused?: true
    }

/** What an outcome means for the message (`decideNext`). */
export type Decision =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'failed'; readonly reason: 'exhausted' | 'refused' }

/** What follows from an outcome that has been committed. */
export interface Settled {
  /** The message itself with its next attempt; absent when it is finished or gone. */
  readonly again?: PendingMessage
  /** New messages that the same commit made. */
  readonly offers: readonly PendingRow[]
  /** Groups whose messages the same commit ended. */
  readonly dropGroups?: readonly number[]
}

/** A family of messages: who builds their requests and what follows from their outcomes. */
export interface MessageKind {
  /** Stands in the column `kind` of its messages. */
  readonly name: string
  /**
   * Builds the request of one attempt; `undefined` when there is nothing to send any more: the message is forgotten.
   */
  prepare(message: PendingMessage): Promise<Outbound | undefined> | Outbound | undefined
  /** Commits the outcome of an attempt together with whatever follows from it. Rejects when nothing was committed. */
  settle(message: PendingMessage, outcome: AttemptOutcome): Promise<Settled>
}

/** One thing to publish: a whole publish request, or an item of a batch. */
export interface PublishItem {
  /** A URL as it was sent, query included. */
  readonly destination: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Its buffer holds nothing but what is published together with it. */
  readonly body: Uint8Array | undefined
  /** Name of a queue, where one was given. */
  readonly queue?: string
}

/** The answer to one item. More members may follow from an intake. */
export interface PublishReply {
  readonly messageId: string
  readonly url?: string
  readonly deduplicated?: true
  readonly workflowRunId?: string
  readonly workflowCreatedAt?: number
}

/** The answer to an item that went to a URL group: one entry for each endpoint. */
export type GroupReply = readonly PublishReply[]

/** The answer to one item of a batch: an item that is refused does not keep the others from being accepted. */
export type BatchReply = PublishReply | { readonly error: string }

/** Who publishes. */
export interface Publisher {
  readonly caller: Caller
  /** Address of the peer. */
  readonly ip: string
}

/** Takes over the items of publish requests that belong to another room. */
export interface Intake {
  readonly name: string
  /** Whether an item belongs to this intake, judged by its headers alone. */
  claims(item: PublishItem): boolean
  /**
   * All claimed items of one request, in order, in one transaction. Throws `HomeportError` to fail the whole request.
   */
  submit(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly BatchReply[]>
  /** How a request is refused that holds this claimed item and cannot be read. Absent: as any other request. */
  refusal?(item: PublishItem, error: HomeportError): HomeportError
}

/** A message as the wire shows it. */
export type MessageView = Static<typeof Message>
/** A dead letter as the wire shows it. */
export type DeadLetterView = Static<typeof DeadLetter>

/** Dead letters that another room shows under `GET /v2/dlq?source=<name>`. */
export interface DeadLetterSource {
  /** The value of `source`. */
  readonly name: string
  /** A page for the query of the request; entries are those of the wire. */
  list(
    caller: Caller,
    query: Readonly<Record<string, unknown>>,
  ): Promise<{ messages: DeadLetterView[]; cursor?: string }>
}

/**
 * Cancels very many messages: in parts, with a record, and going on after a crash. Answers how many that
 * were, or `undefined` when they are so few that the caller can cancel them at once.
 */
export type LargeCancel = (
  caller: Caller,
  request: { readonly filter: MessageFilter; readonly most: number },
) => Promise<number | undefined>

/** Which messages to forget. */
export type DropSelector = ({ readonly groupKeys: readonly number[] } | { readonly seqs: readonly number[] }) & {
  /** They are offered again, or others of their group are; what has ended forever is not taken in any more. */
  readonly comesBack?: true
}

/** The queue as the other rooms see it. */
export interface Queue extends Service {
  /** Takes committed messages, so that what is due goes out from memory. To be called right after their commit. */
  offer(rows: readonly PendingRow[]): void
  /**
   * Forgets messages whose end has been committed: nothing of them starts any more, requests in flight are aborted and
   * their outcomes ignored.
   */
  drop(which: DropSelector): void
  /**
   * Refuses addresses that may not be contacted, as far as that can be told without a look-up. For intakes: with the
   * URLs that an item would be delivered to, and with its headers, which may name callbacks.
   * @throws HomeportError `destination_forbidden`.
   */
  refuseForbidden(urls: readonly string[], headers: PublishItem['headers']): void
  /** Which limit of a flow-control key leaves no room for another call now; `undefined` when there is room. */
  flowHold(accountId: string, flowKey: string): FlowHold | undefined
  /** Registers a kind; before `start`. */
  addKind(kind: MessageKind): void
  /** Registers an intake; before `start`. The first one that claims an item gets it. */
  addIntake(intake: Intake): void
  /** Registers who cancels very many messages; before `start`. */
  delegateLargeCancels(cancel: LargeCancel): void
  /** Registers dead letters that are not plain messages; before `start`. */
  addDeadLetters(source: DeadLetterSource): void
  /** The HTTP operations of the queue. */
  routes(): readonly Route[]
}
