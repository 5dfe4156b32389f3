import type { DeliveryEnd, DeliveryNext, DeliverySpan, Tracer } from '../../telemetry/index.js'
import { traceOf } from '../publish/traced.js'
import type { AttemptOutcome, HeaderMap, MessageKind, PendingMessage, Settled } from '../types.js'
import { isDelivered, PLAIN_KIND } from './count-attempt.js'

/**
 * An attempt with a span. The attempt uses a copy of the message with the span's trace context in place
 * of the stored one, so that the request and all consequences of the outcome belong to the span. The
 * next attempt uses the stored context again.
 */
export class TracedAttempt {
  readonly message: PendingMessage
  readonly #stored: PendingMessage
  readonly #span: DeliverySpan

  constructor(tracer: Tracer, kind: MessageKind, stored: PendingMessage) {
    const { messageId, url, method, retried, body, headers, queue, topic, scheduleId } = stored
    this.#stored = stored
    this.#span = tracer.delivery({
      messageId,
      url,
      method,
      retried,
      queue,
      topic,
      scheduleId,
      bodyBytes: body?.byteLength ?? 0,
      parent: traceOf(headers),
    })
    const values = kind.spanValues?.(stored)
    if (values) this.#span.add(values)
    const { traceparent, tracestate } = this.#span.context
    const { Tracestate: _state, ...others } = headers
    const state: HeaderMap = tracestate === undefined ? {} : { Tracestate: [tracestate] }
    this.message = { ...stored, headers: { ...others, Traceparent: [traceparent], ...state } }
  }

  /** The request is over. */
  answered(): void {
    this.#span.answered()
  }

  /** The outcome is committed. Returns `settled` with the stored trace context instead of the span's. */
  settled(outcome: AttemptOutcome, settled: Settled): Settled {
    this.#span.end(endOf(this.#stored.kind, outcome, settled))
    const { retry } = settled
    return retry ? { ...settled, retry: { ...retry, headers: this.#stored.headers } } : settled
  }

  /** There is no outcome, or it is no longer needed. Without effect after the end of the span. */
  dropped(): void {
    this.#span.end({ kind: 'dropped' })
  }
}

function endOf(kind: string, outcome: AttemptOutcome, settled: Settled): DeliveryEnd {
  const next = nextOf(kind, outcome, settled)
  return outcome.kind === 'answered'
    ? { kind: 'answered', status: outcome.response.status, next }
    : { kind: 'unanswered', error: outcome.error, next }
}

function nextOf(kind: string, outcome: AttemptOutcome, { retry, dropGroups }: Settled): DeliveryNext {
  if (retry) return { kind: 'retried', nextAt: retry.nextAt }
  if (isDelivered(outcome)) return { kind: 'delivered' }
  // For other kinds, the module that owns the message has ended the whole group and keeps it as a dead letter of its own.
  return { kind: 'failed', isDeadLetter: kind === PLAIN_KIND || dropGroups !== undefined }
}
