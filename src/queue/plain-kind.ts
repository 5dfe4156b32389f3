import { type Clock, jsonWithBytes } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { ReceivedTrace, Tracer } from '../telemetry/index.js'
import { CallbackSpans } from './callback-spans.js'
import { decideNext } from './dispatcher/decide.js'
import { forwardable } from './headers.js'
import { draftMessage } from './publish/draft.js'
import { AS_ACCEPTED } from './publish/settings.js'
import { refusedBy, traceOf } from './publish/traced.js'
import { type NewMessage, toPendingRows } from './transactions/messages.js'
import type { MessageEnd, SettleArgs } from './transactions/messages-settle.js'
import * as messagesSettle from './transactions/messages-settle.js'
import { dueOf } from './transactions/priority.js'
import * as ruleKeys from './transactions/rule-keys.js'
import type {
  AttemptOutcome,
  CallbackConfig,
  Decision,
  MessageKind,
  Outbound,
  PendingMessage,
  Redaction,
  Settled,
} from './types.js'

/** The content of a callback. */
export interface CallbackFacts {
  readonly message: PendingMessage
  readonly outcome: AttemptOutcome
  /** The dead letter of the failure; failure callbacks only. */
  readonly dlqId?: string
}

/** The JSON body of a callback (reference queue 3.6). Without a response the status is 0 and the body is the error. */
function callbackBody({ message, outcome, dlqId }: CallbackFacts): Promise<Uint8Array> {
  const response = outcome.kind === 'answered' ? outcome.response : undefined
  const error = outcome.kind === 'unanswered' ? outcome.error : undefined
  return jsonWithBytes({
    status: response?.status ?? 0,
    header: response?.headers ?? {},
    body: response?.body ?? Buffer.from(error ?? ''),
    retried: message.retried,
    maxRetries: message.maxRetries,
    sourceMessageId: message.messageId,
    url: message.url,
    method: message.method,
    sourceHeader: message.headers,
    sourceBody: message.body ?? '',
    notBefore: dueOf(message),
    createdAt: message.createdAt,
    ...(message.callerIp !== undefined && { callerIP: message.callerIp }),
    ...(message.topic !== undefined && { topicName: message.topic }),
    ...(message.endpoint !== undefined && { endpointName: message.endpoint }),
    ...(message.scheduleId !== undefined && { scheduleId: message.scheduleId }),
    ...(dlqId !== undefined && { dlqId }),
  })
}

/** A callback's body contains its whole source message, so it is redacted if any part of the source is. */
function redactFields(redact: Redaction, own: string | undefined): string {
  const names = redact.headers === 'all' ? ['header'] : (redact.headers ?? []).map((name) => `header[${name}]`)
  return ['body', ...names, ...(own ? [own] : [])].join(',')
}

/**
 * The settings of a callback as publish headers. The queue name is removed: the turn of the source message lasts until its
 * callback has ended, so a callback that waits for a turn in the same queue would block it.
 */
function headersOf(
  { headers: { 'upstash-queue-name': _, ...own } }: CallbackConfig,
  { config }: PendingMessage,
  trace: ReceivedTrace,
): CallbackConfig['headers'] {
  const { redact } = config
  const fields = redact && { 'upstash-redact-fields': redactFields(redact, own['upstash-redact-fields']) }
  return { ...trace, ...forwardable(own), ...fields, 'content-type': 'application/json' }
}

/**
 * Makes the message of a callback. It is a message like any other: signed, redacted if its source is, with callbacks of
 * its own. The number of retries comes from the callback's settings, otherwise from its source message.
 * @param trace default: the trace context of its source.
 */
export function callbackMessage(
  config: CallbackConfig,
  { message, body }: { readonly message: PendingMessage; readonly body: Uint8Array },
  now: number,
  trace: ReceivedTrace = traceOf(message.headers),
): NewMessage {
  const headers = headersOf(config, message, trace)
  const drafting = {
    accountId: message.accountId,
    callerIp: message.callerIp ?? null,
    now,
    limits: AS_ACCEPTED,
    defaultRetries: message.maxRetries,
    // The node that sent the source message sends its callbacks too.
    partition: message.partition,
  }
  return draftMessage({ destination: config.url, headers, body }, drafting).message
}

/** The id of the dead letter of a failure (reference queue 2.3). */
export function dlqIdOf(seq: number, finishedAt: number): string {
  return `${finishedAt}-${seq}`
}

/** The attempt of an outcome, as columns of the store. */
export function attemptRecord(outcome: AttemptOutcome): SettleArgs['attempt'] {
  if (outcome.kind === 'unanswered') {
    return { startedAt: outcome.startedAt, status: 0, headers: '{}', body: null, error: outcome.error }
  }
  const { status, headers, body } = outcome.response
  return {
    startedAt: outcome.startedAt,
    status,
    headers: JSON.stringify(headers),
    body: body.byteLength > 0 ? body : null,
    error: null,
  }
}

/** The message with its next attempt. */
export function nextAttempt(message: PendingMessage, at: number): PendingMessage {
  return { ...message, retried: message.retried + 1, nextAt: at }
}

const LABEL_HEADER = 'Upstash-Label'

/** Adds the labels as a header, so that the endpoint can pass them on to what it starts. */
function labelled({ url, method, headers, body, labels }: PendingMessage): Outbound {
  return { url, method, headers: { [LABEL_HEADER]: [labels.join(',')], ...headers }, body }
}

const NOTHING_FOLLOWS: Settled = { offers: [] }
/** The message was cancelled while it was sent. */
const CANCELLED = { kind: 'refused', code: 'cancelled' } as const

/** What the kind `http` is built from. */
export interface PlainKindDeps {
  readonly store: Store
  readonly clock: Clock
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
}

/** Plain messages, sent as they were published. Outcomes lead to callbacks and dead letters. */
export class PlainKind implements MessageKind {
  readonly name = 'http'
  readonly #deps: PlainKindDeps

  constructor(deps: PlainKindDeps) {
    this.#deps = deps
  }

  prepare(message: PendingMessage): Promise<Outbound | undefined> | Outbound {
    const outbound = message.labels.length > 0 ? labelled(message) : message
    return message.config.rule?.kind === 'debounce' && message.retried === 0
      ? this.#ifNotReplaced(message, outbound)
      : outbound
  }

  /**
   * Closes the debounce of a message, so that newer messages of its key no longer replace it; `undefined` if one already
   * has.
   */
  async #ifNotReplaced({ accountId, messageId }: PendingMessage, outbound: Outbound): Promise<Outbound | undefined> {
    return (await this.#deps.store.run(ruleKeys.close, { accountId, messageId })) ? outbound : undefined
  }

  async settle(message: PendingMessage, outcome: AttemptOutcome): Promise<Settled> {
    const at = this.#deps.clock.now()
    const decision = decideNext(message, outcome, at)
    const dlqId = dlqIdOf(message.seq, at)
    const { store, tracer } = this.#deps
    const spans = tracer && new CallbackSpans(tracer, message)
    const follow = await callbacksOf({ message, outcome }, decision, { dlqId, now: at, spans })
    const { seq, retried, turn } = message
    const facts = { seq, retried, at, attempt: attemptRecord(outcome) }
    if (decision.kind === 'delivered' && follow.length === 0 && turn === undefined) {
      await store.run(messagesSettle.deliver, facts)
      return NOTHING_FOLLOWS
    }
    const args: SettleArgs = { ...facts, end: endOf(decision, dlqId), follow, ...(turn !== undefined && { turn }) }
    const result = await this.#store(args, spans)
    if (result.kind === 'gone') return NOTHING_FOLLOWS
    const offers = [...toPendingRows(follow, result.followSeqs), ...result.next]
    return decision.kind === 'retry' ? { retry: nextAttempt(message, decision.at), offers } : { offers }
  }

  async #store(args: SettleArgs, spans: CallbackSpans | undefined): Promise<messagesSettle.SettleResult> {
    try {
      const result = await this.#deps.store.run(messagesSettle.settle, args)
      spans?.end(result.kind === 'gone' ? CANCELLED : undefined)
      return result
    } catch (error) {
      spans?.end(refusedBy(error))
      throw error
    }
  }
}

interface CallbackDraft {
  readonly dlqId: string
  readonly now: number
  /** Absent while traces are off. */
  readonly spans: CallbackSpans | undefined
}

/** The callback reports every attempt, the failure callback only the final failure (reference queue 3.6). */
async function callbacksOf(
  facts: CallbackFacts,
  decision: Decision,
  { dlqId, now, spans }: CallbackDraft,
): Promise<NewMessage[]> {
  const { callback, failureCallback } = facts.message.config
  if (!callback && !failureCallback) return []
  const { message: source } = facts
  const make = async (operation: 'callback' | 'failure_callback', config: CallbackConfig, about: CallbackFacts) => {
    const body = await callbackBody(about)
    const draft = (trace?: ReceivedTrace): NewMessage => callbackMessage(config, { message: source, body }, now, trace)
    const message = spans ? spans.make(operation, config, draft) : draft()
    // The turn of a queue's message lasts until its callbacks have ended (reference queue 3.8).
    return { ...message, slot_seq: source.queue === undefined ? null : source.seq }
  }
  return [
    ...(callback ? [await make('callback', callback, facts)] : []),
    ...(failureCallback && decision.kind === 'failed'
      ? [await make('failure_callback', failureCallback, { ...facts, dlqId })]
      : []),
  ]
}

function endOf(decision: Decision, dlqId: string): MessageEnd {
  switch (decision.kind) {
    case 'delivered':
      return { kind: 'delivered', keep: true }
    case 'retry':
      return { kind: 'retry', nextAt: decision.at }
    case 'failed':
      return { kind: 'failed', dlqId }
  }
}
