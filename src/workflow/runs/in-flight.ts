import { isObject, TurnoverMap, tryParseJson } from '../../base/index.js'
import { type HeaderMap, headerOf } from '../../queue/index.js'
import type { ListElement } from '../protocol/outbound.js'
import { isPlan, parseStep } from '../protocol/sent-steps.js'
import type { DeliveryTimes } from './delivery-times.js'
import type { RunName } from './refused-returns.js'

/** A delivery of a run whose request has begun. */
export interface InFlightDelivery {
  /** `messages.seq`. */
  readonly seq: number
  /** The run whose program executes a step on it; absent for a call of a third party and for a failure callback. */
  readonly run?: RunName | undefined
  readonly times: DeliveryTimes
  /** Id of the step of a parallel branch that the program executes on it; `undefined` outside branches. */
  readonly branch: () => number | undefined
}

/** Larger steps of parallel branches are not parsed only to know which delivery they answer. */
const MAX_PARSED_BYTES = 64 * 1024

/**
 * The deliveries in flight: when they began, and what they had waited for. In memory, because the start of an attempt
 * writes nothing. The entry of a delivery that was dropped expires after the timeout of an attempt.
 */
export class InFlightDeliveries {
  /** Oldest first. */
  readonly #bySeq = new TurnoverMap<number, InFlightDelivery>()
  readonly #byRun = new TurnoverMap<string, readonly InFlightDelivery[]>()
  readonly #timeoutMs: number

  /** @param timeoutMs timeout of one attempt. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** An attempt begins. */
  begin(delivery: InFlightDelivery): void {
    this.#expire(delivery.times.startedAt - this.#timeoutMs)
    // End first: the map stays ordered by start time.
    this.end(delivery.seq)
    this.#bySeq.set(delivery.seq, delivery)
    if (!delivery.run) return
    const name = nameOf(delivery.run)
    this.#byRun.set(name, [...(this.#byRun.get(name) ?? []), delivery])
  }

  /** The outcome of the attempt is committed, or none will be. */
  end(seq: number): void {
    this.answered(seq)
    this.#bySeq.delete(seq)
  }

  /** The program has answered: it sends no more steps on this delivery. */
  answered(seq: number): void {
    const delivery = this.#bySeq.get(seq)
    if (!delivery?.run) return
    const name = nameOf(delivery.run)
    const others = (this.#byRun.get(name) ?? []).filter((other) => other !== delivery)
    if (others.length > 0) this.#byRun.set(name, others)
    else this.#byRun.delete(name)
  }

  /** Start of the attempt in flight, Unix milliseconds; `undefined` if there is none. */
  since(seq: number): number | undefined {
    return this.#bySeq.get(seq)?.times.startedAt
  }

  /** The times of the attempt in flight; `undefined` if there is none. */
  timesOf(seq: number): DeliveryTimes | undefined {
    return this.#bySeq.get(seq)?.times
  }

  /**
   * The times of the delivery on which the program has executed a step; `undefined` if this node does not know it:
   * another node of the cluster delivers the run.
   * @param step the step as it was sent.
   */
  timesOfStep(run: RunName, step: Uint8Array | undefined): DeliveryTimes | undefined {
    const deliveries = this.#byRun.get(nameOf(run)) ?? []
    const [only, another] = deliveries
    if (!another) return only?.times
    if (!step || step.byteLength > MAX_PARSED_BYTES) return undefined
    const { stepId } = parseStep(step)
    return deliveries.find(({ branch }) => branch() === stepId)?.times
  }

  #expire(before: number): void {
    for (const [seq, { times }] of this.#bySeq.entries()) {
      if (times.startedAt >= before) return
      this.end(seq)
    }
  }
}

const nameOf = ({ accountId, runId }: RunName): string => `${accountId} ${runId}`

/**
 * The parallel branch that a delivery is for: the step of a call is named in the headers of its result, every other one in
 * the plan that the delivery brings.
 * @param last the last element that it brings.
 */
export function branchOf(headers: HeaderMap, last: ListElement | undefined): number | undefined {
  const ofCall = headerOf(headers, 'Upstash-Workflow-StepId')
  if (ofCall !== undefined) return Number(ofCall)
  if (!last || last.bodyBytes > MAX_PARSED_BYTES) return undefined
  const sent = tryParseJson(last.text)
  const body = isObject(sent) && typeof sent.body === 'string' ? Buffer.from(sent.body, 'base64') : undefined
  const step = parseStep(body)
  return isPlan(step) ? Number(step.targetStep) : undefined
}
