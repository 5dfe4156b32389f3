import { mapInSlices } from '../../base/index.js'
import {
  type BatchReply,
  endAll,
  endOf,
  isInTrace,
  itemInTrace,
  type Publisher,
  type PublishItem,
  storedHeaders,
  type TracedItem,
  traceItem,
  traceOf,
} from '../../queue/index.js'
import type { Tracer } from '../../telemetry/index.js'
import { classify } from '../protocol/protocol.js'
import { parseInvocation } from '../protocol/sent-steps.js'
import type { RecentLists } from './recent-lists.js'

/** What tracing the items of runs needs. */
export interface ItemTracing {
  readonly tracer: Tracer
  readonly lists: Pick<RecentLists, 'deliveryOf'>
  readonly publisher: Publisher
}

/**
 * Submits items of runs. What starts a run has a span; the deliveries of the run are its children. A step is the end of
 * a delivery, which has a span already. What an SDK sends for a run without a trace context belongs to the trace of
 * that run, as far as the run is cached.
 */
export async function submitTraced(
  tracing: ItemTracing,
  items: readonly PublishItem[],
  submit: (items: readonly PublishItem[]) => Promise<readonly BatchReply[]>,
): Promise<readonly BatchReply[]> {
  const spans: (TracedItem | undefined)[] = []
  const traced = await mapInSlices(items, (item) => {
    const continued = isInTrace(item) ? item : itemOfRun(tracing, item)
    const span = startsRun(item) ? traceTrigger(tracing, continued) : undefined
    spans.push(span)
    return span?.item ?? continued
  })
  return endAll(spans, endOf, () => submit(traced))
}

/** Begins the span of what starts a run. */
export function traceTrigger(
  { tracer, publisher: { requestId } }: Pick<ItemTracing, 'tracer' | 'publisher'>,
  item: PublishItem,
): TracedItem {
  return traceItem(tracer, item, { operation: 'trigger', requestId })
}

function startsRun({ headers }: PublishItem): boolean {
  const kind = classify(headers)
  return kind === 'trigger' || kind === 'invoke'
}

/** The item in the trace of its run, or of the run that invokes it. */
function itemOfRun({ lists, publisher }: ItemTracing, item: PublishItem): PublishItem {
  const runId = runOf(item)
  const known = runId === undefined ? undefined : lists.deliveryOf(publisher.caller.accountId, runId)
  return known ? itemInTrace(item, traceOf(storedHeaders(known.delivery.headers))) : item
}

function runOf(item: PublishItem): string | undefined {
  switch (classify(item.headers)) {
    case 'trigger':
      return undefined
    case 'invoke':
      return parentOf(item)
    default:
      return item.headers['upstash-workflow-runid']
  }
}

/** An invocation that cannot be read is refused right after. */
function parentOf({ body }: PublishItem): string | undefined {
  try {
    return parseInvocation(body).link.runId
  } catch {
    return undefined
  }
}
