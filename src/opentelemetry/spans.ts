import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Tracer as SdkTracer,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { systemClock } from '../base/index.js'
import type {
  AnsweredTrace,
  DeliveryAttempt,
  DeliveryEnd,
  DeliveryNext,
  DeliverySpan,
  PassedSpan,
  Publication,
  PublicationEnd,
  PublicationSpan,
  ReceivedTrace,
  SpanValues,
  TraceHeaders,
  Tracer,
} from '../telemetry/index.js'
import { destinationName, MAX_NAME_LENGTH, type Target, targetOf } from './text.js'

const SYSTEM = 'homeport'
/** Ids of messages that one span names. */
const MAX_IDS = 20
const PRODUCER = { kind: SpanKind.PRODUCER }
const CLIENT = { kind: SpanKind.CLIENT }

const propagator = new W3CTraceContextPropagator()
const received = {
  get: (carrier: ReceivedTrace, name: string) =>
    name === 'traceparent' || name === 'tracestate' ? carrier[name] : undefined,
  keys: (carrier: ReceivedTrace) => Object.keys(carrier),
}
const setHeader = {
  set: (carrier: Record<string, string>, name: string, value: string) => {
    carrier[name] = value
  },
}

/** The context of a parent; the root context if there is no parent or it is not valid. */
function contextOf(parent: ReceivedTrace): Context {
  return parent.traceparent === undefined ? ROOT_CONTEXT : propagator.extract(ROOT_CONTEXT, parent, received)
}

function headersOf(span: Span): TraceHeaders {
  const headers: Record<string, string> = {}
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, setHeader)
  const { traceparent = '', tracestate } = headers
  return { traceparent, ...(tracestate !== undefined && { tracestate }) }
}

/** Names and values follow the semantic conventions for HTTP and messaging. Names outside of them begin with `homeport.`. */
export class SpanTracer implements Tracer {
  readonly #tracer: SdkTracer

  constructor(tracer: SdkTracer) {
    this.#tracer = tracer
  }

  publication(publication: Publication): PublicationSpan {
    const { operation, destination, queue, parent } = publication
    const name = queue?.slice(0, MAX_NAME_LENGTH) ?? destinationName(destination)
    const span = this.#tracer.startSpan(`${operation} ${name}`, PRODUCER, contextOf(parent))
    if (span.isRecording()) span.setAttributes(publicationAttributes(publication, name))
    return new Published(span)
  }

  delivery(attempt: DeliveryAttempt): DeliverySpan {
    const target = targetOf(attempt.url)
    const name = target === undefined ? 'deliver' : `deliver ${target.host}`
    const span = this.#tracer.startSpan(name, CLIENT, contextOf(attempt.parent))
    if (span.isRecording()) span.setAttributes(deliveryAttributes(attempt, target))
    return new Delivered(span)
  }

  passed(parent: ReceivedTrace, sinceMs: number): PassedSpan {
    const span = this.#serving('passed on', parent, systemClock.now() - sinceMs)
    return { context: headersOf(span), answered: (request) => endServed(span, request, systemClock.now()) }
  }

  answered(request: AnsweredTrace): void {
    const endTime = systemClock.now()
    const span = this.#serving(servedName(request), request.parent, endTime - request.durationMs)
    endServed(span, request, endTime)
  }

  #serving(name: string, parent: ReceivedTrace, startTime: number): Span {
    return this.#tracer.startSpan(name, { kind: SpanKind.SERVER, startTime }, contextOf(parent))
  }
}

const servedName = ({ method, route }: AnsweredTrace): string => `${method} ${route}`

function endServed(span: Span, request: AnsweredTrace, endTime: number): void {
  const { service, requestId, databaseId, method, route, status } = request
  span.updateName(servedName(request))
  span.setAttributes({
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status,
    'homeport.service': service,
    ...(requestId !== undefined && { 'homeport.request.id': requestId }),
    ...(databaseId !== undefined && { 'homeport.database.id': databaseId }),
  })
  if (status >= 500) {
    span.setAttribute('error.type', String(status))
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end(endTime)
}

function messageAttributes(operation: string, destination: string): Attributes {
  return {
    'messaging.system': SYSTEM,
    'messaging.operation.name': operation,
    'messaging.operation.type': 'send',
    'messaging.destination.name': destination,
  }
}

function deliveryAttributes(attempt: DeliveryAttempt, target: Target | undefined): Attributes {
  const { queue, topic, retried, scheduleId } = attempt
  const attributes = messageAttributes('deliver', queue ?? topic ?? target?.host ?? '')
  attributes['messaging.message.id'] = attempt.messageId
  attributes['messaging.message.body.size'] = attempt.bodyBytes
  attributes['http.request.method'] = attempt.method
  attributes['homeport.delivery.attempt'] = retried + 1
  if (target) {
    attributes['url.full'] = target.url
    attributes['server.address'] = target.host
    attributes['server.port'] = target.port
  }
  if (retried > 0) attributes['http.request.resend_count'] = retried
  if (scheduleId !== undefined) attributes['homeport.schedule.id'] = scheduleId
  return attributes
}

function publicationAttributes({ operation, bodyBytes, requestId, scheduleId }: Publication, name: string): Attributes {
  const attributes = messageAttributes(operation, name)
  if (bodyBytes !== undefined) attributes['messaging.message.body.size'] = bodyBytes
  if (requestId !== undefined) attributes['homeport.request.id'] = requestId
  if (scheduleId !== undefined) attributes['homeport.schedule.id'] = scheduleId
  return attributes
}

class Published implements PublicationSpan {
  readonly context: TraceHeaders
  readonly #span: Span

  constructor(span: Span) {
    this.#span = span
    this.context = headersOf(span)
  }

  end(end: PublicationEnd): void {
    if (this.#span.isRecording()) this.#describe(end)
    this.#span.end()
  }

  #describe(end: PublicationEnd): void {
    if (end.kind === 'refused') {
      this.#span.setAttribute('error.type', end.code)
      this.#span.setStatus({ code: SpanStatusCode.ERROR })
      return
    }
    const [id] = end.messageIds
    if (end.messageIds.length === 1 && id !== undefined) this.#span.setAttribute('messaging.message.id', id)
    else {
      this.#span.setAttribute('messaging.batch.message_count', end.messageIds.length)
      this.#span.setAttribute('homeport.message.ids', end.messageIds.slice(0, MAX_IDS))
    }
    if (end.runId !== undefined) this.#span.setAttribute('homeport.workflow.run_id', end.runId)
    if (end.isDuplicate) this.#span.setAttribute('homeport.message.deduplicated', true)
  }
}

/** The code at the end of the reasons that the sender writes: `the connection was refused (ECONNREFUSED)`. */
const CODE = /\(([A-Z][A-Z0-9_]+)\)$/

class Delivered implements DeliverySpan {
  readonly context: TraceHeaders
  readonly #span: Span
  /** Time by `performance.now()`, as the SDK expects it. */
  #endedAt: number | undefined
  #isOver = false

  constructor(span: Span) {
    this.#span = span
    this.context = headersOf(span)
  }

  add(values: SpanValues): void {
    if (this.#span.isRecording()) this.#span.setAttributes(values)
  }

  answered(): void {
    this.#endedAt ??= performance.now()
  }

  end(end: DeliveryEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.answered()
    if (this.#span.isRecording()) this.#describe(end)
    this.#span.end(this.#endedAt)
  }

  #describe(end: DeliveryEnd): void {
    if (end.kind === 'dropped') {
      this.#span.setAttribute('homeport.delivery.outcome', 'cancelled')
      return
    }
    if (end.kind === 'answered') this.#span.setAttribute('http.response.status_code', end.status)
    const error = errorOf(end)
    if (error !== undefined) {
      this.#span.setAttribute('error.type', error)
      this.#span.setStatus({ code: SpanStatusCode.ERROR, ...(end.kind === 'unanswered' && { message: end.error }) })
    }
    this.#follow(end.next)
  }

  #follow(next: DeliveryNext): void {
    this.#span.setAttribute('homeport.delivery.outcome', next.kind)
    if (next.kind === 'retried') {
      this.#span.addEvent('retry', { 'homeport.delivery.next_at': new Date(next.nextAt).toISOString() }, this.#endedAt)
    } else if (next.kind === 'failed' && next.isDeadLetter) this.#span.addEvent('dead letter', {}, this.#endedAt)
  }
}

function errorOf(end: Exclude<DeliveryEnd, { kind: 'dropped' }>): string | undefined {
  if (end.kind === 'unanswered') return CODE.exec(end.error)?.[1] ?? '_OTHER'
  return end.status >= 200 && end.status < 300 ? undefined : String(end.status)
}
