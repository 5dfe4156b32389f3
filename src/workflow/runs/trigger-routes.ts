import { type Clock, mapInSlices, newId } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { triggerRun, triggerRuns } from '../../contract/workflow/runs.js'
import { type Route, route } from '../../http/index.js'
import {
  endAll,
  headersOfItem,
  itemOfRequest,
  type Publisher,
  type PublishItem,
  parseDestination,
} from '../../queue/index.js'
import type { PublicationEnd, Tracer } from '../../telemetry/index.js'
import { newRunIdOf } from '../protocol/settings.js'
import { type Accepted, effectOfRule } from './accepted.js'
import type { RunIntake } from './intake.js'
import { traceTrigger } from './traced-items.js'

/** Collaborators of the trigger routes. */
export interface TriggerDeps {
  readonly intake: RunIntake
  readonly clock: Clock
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
}

/** Features of every SDK from 1.0. A run on an older SDK fails with the first response. */
const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig'

/** Routes that trigger runs without an SDK (reference workflow 4.4). */
export function triggerRoutes(deps: TriggerDeps): Route[] {
  return [
    route(triggerRun, async ({ params, headers, body, caller, ip, requestId }) => {
      const item = itemOfRequest({ rest: params.destination, headers, body })
      const [triggered] = await trigger(deps, { caller, ip, requestId }, [item])
      // One item yields one result.
      return triggered as Triggered
    }),
    route(triggerRuns, async ({ body, caller, ip, requestId }) => {
      const items = await mapInSlices(body, ({ destination, headers = {}, body: text }) => ({
        destination,
        headers: headersOfItem(headers),
        body: text === undefined ? undefined : new TextEncoder().encode(text),
      }))
      return [...(await trigger(deps, { caller, ip, requestId }, items))]
    }),
  ]
}

interface Triggered {
  readonly workflowRunId: string
  readonly workflowCreatedAt: number
  readonly deduplicated?: true
  readonly replaced?: string
  readonly because?: string
}

async function trigger(
  deps: TriggerDeps,
  publisher: Publisher,
  items: readonly PublishItem[],
): Promise<readonly Triggered[]> {
  const { tracer } = deps
  if (!tracer) return (await start(deps, publisher, items)).map(answerOf)
  const traced = await mapInSlices(items, (item) => traceTrigger({ tracer, publisher }, item))
  const submit = () =>
    start(
      deps,
      publisher,
      traced.map(({ item }) => item),
    )
  return (await endAll(traced, endOfTrigger, submit)).map(answerOf)
}

function endOfTrigger({ messageId, outcome }: Accepted): PublicationEnd {
  const runId = 'runId' in outcome ? outcome.runId : undefined
  return { kind: 'accepted', messageIds: [messageId], runId, isDuplicate: outcome.kind === 'exists' }
}

async function start(
  { intake, clock }: TriggerDeps,
  publisher: Publisher,
  items: readonly PublishItem[],
): Promise<readonly Accepted[]> {
  const now = clock.now()
  const submissions = await mapInSlices(items, (item) => {
    const prepared = withDefaults(item, now)
    return intake.reader.trigger({ item: prepared, runId: newRunIdOf(prepared), publisher, now }, 'untried')
  })
  return intake.run(publisher, submissions, now)
}

/** Adds the headers that an SDK would send: run id, features, and the failure function of the workflow itself. */
function withDefaults(item: PublishItem, now: number): PublishItem {
  const destination = workflowUrl(item.destination)
  const headers: Record<string, string> = {
    'upstash-workflow-runid': newId('wfr_', now),
    ...item.headers,
    // Empty means: the failure function of the workflow itself.
    'upstash-failure-callback': item.headers['upstash-failure-callback']?.trim() || destination,
    'upstash-feature-set': FEATURES,
    'upstash-failure-callback-forward-upstash-workflow-is-failure': 'true',
    'upstash-failure-callback-forward-upstash-workflow-failure-callback': 'true',
  }
  const label = headers['upstash-label']
  if (label !== undefined) headers['upstash-forward-upstash-label'] = label
  return { ...item, destination, headers }
}

/** @throws HomeportError if it is not a URL. A URL group is refused: a run has one workflow. */
function workflowUrl(text: string): string {
  if (text === '' || /^https?(:|%3a)/i.test(text)) return parseDestination(text).url
  const found = JSON.stringify(text.slice(0, 80))
  throw new HomeportError('invalid_request', {
    problem: `A run needs the URL of its workflow; found ${found}. Send one that begins with http:// or https://.`,
  })
}

function answerOf(accepted: Accepted): Triggered {
  const { outcome } = accepted
  if (outcome.kind === 'appended' || outcome.kind === 'repeated') throw new Error('a trigger was handled as a step')
  const { runId: workflowRunId, createdAt: workflowCreatedAt } = outcome
  const existing = outcome.kind === 'exists' && { deduplicated: true as const }
  return { workflowRunId, workflowCreatedAt, ...existing, ...effectOfRule(accepted) }
}
