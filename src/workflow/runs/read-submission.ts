import { newId } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import {
  configOf,
  firstAttemptAt,
  forwardedHeaders,
  type HeaderMap,
  labelColumn,
  type Publisher,
  type PublishItem,
  parseDestination,
  type Queue,
  readSettings,
  refuseInvalidOfCallbacks,
  refuseWithoutKey,
  type SettingLimits,
  storedKey,
} from '../../queue/index.js'
import { ownBytes } from '../protocol/bytes.js'
import { announces, asksForContact, classify, PROTOCOL_HEADER } from '../protocol/protocol.js'
import { parseInvocation, webhookOf } from '../protocol/sent-steps.js'
import {
  debouncedDelivery,
  markedConfig,
  newRunIdOf,
  type RunItem,
  readRunItem,
  refuseRule,
  runIdOf,
} from '../protocol/settings.js'
import type { DeliveryColumns, NewElement, ParentLink } from '../transactions/runs-rows.js'
import type { Submission } from '../transactions/runs-submissions.js'
import { timingColumn } from './delivery-times.js'
import type { InFlightDeliveries } from './in-flight.js'
import type { RecentLists } from './recent-lists.js'
import { startOf } from './starts.js'

/** Limit of nested invocations. */
const MAX_INVOCATION_DEPTH = 100

const STEP_TOO_LARGE =
  'A step arrives with its result in one request: store large values elsewhere, and return a reference.'
/** The result of a call names its step in this header. */
const STEP_ID_HEADER = 'forward-upstash-workflow-stepid'

/** Collaborators of `SubmissionReader`. */
export interface SubmissionReaderDeps {
  readonly queue: Pick<Queue, 'refuseForbidden'>
  readonly limits: SettingLimits
  readonly lists: Pick<RecentLists, 'deliveryOf'>
  readonly inFlight: Pick<InFlightDeliveries, 'timesOfStep'>
}

/** An item that belongs to a run. */
interface Received {
  readonly item: PublishItem
  readonly runId: string
  readonly publisher: Publisher
  /** Unix milliseconds. */
  readonly now: number
}

/** Reads what the items of publish requests mean for runs, and refuses what is invalid. Stores nothing. */
export class SubmissionReader {
  readonly #deps: SubmissionReaderDeps

  constructor(deps: SubmissionReaderDeps) {
    this.#deps = deps
  }

  /** @throws HomeportError if the item is invalid, as SDKs understand it (`refusalOf`). */
  read(item: PublishItem, publisher: Publisher, now: number): Submission {
    try {
      return this.#read(item, publisher, now)
    } catch (error) {
      throw error instanceof HomeportError ? refusalOf(item, error) : error
    }
  }

  #read(item: PublishItem, publisher: Publisher, now: number): Submission {
    const kind = classify(item.headers)
    const runId = kind === 'trigger' || kind === 'invoke' ? newRunIdOf(item) : runIdOf(item)
    const received = { item, runId, publisher, now }
    switch (kind) {
      case 'trigger':
        return this.trigger(received, 'first')
      case 'confirm':
        return { kind: 'confirm', ifUnknown: 'refuse', ...startOf(this.#runItem(received), item, runId, 'first', now) }
      case 'invoke':
        return this.#invocation(received)
      case 'step':
        return { kind: 'append', runId, element: this.#step(received) }
      case 'call':
        return { kind: 'append', runId, element: this.#call(received), ...markOfCall(item) }
    }
  }

  /** Reads a trigger of any origin. If it asks for a first contact, the run opens with that. */
  trigger(received: Received, role: 'first' | 'untried'): Submission {
    const { item, runId, now } = received
    const opening = asksForContact(item.headers) ? 'contact' : role
    refuseWithoutKey(item.headers)
    const read = this.#anyRunItem(received)
    const { run, first } = startOf(read, item, runId, opening, now)
    const { rule } = read.settings
    if (!rule) return { kind: 'start', run, first }
    const delivery =
      rule.kind === 'debounce' && first.delivery ? debouncedDelivery(first.delivery, rule) : first.delivery
    const stored = { ...rule, key: storedKey(rule.key) }
    return { kind: 'start', run, first: { ...first, ...(delivery && { delivery }) }, rule: stored }
  }

  /** Reads the settings of an item, and refuses a debounce or singleton key. */
  #runItem(received: Received): RunItem {
    const read = this.#anyRunItem(received)
    refuseRule(read.settings)
    return read
  }

  /** Reads the settings of a run, and refuses forbidden destinations. */
  #anyRunItem({ item, publisher: { ip }, now }: Received): RunItem {
    const { limits, queue } = this.#deps
    const read = readRunItem(item, { now, ip, limits })
    queue.refuseForbidden([read.meta.delivery.url], item.headers)
    return read
  }

  #invocation(received: Received): Submission {
    const { runId, now } = received
    refuseDeepNesting(received.item)
    const { payload, link } = parseInvocation(received.item.body)
    const parent: ParentLink = { ...link, messageId: newId('msg_', now) }
    const item = { ...received.item, body: payload }
    const read = this.#runItem({ ...received, item })
    return { kind: 'start', ...startOf(read, item, runId, 'first', now), parent }
  }

  #step(received: Received): NewElement {
    const { item, runId, publisher, now } = received
    const step = {
      kind: 'step' as const,
      messageId: newId('msg_', now),
      body: ownBytes(item.body),
      timing: this.#timing(received),
      webhook: webhookOf(item.body),
    }
    if (announces(item.headers, 'WF_TriggerOnConfig')) {
      const settings = readSettings(item.headers, now, this.#deps.limits)
      refuseRule(settings)
      const cached = this.#deps.lists.deliveryOf(publisher.caller.accountId, runId)
      return Object.assign(step, { meta: null, dueAt: firstAttemptAt(settings, now), ...cached })
    }
    // This SDK repeats its settings with each step, so the settings of the step apply.
    const { settings, meta } = this.#runItem(received)
    const { delivery } = meta
    return Object.assign(step, { meta: JSON.stringify(meta), dueAt: firstAttemptAt(settings, now), delivery })
  }

  /** Times of the delivery in which the program has sent a step. */
  #timing({ item: { body }, runId, publisher }: Received): string | null {
    const { accountId } = publisher.caller
    return timingColumn(this.#deps.inFlight.timesOfStep({ accountId, runId }, body))
  }

  #call(received: Received): NewElement {
    const { item, publisher, now } = received
    const settings = readSettings(item.headers, now, this.#deps.limits)
    refuseRule(settings)
    refuseInvalidOfCallbacks(item.headers)
    const { callback, failureCallback: _, ...own } = settings
    const destination = parseDestination(item.destination)
    this.#deps.queue.refuseForbidden([destination.url], item.headers)
    if (!callback) {
      throw new HomeportError('invalid_request', {
        problem: 'Upstash-Callback is missing. Send the URL that gets the result of the call.',
      })
    }
    const delivery: DeliveryColumns = {
      url: destination.url,
      method: settings.method ?? 'POST',
      headers: JSON.stringify(headersOfCall(item)),
      config: markedConfig(configOf(own), { role: 'call' }),
      max_retries: settings.retries ?? 0,
      labels: labelColumn(settings.labels),
      flow_key: settings.flowKey ?? null,
      caller_ip: publisher.ip,
      host: destination.host,
      path: destination.path,
    }
    return {
      kind: 'toCallback',
      messageId: newId('msg_', now),
      body: ownBytes(item.body),
      meta: JSON.stringify({ delivery, callback }),
      dueAt: firstAttemptAt(settings, now),
      delivery,
      timing: this.#timing(received),
    }
  }
}

/** Error for an item of an active run: `step_refused`, because SDKs treat a 400 as the end of the run. */
export function refusalOf(item: PublishItem, error: HomeportError): HomeportError {
  const kind = classify(item.headers)
  const isOfActiveRun = kind === 'step' || kind === 'call' || kind === 'invoke'
  if (!isOfActiveRun) return error
  const problem = isError(error, 'body_too_large') ? `${error.message} ${STEP_TOO_LARGE}` : error.message
  return new HomeportError('step_refused', { problem })
}

/**
 * Headers for the third party. SDKs that announce no features also forward the protocol version with their calls. It is
 * removed, because a workflow that is called would parse its payload as a list (reference workflow 4.2).
 */
function headersOfCall({ headers }: PublishItem): HeaderMap {
  const { [PROTOCOL_HEADER]: version, ...others } = forwardedHeaders(headers, false)
  return version === undefined || headers['upstash-feature-set'] === undefined
    ? others
    : { ...others, [PROTOCOL_HEADER]: version }
}

/** The step of a call, as text that occurs in the stored JSON of the call; absent if the SDK does not name the step. */
function markOfCall({ headers }: PublishItem): { mark?: string } {
  const stepId = headers[`upstash-callback-${STEP_ID_HEADER}`]
  return stepId === undefined
    ? {}
    : { mark: `${JSON.stringify(`upstash-${STEP_ID_HEADER}`)}:${JSON.stringify(stepId)}` }
}

/** Stops workflows that invoke themselves without end (reference workflow 4.8). */
function refuseDeepNesting(item: PublishItem): void {
  const found = item.headers['upstash-forward-upstash-workflow-invoke-count'] ?? '0'
  if (Number(found) <= MAX_INVOCATION_DEPTH) return
  throw new HomeportError('setting_limit', {
    setting: 'The nesting of invocations',
    found,
    limit: String(MAX_INVOCATION_DEPTH),
  })
}
