import { mapInSlices } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { PublicationEnd, PublicationSpan, Publishing, ReceivedTrace, Tracer } from '../../telemetry/index.js'
import type { BatchReply, GroupReply, HeaderMap, Publisher, PublishItem } from '../types.js'

const FORWARDED = 'upstash-forward-'

/** The trace context of an item: the one that it forwards explicitly, otherwise the one of its request. */
function contextOfItem({ headers }: PublishItem): ReceivedTrace {
  const prefix = headers[`${FORWARDED}traceparent`] === undefined ? '' : FORWARDED
  const traceparent = headers[`${prefix}traceparent`]
  const tracestate = headers[`${prefix}tracestate`]
  if (traceparent === undefined) return {}
  return { traceparent, ...(tracestate !== undefined && { tracestate }) }
}

/** The item with another trace context. */
export function itemInTrace(item: PublishItem, context: ReceivedTrace): PublishItem {
  const {
    traceparent: _parent,
    tracestate: _state,
    [`${FORWARDED}traceparent`]: _forwardedParent,
    [`${FORWARDED}tracestate`]: _forwardedState,
    ...headers
  } = item.headers
  return { ...item, headers: { ...headers, ...context } }
}

/** Whether an item brings a trace context. */
export const isInTrace = (item: PublishItem): boolean => contextOfItem(item).traceparent !== undefined

/** The trace context of stored headers. */
export function traceOf({ Traceparent, Tracestate }: HeaderMap): ReceivedTrace {
  const [traceparent] = Traceparent ?? []
  const [tracestate] = Tracestate ?? []
  if (traceparent === undefined) return {}
  return { traceparent, ...(tracestate !== undefined && { tracestate }) }
}

/** A traced item: it has the trace context of its span, which all consequences of the item continue. */
export interface TracedItem {
  readonly item: PublishItem
  readonly span: PublicationSpan
}

/** Begins the span of an item. */
export function traceItem(
  tracer: Tracer,
  item: PublishItem,
  about: { readonly operation: Publishing; readonly requestId?: string | undefined; readonly scheduleId?: string },
): TracedItem {
  const span = tracer.publication({
    ...about,
    destination: item.destination,
    queue: item.queue ?? item.headers['upstash-queue-name'],
    bodyBytes: item.body?.byteLength ?? 0,
    parent: contextOfItem(item),
  })
  return { item: itemInTrace(item, span.context), span }
}

/** Publishes items, each with a span. `submit` gets the items in order and returns a reply for each. */
export async function publishTraced<Answer extends BatchReply | GroupReply | HomeportError>(
  tracer: Tracer,
  { requestId }: Pick<Publisher, 'requestId'>,
  items: readonly PublishItem[],
  submit: (items: readonly PublishItem[]) => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  const traced = await mapInSlices(items, (item) => traceItem(tracer, item, { operation: 'publish', requestId }))
  return endAll(traced, endOf, () => submit(traced.map(({ item }) => item)))
}

/** Ends the spans of items when `submit` has returned its replies, or has failed. */
export async function endAll<Answer>(
  traced: readonly (TracedItem | undefined)[],
  endOfAnswer: (answer: Answer) => PublicationEnd,
  submit: () => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  try {
    const answers = await submit()
    let index = 0
    await mapInSlices(answers, (answer) => traced[index++]?.span.end(endOfAnswer(answer)))
    return answers
  } catch (error) {
    for (const one of traced) one?.span.end(refusedBy(error))
    throw error
  }
}

/** The end of a publication that an error prevented. */
export function refusedBy(error: unknown): PublicationEnd {
  return { kind: 'refused', code: error instanceof HomeportError ? error.code : 'internal' }
}

/** The end of a publication by the reply to it. */
export function endOf(answer: BatchReply | GroupReply | HomeportError): PublicationEnd {
  if (answer instanceof HomeportError) return refusedBy(answer)
  if ('error' in answer) return { kind: 'refused', code: 'invalid_request' }
  const replies = isGroup(answer) ? answer : [answer]
  const [first] = replies
  return {
    kind: 'accepted',
    messageIds: replies.map(({ messageId }) => messageId),
    runId: first?.workflowRunId,
    isDuplicate: replies.length > 0 && replies.every(({ deduplicated }) => deduplicated === true),
  }
}

const isGroup = (answer: BatchReply | GroupReply): answer is GroupReply => Array.isArray(answer)
