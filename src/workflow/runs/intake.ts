import { type Clock, inNextTurn, mapInSlices } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  type BatchReply,
  type Intake,
  type Publisher,
  type PublishItem,
  type Queue,
  quotaOf,
  type SettingLimits,
} from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { Tracer, WorkflowMeter } from '../../telemetry/index.js'
import { belongsToRun } from '../protocol/protocol.js'
import type { PausedWorkflow } from '../transactions/runs-pause.js'
import type { ListedStep, RunOfDelivery } from '../transactions/runs-read.js'
import type { ElementPlace, Submission, SubmitArgs, Submitted } from '../transactions/runs-submissions.js'
import * as runsSubmit from '../transactions/runs-submit.js'
import { type Accepted, acceptedOf, elementOf, replyTo } from './accepted.js'
import { metaOfTrigger } from './columns.js'
import type { InFlightDeliveries } from './in-flight.js'
import { refusalOf, SubmissionReader } from './read-submission.js'
import type { RecentLists, RequestAhead } from './recent-lists.js'
import { activeRun, requestAhead } from './request-ahead.js'
import { mayStart, type StartOfRun, withStartOf } from './starts.js'
import { submitTraced } from './traced-items.js'
import type { Starting, StartWork, TriggerGate } from './trigger-gate.js'

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
 * Accepts the items of publish requests that belong to runs: triggers, steps, calls, invocations (`SubmissionReader`).
 *
 *   items ─ read ─ submissions ─ gate: may the runs start? ─ one commit ─ lists cached, messages offered, replaced runs dropped
 *                                    └─ meanwhile the request that follows is built ahead ─┘
 *
 * One transaction stores all items of a request. A step for an ended run fails the whole request (reference workflow 4.12).
 */
export class RunIntake implements Intake, TriggerGate {
  readonly name = 'workflow'
  /** Parses items. The trigger routes use its `trigger`. */
  readonly reader: SubmissionReader
  readonly #deps: IntakeDeps
  #gate: TriggerGate | undefined

  constructor(deps: IntakeDeps) {
    this.#deps = deps
    this.reader = new SubmissionReader(deps)
  }

  /** Registers the gate that decides which runs may start. */
  guard(gate: TriggerGate): void {
    this.#gate = gate
  }

  /** Calls `work`, which starts these runs, unless the gate refuses one of them. */
  pass<Made>(accountId: string, runs: readonly Starting[], at: number, work: StartWork<Made>): Promise<Made> {
    return this.#gate && runs.length > 0 ? this.#gate.pass(accountId, runs, at, work) : work([])
  }

  claims(item: PublishItem): boolean {
    return belongsToRun(item.headers)
  }

  refusal(item: PublishItem, error: HomeportError): HomeportError {
    return refusalOf(item, error)
  }

  submit(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly BatchReply[]> {
    const { store, tracer, lists } = this.#deps
    if (!tracer) return this.#submit(publisher, items)
    return submitTraced({ store, tracer, lists, publisher }, items, (traced) => this.#submit(publisher, traced))
  }

  async #submit(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly BatchReply[]> {
    const now = this.#deps.clock.now()
    const submissions = await mapInSlices(items, (item) => this.reader.read(item, publisher, now))
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
   * Drops the messages of replaced runs. A replaced run of a singleton key may have a request in flight on any node. A
   * replaced run of a debounce key has none: its node asks the store before its first request.
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
   * Builds the next request while the store commits. Not with traces, because each delivery then has its own header, which
   * is not known yet.
   */
  #requestAhead(args: SubmitArgs): () => RequestAhead | undefined {
    return this.#deps.tracer ? () => undefined : inNextTurn(() => requestAhead(this.#deps, args))
  }

  /** Caches the new elements, because they are sent next. */
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
}
