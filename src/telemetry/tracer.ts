/**
 * The port through which modules report spans while traces are on. The module `opentelemetry` implements it. While traces
 * are off there is no tracer, so each traced place costs one check of a field.
 */

/** A W3C trace context, as request headers. */
export interface TraceHeaders {
  readonly traceparent: string
  readonly tracestate?: string
}

/** A trace context as it was received. Without one, a span begins a new trace. */
export type ReceivedTrace = Readonly<Partial<Record<'traceparent' | 'tracestate', string>>>

/** Values of spans. No payloads and no secrets. */
export type SpanValues = Readonly<Record<string, string | number | boolean>>

/** The operations that create messages. */
export type Publishing = 'publish' | 'trigger' | 'callback' | 'failure_callback' | 'fire'

/** One publication: an item of a request, a callback, or a fire of a schedule. */
export interface Publication {
  readonly operation: Publishing
  /** A URL, or the name of a URL group, as it was sent. */
  readonly destination: string
  readonly queue?: string | undefined
  /** `undefined`: not measured. */
  readonly bodyBytes?: number | undefined
  readonly parent: ReceivedTrace
  /** Id of the request, see `x-request-id`. */
  readonly requestId?: string | undefined
  readonly scheduleId?: string | undefined
}

/** The outcome of a publication. `refused`: the code of the error. */
export type PublicationEnd =
  | {
      readonly kind: 'accepted'
      readonly messageIds: readonly string[]
      readonly runId?: string | undefined
      readonly isDuplicate: boolean
    }
  | { readonly kind: 'refused'; readonly code: string }

/** A publication that is traced. */
export interface PublicationSpan {
  /** The trace context for the deliveries of the messages. */
  readonly context: TraceHeaders
  end(end: PublicationEnd): void
}

/** One attempt to deliver a message. */
export interface DeliveryAttempt {
  readonly messageId: string
  readonly url: string
  readonly method: string
  /** Failed attempts before this one. */
  readonly retried: number
  readonly bodyBytes: number
  readonly queue?: string | undefined
  readonly topic?: string | undefined
  readonly scheduleId?: string | undefined
  readonly parent: ReceivedTrace
}

/** How an attempt ended. */
export type DeliveryEnd =
  | { readonly kind: 'answered'; readonly status: number; readonly next: DeliveryNext }
  /** `error`: why there was no response, in words. */
  | { readonly kind: 'unanswered'; readonly error: string; readonly next: DeliveryNext }
  /** The message was cancelled while it was sent, or was gone. */
  | { readonly kind: 'dropped' }

/** What happens to a message after an attempt. */
export type DeliveryNext =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retried'; readonly nextAt: number }
  /** For good. */
  | { readonly kind: 'failed'; readonly isDeadLetter: boolean }

/** An attempt that is traced. */
export interface DeliverySpan {
  /** The context that the endpoint gets. */
  readonly context: TraceHeaders
  /** Adds values that are known later. */
  add(values: SpanValues): void
  /** The response is complete, or there is none. The span ends at this time, even if the outcome is committed later. */
  answered(): void
  /** Only the first call counts. */
  end(end: DeliveryEnd): void
}

/** An HTTP request that was answered. */
export interface AnsweredTrace {
  readonly service: string
  readonly requestId: string | undefined
  /** The database whose commands it carried. */
  readonly databaseId?: string | undefined
  readonly method: string
  /** The declared path. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
  readonly parent: ReceivedTrace
}

/** The span of a request that this node passes on to another node. */
export interface PassedSpan {
  /** The context that the other node gets. */
  readonly context: TraceHeaders
  /** The answer was passed on. */
  answered(request: AnsweredTrace): void
}

/** Records traces. No method throws. */
export interface Tracer {
  publication(publication: Publication): PublicationSpan
  delivery(attempt: DeliveryAttempt): DeliverySpan
  /** @param sinceMs how long ago the request came, milliseconds. */
  passed(parent: ReceivedTrace, sinceMs: number): PassedSpan
  answered(request: AnsweredTrace): void
}
