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
import type { Store } from '../../store/index.js'
import type { ReceivedTrace, Tracer } from '../../telemetry/index.js'
import { announces, classify } from '../protocol/protocol.js'
import { parseInvocation } from '../protocol/sent-steps.js'
import * as runsRead from '../transactions/runs-read.js'
import type { ElementMeta } from '../transactions/runs-rows.js'
import type { RecentLists } from './recent-lists.js'

/** Collaborators for tracing the items of runs. */
export interface ItemTracing {
  readonly store: Pick<Store, 'run'>
  readonly tracer: Tracer
  readonly lists: Pick<RecentLists, 'deliveryOf'>
  readonly publisher: Publisher
}

/**
 * Submits items of runs with traces. An item that starts a run gets a span; the deliveries of the run are its children. A
 * step gets none, because it ends a delivery, which has a span already. An item without a trace context that an SDK sends
 * for a run joins the trace of the run. If the run is not cached, such as after a start on another node, it is looked up.
 */
export async function submitTraced(
  tracing: ItemTracing,
  items: readonly PublishItem[],
  submit: (items: readonly PublishItem[]) => Promise<readonly BatchReply[]>,
): Promise<readonly BatchReply[]> {
  const traces = await tracesOfRuns(tracing, items)
  const spans: (TracedItem | undefined)[] = []
  const traced = await mapInSlices(items, (item) => {
    const trace = traces.get(item)
    const continued = trace ? itemInTrace(item, trace) : item
    const span = startsRun(item) ? traceTrigger(tracing, continued) : undefined
    spans.push(span)
    return span?.item ?? continued
  })
  return endAll(spans, endOf, () => submit(traced))
}

/** Begins the span of an item that starts a run. */
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

/** The trace of each item's run, or of the run that invokes it. Absent for items that bring a context, or need none. */
async function tracesOfRuns(
  tracing: ItemTracing,
  items: readonly PublishItem[],
): Promise<ReadonlyMap<PublishItem, ReceivedTrace>> {
  const traces = new Map<PublishItem, ReceivedTrace>()
  const ofRuns = new Map<string, ReceivedTrace>()
  for (const item of items) {
    const runId = isInTrace(item) ? undefined : runOf(item)
    if (runId === undefined) continue
    const trace = ofRuns.get(runId) ?? (await traceOfRun(tracing, runId))
    ofRuns.set(runId, trace)
    traces.set(item, trace)
  }
  return traces
}

async function traceOfRun({ store, lists, publisher }: ItemTracing, runId: string): Promise<ReceivedTrace> {
  const { accountId } = publisher.caller
  const cached = lists.deliveryOf(accountId, runId)
  const delivery = cached?.delivery ?? deliveryIn(await store.run(runsRead.settingsOf, { accountId, runId }))
  return traceOf(storedHeaders(delivery?.headers))
}

/** Parses settings that the transaction that started the run has stored. */
const deliveryIn = (meta = '{}'): ElementMeta['delivery'] => (JSON.parse(meta) as ElementMeta).delivery

function runOf(item: PublishItem): string | undefined {
  switch (classify(item.headers)) {
    case 'trigger':
      return undefined
    case 'invoke':
      return parentOf(item)
    case 'step':
      // A step without its own settings is delivered with the settings of the trigger, which include its trace.
      return announces(item.headers, 'WF_TriggerOnConfig') ? undefined : item.headers['upstash-workflow-runid']
    default:
      return item.headers['upstash-workflow-runid']
  }
}

/** The invoking run; `undefined` for an invalid invocation, which is refused right after. */
function parentOf({ body }: PublishItem): string | undefined {
  try {
    return parseInvocation(body).link.runId
  } catch {
    return undefined
  }
}
