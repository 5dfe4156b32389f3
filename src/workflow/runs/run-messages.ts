import { type Clock, TasksByKey, unreachable } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { bytes } from '../../contract/words/figures.js'
import {
  type AttemptOutcome,
  attemptRecord,
  type ClaimMemory,
  type Decision,
  decideNext,
  dueOf,
  isDelivered,
  type LineWait,
  type MessageKind,
  NeverSent,
  type Outbound,
  type PendingMessage,
  type Settled,
} from '../../queue/index.js'
import type { MessageEnd, SettleArgs } from '../../queue/transactions/messages-settle.js'
import * as messagesSettle from '../../queue/transactions/messages-settle.js'
import type { Store } from '../../store/index.js'
import type { SpanValues, WorkflowMeter } from '../../telemetry/index.js'
import { firstBytes } from '../protocol/bytes.js'
import {
  INLINE_LIMIT_BYTES,
  LIST_LIMIT_BYTES,
  outboundOf,
  type Sending,
  sendingInSlices,
} from '../protocol/outbound.js'
import { lastResponse, recordOf } from '../protocol/reports.js'
import { markOf } from '../protocol/settings.js'
import * as runsDone from '../transactions/runs-done.js'
import * as runsNotify from '../transactions/runs-notify.js'
import type { Contents, Delivery } from '../transactions/runs-read.js'
import * as runsRead from '../transactions/runs-read.js'
import { RUN_MESSAGE_KIND } from '../transactions/runs-rows.js'
import * as runsRules from '../transactions/runs-rules.js'
import type { RunEffect } from '../transactions/runs-settle.js'
import * as runsSettle from '../transactions/runs-settle.js'
import { metaOfTrigger } from './columns.js'
import type { DeliveryTimes } from './delivery-times.js'
import { type FollowUpInput, reportsList, resultElement, runFailureOf } from './follow-ups.js'
import { branchOf, type InFlightDeliveries } from './in-flight.js'
import type { RecentLists } from './recent-lists.js'
import type { RefusedReturns } from './refused-returns.js'
import type { RunNodes } from './run-nodes.js'
import { deliversList, judge, mayDeliver, type Role, type Verdict } from './run-state.js'

/** Collaborators and limits of the deliveries of runs. */
export interface RunMessagesDeps {
  readonly store: Store
  readonly clock: Clock
  /** Limit of the body of a request to this server. */
  readonly bodyLimitBytes: number
  readonly inFlight: InFlightDeliveries
  readonly lists: RecentLists
  readonly nodes: Pick<RunNodes, 'ended'>
  readonly refusedReturns: RefusedReturns
  readonly meter: WorkflowMeter
  /** Bytes of a response that are recorded with its run. */
  readonly responseKeepBytes: number
  /** The SDK fetches a larger list itself; default `INLINE_LIMIT_BYTES`. */
  readonly inlineLimitBytes?: number | undefined
  /** A run with a larger list fails; default `LIST_LIMIT_BYTES`. */
  readonly listLimitBytes?: number | undefined
}

const NO_BODY = new Uint8Array()
/** Bytes that a request may read without a memory claim. */
const UNCLAIMED_BYTES = 2 ** 20
/** Memory of a request per byte that it reads: the steps of a list, their text in base64, and the body made of that. */
const MEMORY_PER_BYTE = 3
const NOTHING: Settled = { offers: [] }

/** Data needed to settle an outcome; a member is `undefined` if the run or the element is gone. */
type Context = { readonly [Name in 'delivery' | 'beginning']: FollowUpInput[Name] | undefined }

/** The message kind of runs: builds the request of each attempt, and applies its outcome to the run. */
export class RunMessages implements MessageKind {
  readonly name = RUN_MESSAGE_KIND
  readonly #deps: RunMessagesDeps
  /** Turns for failing deliveries with a large list in their callback: one at a time, because each takes much memory. */
  readonly #largeReports = new TasksByKey()

  constructor(deps: RunMessagesDeps) {
    this.#deps = deps
  }

  prepare(message: PendingMessage, wait: LineWait, claim: ClaimMemory): Promise<Outbound | undefined> | Outbound {
    const isDebounced = message.config.rule?.kind === 'debounce' && message.retried === 0
    return isDebounced ? this.#prepareUnlessReplaced(message, wait, claim) : this.#prepare(message, wait, claim)
  }

  /** Closes the debounce rule of the run first, so that no trigger replaces the run from now on. */
  async #prepareUnlessReplaced(
    message: PendingMessage,
    wait: LineWait,
    claim: ClaimMemory,
  ): Promise<Outbound | undefined> {
    const isActive = await this.#deps.store.run(runsRules.close, { runSeq: runSeqOf(message) })
    return isActive ? this.#prepare(message, wait, claim) : undefined
  }

  #prepare(message: PendingMessage, wait: LineWait, claim: ClaimMemory): Promise<Outbound | undefined> | Outbound {
    const { role } = markOf(message.config)
    const known = deliversList(role) ? this.#deps.lists.upTo(runSeqOf(message), message.messageId) : undefined
    if (!known) return this.#fetch(message, wait, claim)
    const { run, list, outbound } = known
    return this.#begin(message, { run, list, body: NO_BODY }, wait, outbound)
  }

  /** Reads the delivery from the store. */
  async #fetch(message: PendingMessage, wait: LineWait, claim: ClaimMemory): Promise<Outbound | undefined> {
    const { role } = markOf(message.config)
    let delivery = await this.#readToSend(message, claim)
    if (!delivery && role === 'step') {
      await this.#expire(message)
      // Reads again even if the wait had ended: a notification may just have appended the element of this message.
      delivery = await this.#readToSend(message, claim)
    }
    if (delivery && mayDeliver(delivery.run.state, role)) {
      const sending = await sendingInSlices(delivery)
      this.#deps.lists.loaded(delivery, sending.list)
      return this.#begin(message, sending, wait)
    }
    await this.#deleteMessage(message)
    return undefined
  }

  /** Reads a delivery, without its list if that is too large to be sent. */
  async #readToSend(message: PendingMessage, claim: ClaimMemory): Promise<Delivery | undefined> {
    const found = await this.#read(message, UNCLAIMED_BYTES)
    const { largerBytes, element } = found ?? {}
    if (largerBytes === undefined) return found
    if (element?.kind === 'step' && largerBytes > this.#inlineLimit) {
      refuseLongList(largerBytes, this.#deps.listLimitBytes)
      return found
    }
    claim(largerBytes * MEMORY_PER_BYTE)
    return this.#read(message, largerBytes)
  }

  get #inlineLimit(): number {
    return this.#deps.inlineLimitBytes ?? INLINE_LIMIT_BYTES
  }

  /** Records the attempt and returns its request. @param ahead the request, if it was built ahead. */
  #begin(message: PendingMessage, sending: Sending, { heldMs, lineMs }: LineWait, ahead?: Outbound): Outbound {
    const { role } = markOf(message.config)
    const { run_id: runId, account_id: accountId } = sending.run
    // `branch` keeps only the last element in memory, not the whole list, while the request is in flight.
    const last = sending.list.at(-1)
    this.#deps.inFlight.begin({
      seq: message.seq,
      run: isReported(role) ? { accountId, runId } : undefined,
      times: { dueAt: dueOf(message), heldMs, lineMs, startedAt: this.#deps.clock.now() },
      branch: () => branchOf(message.headers, last),
    })
    const outbound = ahead ?? outboundOf(message, sending, this.#deps.inlineLimitBytes)
    // The failure callback carries the last response of the program, up to the body limit.
    return isReported(role) ? { ...outbound, keepFailingBytes: this.#deps.bodyLimitBytes } : outbound
  }

  spanValues(message: PendingMessage): SpanValues {
    return { 'homeport.workflow.delivery': markOf(message.config).role }
  }

  async settle(message: PendingMessage, outcome: AttemptOutcome): Promise<Settled> {
    this.#deps.inFlight.answered(message.seq)
    const settled = await this.#settleBy(message, outcome)
    // Only after the commit: before it, the run log would show the message as queued.
    this.#deps.inFlight.end(message.seq)
    if (!isDelivered(outcome)) this.#deps.meter.activity.add(message.accountId, 'failed_step_attempts')
    return settled
  }

  async #settleBy(message: PendingMessage, outcome: AttemptOutcome): Promise<Settled> {
    const now = this.#deps.clock.now()
    const next = decideNext(message, outcome, now)
    const decision = this.#deps.refusedReturns.isEmpty ? next : await this.#failRefusedReturn(next, message, outcome)
    const { role } = markOf(message.config)
    const verdict = judge(role, decision, outcome)
    this.#count(role, outcome)
    switch (verdict.kind) {
      case 'done':
        await this.#deleteMessage(message)
        return NOTHING
      case 'retry':
        return this.#retry(message, outcome, verdict.at, now)
      case 'fail':
      case 'fail-unless-confirmed':
      case 'return-call':
      case 'callback-ended':
        return this.#settleRun(message, outcome, verdict, now)
      default:
        return unreachable(verdict)
    }
  }

  #count(role: Role, { startedAt, finishedAt }: AttemptOutcome): void {
    const { stepDuration, callDuration } = this.#deps.meter
    if (isReported(role)) stepDuration.record((finishedAt - startedAt) / 1_000)
    else if (role === 'call') callDuration.record((finishedAt - startedAt) / 1_000)
  }

  /** Fails a delivery without a retry if the return of the program was too large: it would return the same again. */
  async #failRefusedReturn(
    decision: Decision,
    message: PendingMessage,
    { startedAt }: AttemptOutcome,
  ): Promise<Decision> {
    if (decision.kind !== 'retry') return decision
    const { run } = (await this.#read(message, 'nothing')) ?? {}
    const isRefused =
      run && this.#deps.refusedReturns.hasSince({ accountId: run.account_id, runId: run.run_id }, startedAt)
    return isRefused ? { kind: 'failed', reason: 'refused' } : decision
  }

  /** @param most bytes of a body or list; a larger one is not read. */
  #read(message: PendingMessage, most: number | 'nothing'): Promise<Delivery | undefined> {
    const of = { seq: runSeqOf(message), messageId: message.messageId }
    const args = most === 'nothing' ? { ...of, contents: 'none' as const, most: 0 } : { ...of, most }
    return this.#deps.store.run(runsRead.delivery, args)
  }

  async #beginning(message: PendingMessage, contents: Contents): Promise<FollowUpInput['beginning'] | undefined> {
    const row = await this.#deps.store.run(runsRead.beginning, { seq: runSeqOf(message), contents })
    return row && { meta: metaOfTrigger(row.meta), payload: row.body }
  }

  /** Reads the data to settle an outcome. Leaves out bodies that are damaged, which is why the delivery failed. */
  async #context(message: PendingMessage, verdict: RunVerdict): Promise<Context> {
    const isFailing = verdict.kind === 'fail' || verdict.kind === 'fail-unless-confirmed'
    if (!isFailing) return this.#contextWith(message, 'none')
    try {
      return await this.#contextWith(message, 'whole')
    } catch (error) {
      if (!isError(error, 'store_damaged')) throw error
      return this.#contextWith(message, 'none')
    }
  }

  async #contextWith(message: PendingMessage, contents: Contents): Promise<Context> {
    const delivery = await this.#read(message, 'nothing')
    const beginning = await this.#beginning(message, contents)
    const needsList = contents === 'whole' && delivery && beginning && reportsList({ delivery, beginning })
    return { delivery: needsList ? await this.#read(message, UNCLAIMED_BYTES) : delivery, beginning }
  }

  /** Appends the timeout of a wait to the list. A message without an element is the deadline of a wait. */
  async #expire(message: PendingMessage): Promise<void> {
    const args = { runSeq: runSeqOf(message), messageId: message.messageId, at: this.#deps.clock.now() }
    await this.#deps.store.run(runsNotify.expireWait, args)
  }

  /** Deletes a message that is done, or that has nothing left to deliver. */
  #deleteMessage({ seq, retried }: PendingMessage): Promise<void> {
    return this.#deps.store.run(runsDone.settleDone, { seq, retried })
  }

  async #retry(message: PendingMessage, outcome: AttemptOutcome, at: number, now: number): Promise<Settled> {
    const wait = this.#deps.inFlight.timesOf(message.seq)
    const args = settleArgs(message, outcome, { kind: 'retry', nextAt: at }, now, wait)
    const settled = await this.#deps.store.run(messagesSettle.settle, args)
    this.#deps.meter.retries++
    return settled.kind === 'gone'
      ? NOTHING
      : { ...NOTHING, retry: { ...message, retried: message.retried + 1, nextAt: at } }
  }

  async #settleRun(
    message: PendingMessage,
    outcome: AttemptOutcome,
    verdict: RunVerdict,
    now: number,
  ): Promise<Settled> {
    const context = await this.#context(message, verdict)
    const { delivery } = context
    const isLarge =
      delivery?.element.kind === 'step' && (delivery.largerBytes ?? Number.POSITIVE_INFINITY) <= this.#inlineLimit
    if (!delivery || !isLarge) return this.#commit(message, outcome, verdict, context, now)
    return this.#largeReports.take('', async () =>
      this.#commit(message, outcome, verdict, { ...context, delivery: await this.#withList(message, delivery) }, now),
    )
  }

  /** Reads the delivery with its list, unless the list is damaged. */
  async #withList(message: PendingMessage, delivery: Delivery): Promise<Delivery | undefined> {
    try {
      return await this.#read(message, this.#inlineLimit)
    } catch (error) {
      if (!isError(error, 'store_damaged')) throw error
      return delivery
    }
  }

  async #commit(
    message: PendingMessage,
    outcome: AttemptOutcome,
    verdict: RunVerdict,
    { delivery, beginning }: Context,
    now: number,
  ): Promise<Settled> {
    if (!delivery || !beginning) {
      await this.#deleteMessage(message)
      return NOTHING
    }
    const { bodyLimitBytes: largestStepBytes, responseKeepBytes } = this.#deps
    const times = this.#deps.inFlight.timesOf(message.seq)
    const effect = await effectOf(verdict, {
      message,
      outcome,
      delivery,
      beginning,
      largestStepBytes,
      responseKeepBytes,
      now,
      times,
    })
    const args = {
      runSeq: runSeqOf(message),
      message: settleArgs(message, outcome, { kind: 'delivered', keep: false }, now, times),
      effect,
    }
    const settled = await this.#deps.store.run(runsSettle.settleRun, args)
    if (settled.kind === 'gone') return NOTHING
    if (settled.runEnded) {
      this.#deps.meter.ended.failed++
      this.#deps.meter.activity.add(message.accountId, 'failed_runs')
      this.#deps.nodes.ended(args.runSeq)
    }
    return settled.runEnded ? { offers: settled.offers, dropGroups: [args.runSeq] } : { offers: settled.offers }
  }
}

/** @throws NeverSent */
function refuseLongList(found: number, most = LIST_LIMIT_BYTES): void {
  if (found <= most) return
  const sizes = `the payload and results of this run take ${bytes(found)} together, and the limit is ${bytes(most)}`
  throw new NeverSent(
    `${sizes}. Store large results elsewhere and return references to them, or let runs of their own do parts of the work (context.invoke).`,
  )
}

type RunVerdict = Extract<Verdict, { kind: 'fail' | 'fail-unless-confirmed' | 'return-call' | 'callback-ended' }>

/** Whether a delivery makes the program execute the run, so that the failure callback reports the program's response. */
function isReported(role: Role): boolean {
  return role !== 'call' && role !== 'failure'
}

async function effectOf(verdict: RunVerdict, input: FollowUpInput): Promise<RunEffect> {
  switch (verdict.kind) {
    case 'fail':
      return { kind: 'fail', failing: await runFailureOf(input, verdict.reason) }
    case 'fail-unless-confirmed':
      return { kind: 'fail-unless-confirmed', failing: await runFailureOf(input, 'no-first-contact') }
    case 'return-call':
      return { kind: 'append', element: await resultElement(input) }
    case 'callback-ended': {
      const { message, outcome, now } = input
      const { retried, maxRetries } = message
      const response = recordOf(lastResponse(outcome, undefined), input.responseKeepBytes)
      const callback = { ...response, retried, maxRetries, time: now }
      return { kind: 'callback-ended', state: verdict.state, callback }
    }
    default:
      return unreachable(verdict)
  }
}

/** Limit of a response body that is stored with a failed attempt. */
const ATTEMPT_BYTES = 65_536

function settleArgs(
  message: PendingMessage,
  outcome: AttemptOutcome,
  end: MessageEnd,
  now: number,
  wait: DeliveryTimes | undefined,
): SettleArgs {
  const { seq, retried } = message
  const attempt = attemptRecord(outcome)
  const body = attempt.body && firstBytes(attempt.body, ATTEMPT_BYTES)
  return { seq, retried, at: now, attempt: { ...attempt, body, wait }, end, follow: [] }
}

function runSeqOf(message: PendingMessage): number {
  if (message.groupKey === undefined) throw new Error(`message ${message.messageId} has no run`)
  return message.groupKey
}
