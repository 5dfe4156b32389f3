import { type Clock, inNextTurn, mapInSlices, newId } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import {
  type BatchReply,
  configOf,
  firstAttemptAt,
  forwardedHeaders,
  type HeaderMap,
  type Intake,
  labelColumn,
  type Publisher,
  type PublishItem,
  parseDestination,
  type Queue,
  quotaOf,
  readSettings,
  refuseInvalidOfCallbacks,
  refuseWithoutKey,
  type SettingLimits,
  storedKey,
} from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { Tracer, WorkflowMeter } from '../../telemetry/index.js'
import { ownBytes } from '../protocol/bytes.js'
import {
  announces,
  asksForContact,
  belongsToRun,
  classify,
  type ItemKind,
  PROTOCOL_HEADER,
} from '../protocol/protocol.js'
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
import type { PausedWorkflow } from '../transactions/runs-pause.js'
import type { ListedStep, RunOfDelivery } from '../transactions/runs-read.js'
import type { DeliveryColumns, NewElement, ParentLink } from '../transactions/runs-rows.js'
import type { ElementPlace, Submission, SubmitArgs, Submitted } from '../transactions/runs-submissions.js'
import * as runsSubmit from '../transactions/runs-submit.js'
import { type Accepted, acceptedOf, elementOf, replyTo } from './accepted.js'
import { metaOfTrigger } from './columns.js'
import { timingColumn } from './delivery-times.js'
import type { InFlightDeliveries } from './in-flight.js'
import type { RecentLists, RequestAhead } from './recent-lists.js'
import { activeRun, requestAhead } from './request-ahead.js'
import { mayStart, type StartOfRun, startOf, withStartOf } from './starts.js'
import { submitTraced } from './traced-items.js'
import type { Starting, StartWork, TriggerGate } from './trigger-gate.js'

/** Limit of nested invocations. */
const MAX_INVOCATION_DEPTH = 100

const STEP_TOO_LARGE =
  'A step arrives with its result in one request: store large values elsewhere, and return a reference.'
/** The result of a call names its step in this header. */
const STEP_ID_HEADER = 'forward-upstash-workflow-stepid'

/** Collaborators of the intake. */
export interface IntakeDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'drop' | 'dropEverywhere' | 'refuseForbidden' | 'signAhead'>
  readonly clock: Clock
  readonly limits: SettingLimits
  readonly lists: RecentLists
  readonly inFlight: Pick<InFlightDeliveries, 'timesOfStep'>
  readonly meter: Pick<WorkflowMeter, 'started' | 'steps' | 'ended' | 'activity'>
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
  /** See `RequestsAheadDeps`. */
  readonly inlineLimitBytes?: number | undefined
}

/**
 * Accepts the items of publish requests that belong to runs: triggers, steps, calls, invocations. One transaction stores
 * all items of a request; one step for an ended run fails the whole request (reference workflow 4.12).
 */
export class RunIntake implements Intake, TriggerGate {
  readonly name = 'workflow'
  readonly #deps: IntakeDeps
  #gate: TriggerGate | undefined

  constructor(deps: IntakeDeps) {
    this.#deps = deps
  }

  /** Registers the gate that decides which runs may start. */
  guard(gate: TriggerGate): void {
    this.#gate = gate
  }

  /** Runs `work`, which makes these runs, unless the gate refuses one of them. */
  pass<Made>(accountId: string, runs: readonly Starting[], at: number, work: StartWork<Made>): Promise<Made> {
    return this.#gate && runs.length > 0 ? this.#gate.pass(accountId, runs, at, work) : work([])
  }

  claims(item: PublishItem): boolean {
    return belongsToRun(item.headers)
  }

  submit(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly BatchReply[]> {
    const { store, tracer, lists } = this.#deps
    if (!tracer) return this.#submit(publisher, items)
    return submitTraced({ store, tracer, lists, publisher }, items, (traced) => this.#submit(publisher, traced))
  }

  async #submit(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly BatchReply[]> {
    const now = this.#deps.clock.now()
    const submissions = await mapInSlices(items, (item) => this.#submission(item, publisher, now))
    const accepted = await this.run(publisher, submissions, now)
    return accepted.map(replyTo)
  }

  /**
   * Submits parsed items.
   * @throws HomeportError `run_ended`, `run_unknown` or the error of the gate; then nothing was stored.
   */
  async run(publisher: Publisher, submissions: readonly Submission[], now: number): Promise<Accepted[]> {
    const { accountId } = publisher.caller
    const args = { accountId, submissions, at: now, quota: quotaOf(publisher.caller) }
    const submit = (paused: readonly PausedWorkflow[]) =>
      this.#deps.store.run(runsSubmit.submit, paused.length > 0 ? { ...args, paused } : args)
    const starting = submissions.flatMap((submission) => (mayStart(submission) ? [submission.run] : []))
    const submitting = this.pass(accountId, starting, now, submit)
    const ahead = this.#requestAhead(args)
    const result = await submitting
    switch (result.kind) {
      case 'ended':
        throw new HomeportError('run_ended', { runId: result.runId, state: result.state })
      case 'missing': {
        const again = withStartOf(submissions, result.runId)
        if (again) return this.run(publisher, again, now)
        throw new HomeportError('run_unknown', { runId: result.runId })
      }
      case 'accepted':
        for (const outcome of result.results) this.#count(accountId, outcome)
        this.#remember(args, result.places, ahead())
        this.#deps.queue.offer(result.offers)
        if (result.cancelled) await this.#dropReplaced(accountId, result.cancelled, submissions)
        return result.results.map((outcome, index) => acceptedOf(submissions[index], outcome))
    }
  }

  /**
   * A replaced run of a singleton key may have a request in flight on any node. One of a debounce key has not: the node that
   * delivers it looks before its first request.
   */
  async #dropReplaced(
    accountId: string,
    runSeqs: readonly number[],
    submissions: readonly Submission[],
  ): Promise<void> {
    const { queue, lists, meter } = this.#deps
    meter.ended.cancelled += runSeqs.length
    meter.activity.add(accountId, 'cancelled_runs', runSeqs.length)
    for (const seq of runSeqs) lists.forget(seq)
    const mayBeInFlight = submissions.some((one) => one.kind === 'start' && one.rule?.kind === 'singleton')
    if (mayBeInFlight) await queue.dropEverywhere({ groupKeys: runSeqs })
    else queue.drop({ groupKeys: runSeqs })
  }

  #count(accountId: string, { kind }: Submitted): void {
    const { meter } = this.#deps
    if (kind === 'appended') meter.steps++
    if (kind !== 'started') return
    meter.started++
    meter.activity.add(accountId, 'started_runs')
  }

  /**
   * Builds the request that follows while the store commits. With traces, each delivery has a header of its own, which is not
   * known yet.
   */
  #requestAhead(args: SubmitArgs): () => RequestAhead | undefined {
    return this.#deps.tracer ? () => undefined : inNextTurn(() => requestAhead(this.#deps, args))
  }

  /** Caches the new elements: they are sent next. */
  #remember(
    { accountId, submissions, at }: SubmitArgs,
    places: readonly ElementPlace[],
    ahead: RequestAhead | undefined,
  ): void {
    const sources = new Map(submissions.map((submission) => [elementOf(submission).messageId, submission]))
    for (const { messageId, runSeq, position } of places) {
      const source = sources.get(messageId)
      const element = source && elementOf(source)
      const step = element?.kind === 'step' ? { message_id: messageId, body: element.body } : undefined
      if (source?.kind === 'append') this.#deps.lists.appended(runSeq, position, step, ahead)
      else if (source && step) this.#rememberStart(activeRun(source.run, runSeq, accountId, at), source, step, ahead)
    }
  }

  #rememberStart(
    run: RunOfDelivery,
    { run: { contact }, first }: StartOfRun,
    step: ListedStep,
    ahead: RequestAhead | undefined,
  ): void {
    const { lists } = this.#deps
    lists.idReused(run.account_id, run.run_id)
    // The first element of a run with an unknown SDK gets another message when the SDK confirms.
    if (contact === 'known') lists.started(run, step, metaOfTrigger(first.meta).delivery, ahead)
  }

  /** Builds the submission of a trigger of any origin. If the trigger asks for a first contact, that comes first. */
  trigger(item: PublishItem, runId: string, role: 'first' | 'untried', publisher: Publisher, now: number): Submission {
    const opening = asksForContact(item.headers) ? 'contact' : role
    refuseWithoutKey(item.headers)
    const read = this.#readItem(item, publisher, now)
    const { run, first } = startOf(read, item, runId, opening, now)
    const { rule } = read.settings
    if (!rule) return { kind: 'start', run, first }
    const delivery =
      rule.kind === 'debounce' && first.delivery ? debouncedDelivery(first.delivery, rule) : first.delivery
    const stored = { ...rule, key: storedKey(rule.key) }
    return { kind: 'start', run, first: { ...first, ...(delivery && { delivery }) }, rule: stored }
  }

  /** Reads the settings of an item that has no debounce or singleton key. */
  #runItem(item: PublishItem, publisher: Publisher, now: number): RunItem {
    const read = this.#readItem(item, publisher, now)
    refuseRule(read.settings)
    return read
  }

  /** Reads the settings of a run, and refuses forbidden destinations. */
  #readItem(item: PublishItem, publisher: Publisher, now: number): RunItem {
    const { limits, queue } = this.#deps
    const read = readRunItem(item, { now, ip: publisher.ip, limits })
    queue.refuseForbidden([read.meta.delivery.url], item.headers)
    return read
  }

  #submission(item: PublishItem, publisher: Publisher, now: number): Submission {
    const kind = classify(item.headers)
    try {
      const starts = kind === 'trigger' || kind === 'invoke'
      return this.#read(item, kind, starts ? newRunIdOf(item) : runIdOf(item), publisher, now)
    } catch (error) {
      throw error instanceof HomeportError ? this.refusal(item, error) : error
    }
  }

  /** Error for an item of an active run: `step_refused`, because SDKs take a 400 for the end of the run. */
  refusal(item: PublishItem, error: HomeportError): HomeportError {
    const kind = classify(item.headers)
    const isOfActiveRun = kind === 'step' || kind === 'call' || kind === 'invoke'
    if (!isOfActiveRun) return error
    const problem = isError(error, 'body_too_large') ? `${error.message} ${STEP_TOO_LARGE}` : error.message
    return new HomeportError('step_refused', { problem })
  }

  #read(item: PublishItem, kind: ItemKind, runId: string, publisher: Publisher, now: number): Submission {
    switch (kind) {
      case 'trigger':
        return this.trigger(item, runId, 'first', publisher, now)
      case 'confirm': {
        const read = this.#runItem(item, publisher, now)
        return { kind: 'confirm', ifUnknown: 'refuse', ...startOf(read, item, runId, 'first', now) }
      }
      case 'invoke':
        return this.#invocation(item, runId, publisher, now)
      case 'step':
        return { kind: 'append', runId, element: this.#step(item, runId, publisher, now) }
      case 'call':
        return { kind: 'append', runId, element: this.#call(item, runId, publisher, now), ...markOfCall(item) }
    }
  }

  #invocation(item: PublishItem, runId: string, publisher: Publisher, now: number): Submission {
    refuseDeepNesting(item)
    const { payload, link } = parseInvocation(item.body)
    const parent: ParentLink = { ...link, messageId: newId('msg_', now) }
    const child = { ...item, body: payload }
    const read = this.#runItem(child, publisher, now)
    return { kind: 'start', ...startOf(read, child, runId, 'first', now), parent }
  }

  #step(item: PublishItem, runId: string, publisher: Publisher, now: number): NewElement {
    const step = {
      kind: 'step' as const,
      messageId: newId('msg_', now),
      body: ownBytes(item.body),
      timing: this.#timing(item, runId, publisher),
      webhook: webhookOf(item.body),
    }
    if (announces(item.headers, 'WF_TriggerOnConfig')) {
      const settings = readSettings(item.headers, now, this.#deps.limits)
      refuseRule(settings)
      const cached = this.#deps.lists.deliveryOf(publisher.caller.accountId, runId)
      return Object.assign(step, { meta: null, dueAt: firstAttemptAt(settings, now), ...cached })
    }
    // An SDK that repeats its settings with each step: those of the step apply.
    const { settings, meta } = this.#runItem(item, publisher, now)
    const { delivery } = meta
    return Object.assign(step, { meta: JSON.stringify(meta), dueAt: firstAttemptAt(settings, now), delivery })
  }

  /** The delivery on which the program has sent a step. */
  #timing({ body }: PublishItem, runId: string, { caller: { accountId } }: Publisher): string | null {
    return timingColumn(this.#deps.inFlight.timesOfStep({ accountId, runId }, body))
  }

  #call(item: PublishItem, runId: string, publisher: Publisher, now: number): NewElement {
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
      timing: this.#timing(item, runId, publisher),
    }
  }
}

/**
 * Headers for the third party. SDKs that announce no features forward the protocol version with their calls, too. It is
 * removed: a workflow that is called would take its payload for a list (reference workflow 4.2).
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
