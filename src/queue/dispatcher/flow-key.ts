import type { FlowHold } from '../types.js'
import { Fifo } from './collections.js'
import type { Entry, FlowPlace } from './entry.js'
import { Line } from './line.js'

/** Limits of a flow-control key. */
export interface FlowLimits {
  readonly parallelism: number | null
  readonly rate: number | null
  readonly periodMs: number
  readonly isPaused: boolean
  readonly isPinnedParallelism: boolean
  readonly isPinnedRate: boolean
}

/** Use of a flow-control key. */
export interface FlowUse {
  readonly open: number
  /** Requests started in the current period; 0 if none is running. */
  readonly begun: number
  /** Unix milliseconds; 0 if no period is running. */
  readonly periodStart: number
}

/** Zero use. */
export const UNUSED: FlowUse = { open: 0, begun: 0, periodStart: 0 }

const UNLIMITED: FlowLimits = {
  parallelism: null,
  rate: null,
  periodMs: 1_000,
  isPaused: false,
  isPinnedParallelism: false,
  isPinnedRate: false,
}

/** A flow-control key: its limits, its use, and the messages that wait for a place under it. */
export class FlowKey {
  limits: FlowLimits = UNLIMITED
  /** Created when the first message waits: there may be a million keys, and most have no waiting messages. */
  #waiting: Line | undefined
  /** Messages that lost their place before they were sent. They go before the others. */
  #returned: Fifo<Entry> | undefined
  /** Places taken, and how many of them have a request in flight. */
  #open = 0
  #inFlight = 0
  #begun = 0
  /** Periods are numbered, because the start of a period moves until its first request is sent. */
  #period = 0
  #sent = 0
  #periodStart = Number.NEGATIVE_INFINITY

  /** Takes a place for a request that starts now, if the limits allow one. */
  take(now: number): FlowPlace | undefined {
    const { isPaused, parallelism, rate } = this.limits
    if (isPaused || (parallelism !== null && this.#open >= parallelism)) return undefined
    if (!this.#isRunning(now)) this.#beginPeriod(now)
    if (rate !== null && this.#begun >= rate) return undefined
    this.#open++
    this.#begun++
    return { period: this.#period, use: 'kept' }
  }

  /** Whether a place taken earlier is still valid: limits may have changed since, and its period may be over. */
  isValid(place: FlowPlace, now: number): boolean {
    const { isPaused, parallelism, rate } = this.limits
    if (isPaused || (parallelism !== null && this.#inFlight >= parallelism)) return false
    return rate === null || (place.period === this.#period && this.#isRunning(now))
  }

  /** A request is sent from a valid place. A period begins with its first request. */
  markSent(place: FlowPlace, now: number): void {
    place.use = 'sent'
    this.#inFlight++
    if (this.#sent++ === 0) this.#periodStart = now
  }

  #beginPeriod(now: number): void {
    this.#period++
    this.#periodStart = now
    this.#begun = 0
    this.#sent = 0
  }

  /** Frees a place: its request is over, or none will be sent from it. */
  release(place: FlowPlace): void {
    this.#open--
    if (place.use === 'sent') this.#inFlight--
    else this.#refundPeriod(place)
  }

  /** Frees a place whose message had nothing to send. It does not count in the period. */
  refund(place: FlowPlace): void {
    if (place.use === 'sent' && place.period === this.#period) this.#sent--
    this.release(place)
    if (place.use === 'sent') this.#refundPeriod(place)
  }

  /** Returns an unused place to its period. A period without any request has not begun. */
  #refundPeriod({ period }: FlowPlace): void {
    if (period === this.#period && --this.#begun === 0) this.endPeriod()
  }

  wait(entry: Entry, from: 'new' | 'returned'): void {
    entry.state = 'limited'
    this.#waiting ??= new Line()
    this.#returned ??= new Fifo()
    const line = from === 'new' ? this.#waiting : this.#returned
    line.push(entry)
  }

  /** The next waiting message. */
  next(): Entry | undefined {
    return this.#returned?.shiftAlive('limited') ?? this.#waiting?.shiftAlive('limited')
  }

  /** Ends the current period. Places of the old period do not count in the next one. */
  endPeriod(): void {
    this.#period++
    this.#begun = 0
    this.#sent = 0
    this.#periodStart = Number.NEGATIVE_INFINITY
  }

  /** Whether requests have started in the last period. */
  get hasBegun(): boolean {
    return this.#begun > 0
  }

  /** Continues a period in which another node has already sent this many requests. */
  resume(begun: number, periodStart: number): void {
    this.#period++
    this.#periodStart = periodStart
    this.#begun = begun
    this.#sent = begun
  }

  use(now: number): FlowUse {
    if (!this.#isRunning(now)) return { open: this.#open, begun: 0, periodStart: 0 }
    return { open: this.#open, begun: this.#begun, periodStart: this.#periodStart }
  }

  /** When the end of the period frees a place; `Infinity` if it frees none. `release` and new limits free places too. */
  freeAt(): number {
    const { isPaused, parallelism, rate } = this.limits
    const isOnlyRate = !isPaused && rate !== null && (parallelism === null || this.#open < parallelism)
    return isOnlyRate ? this.#periodStart + this.limits.periodMs : Number.POSITIVE_INFINITY
  }

  /** The limit that blocks another request; `undefined` if none does. */
  hold(now: number): FlowHold | undefined {
    const { isPaused, parallelism, rate, periodMs } = this.limits
    if (isPaused) return { by: 'pause' }
    if (parallelism !== null && this.#open >= parallelism) return { by: 'parallelism', parallelism }
    if (rate === null || !this.#isRunning(now) || this.#begun < rate) return undefined
    return { by: 'rate', rate, periodMs, until: this.#periodStart + periodMs }
  }

  get isIdle(): boolean {
    const isWaitedFor = this.#waiting?.hasAlive('limited') || this.#returned?.peekAlive('limited') !== undefined
    return this.#open === 0 && !isWaitedFor
  }

  /** Whether the period is running. A clock that is set back also ends it, so that it does not last too long. */
  #isRunning(now: number): boolean {
    return now >= this.#periodStart && now < this.#periodStart + this.limits.periodMs
  }
}
