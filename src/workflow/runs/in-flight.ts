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
  /** The run whose program executes a step in this delivery; absent for a call of a third party and a failure callback. */
  readonly run?: RunName | undefined
  readonly times: DeliveryTimes
  /** Id of the parallel branch that the program executes in this delivery; `undefined` outside branches. */
  readonly branch: () => number | undefined
}

/** Larger steps are not parsed to find out which delivery of a parallel branch they answer. */
const MAX_PARSED_BYTES = 64 * 1024

/**
 * The deliveries in flight: when they began, and how long they had waited. They are in memory only, because the start of an
 * attempt writes nothing. The entry of a dropped delivery expires after the timeout of an attempt.
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

  /** Records an attempt that begins. */
  begin(delivery: InFlightDelivery): void {
    this.#expire(delivery.times.startedAt - this.#timeoutMs)
    // End first: the map stays ordered by start time.
    this.end(delivery.seq)
    this.#bySeq.set(delivery.seq, delivery)
    if (!delivery.run) return
    const name = nameOf(delivery.run)
    this.#byRun.set(name, [...(this.#byRun.get(name) ?? []), delivery])
  }

  /** Forgets an attempt, because its outcome is committed or never will be. */
  end(seq: number): void {
    this.answered(seq)
    this.#bySeq.delete(seq)
  }

  /** Records that the program has answered, so it sends no more steps in this delivery. */
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
   * The times of the delivery in which the program has executed a step; `undefined` if this node does not know the delivery,
   * such as when another node of the cluster delivers the run.
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
 * The id of the parallel branch that a delivery is for. For the result of a call, the headers name it; for any other
 * delivery, the plan at the end of the list.
 * @param last the last element of the delivered list.
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
