import type { Clock, Timer } from '../../base/index.js'
import type { DatabaseMeter } from '../../telemetry/index.js'

/** Size of a burst after a pause: the commands of this time, seconds. */
const BURST_SECONDS = 0.1
const MIN_PAUSE_MS = 2

interface Waiter {
  readonly count: number
  readonly granted: () => void
}

/**
 * The command rate of one database, as a token bucket. Commands beyond it wait; none is refused. Waiting commands are
 * served in order, one of each connection at a time, so a deep pipeline gives a connection no larger share.
 *
 * A group of commands that has to stay together needs only one token and takes all of its tokens, as an overdraft. Later
 * commands wait until the overdraft is repaid.
 */
export class CommandRate {
  readonly #clock: Clock
  #perSecond: number
  #tokens: number
  #filledAtMs: number
  #waiters: Waiter[] = []
  /** Index of the first waiter that is not served. */
  #head = 0
  #timer: Timer | undefined
  readonly #meter: Pick<DatabaseMeter, 'delayedForRate'> | undefined

  /** `perSecond` may be infinite. Waits are counted in `meter`. */
  constructor(perSecond: number, clock: Clock, meter?: Pick<DatabaseMeter, 'delayedForRate'>) {
    this.#clock = clock
    this.#meter = meter
    this.#perSecond = perSecond
    this.#tokens = this.#most
    this.#filledAtMs = clock.now()
  }

  /** Changes the rate, also for commands that wait. */
  set perSecond(perSecond: number) {
    if (perSecond === this.#perSecond) return
    this.#perSecond = perSecond
    this.#tokens = Math.min(this.#tokens, this.#most)
    if (this.#waiting === 0) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#serve()
  }

  /** Takes a token if there is one and nobody waits. */
  take(): boolean {
    if (this.#waiting > 0) return false
    if (this.#tokens < 1) this.#fill()
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  /** Takes `count` tokens if there is at least one and nobody waits. Later commands wait until the overdraft is repaid. */
  takeTogether(count: number): boolean {
    if (!this.take()) return false
    this.#tokens -= count - 1
    return true
  }

  /** Calls `granted` once `count` tokens are taken, never before this call returns. */
  wait(count: number, granted: () => void): void {
    this.#waiters.push({ count, granted })
    if (this.#meter) this.#meter.delayedForRate++
    this.#setTimer()
  }

  /** Resolves when `count` tokens are taken; undefined when they are taken at once. */
  acquire(count: number): Promise<void> | undefined {
    if (this.takeTogether(count)) return undefined
    return new Promise((resolve) => this.wait(count, resolve))
  }

  get #waiting(): number {
    return this.#waiters.length - this.#head
  }

  get #most(): number {
    return Math.max(1, this.#perSecond * BURST_SECONDS)
  }

  #fill(): void {
    const nowMs = this.#clock.now()
    const elapsedMs = Math.max(0, nowMs - this.#filledAtMs)
    this.#filledAtMs = nowMs
    if (this.#perSecond === Number.POSITIVE_INFINITY) this.#tokens = this.#perSecond
    else this.#tokens = Math.min(this.#most, this.#tokens + (elapsedMs * this.#perSecond) / 1000)
  }

  #setTimer(): void {
    if (this.#timer) return
    const missingMs = (1000 * (1 - this.#tokens)) / this.#perSecond
    this.#timer = this.#clock.after(Math.max(MIN_PAUSE_MS, Math.ceil(missingMs)), () => {
      this.#timer = undefined
      this.#serve()
    })
  }

  #serve(): void {
    this.#fill()
    // A waiter that is served may queue its next command at once, at the end.
    while (this.#waiting > 0 && this.#tokens >= 1) this.#serveNext()
    if (this.#waiting > 0) this.#setTimer()
  }

  #serveNext(): void {
    const waiter = this.#waiters[this.#head++]
    if (this.#head === this.#waiters.length) {
      this.#waiters = []
      this.#head = 0
    } else if (this.#head > 1024 && this.#head * 2 > this.#waiters.length) {
      this.#waiters = this.#waiters.slice(this.#head)
      this.#head = 0
    }
    if (!waiter) return
    this.#tokens -= waiter.count
    waiter.granted()
  }
}

/** Rate of a database that has used up the bytes of its month. */
export const SLOW_BYTES_PER_SECOND = 128 * 1024
/** Waiting commands check again after this time: the limit may change, and the month end. */
const MAX_WAIT_MS = 1_000

/**
 * The bytes that the clients of one database send and receive in a calendar month. Beyond the limit nothing fails:
 * commands wait until the bytes transferred before them are paid off at a low rate. The meter counts every byte anyway, so
 * below the limit this costs one comparison for all commands that arrive together.
 */
export class Bandwidth {
  /** May be infinite. */
  limitBytes: number
  readonly #meter: DatabaseMeter
  readonly #clock: Clock
  /** Bytes that may be transferred at once; negative after an overdraft. */
  #allowance = SLOW_BYTES_PER_SECOND
  #seenBytes = 0
  #seenAtMs = 0

  constructor(limitBytes: number, meter: DatabaseMeter, clock: Clock) {
    this.limitBytes = limitBytes
    this.#meter = meter
    this.#clock = clock
  }

  /** Time after which the next command checks again, milliseconds; 0 when it may be sent. */
  get waitMs(): number {
    if (this.#meter.monthBytes < this.limitBytes) return 0
    this.#settle()
    if (this.#allowance >= 0) return 0
    return Math.min(MAX_WAIT_MS, Math.ceil((-1000 * this.#allowance) / SLOW_BYTES_PER_SECOND))
  }

  /** Resolves when a command may be sent; undefined when that is now. */
  turn(): Promise<void> | undefined {
    const { waitMs } = this
    if (waitMs === 0) return undefined
    return new Promise<void>((resolve) => void this.#clock.after(waitMs, resolve)).then(() => this.turn())
  }

  #settle(): void {
    const nowMs = this.#clock.now()
    const bytes = this.#meter.bytesIn + this.#meter.bytesOut
    // Bytes before the limit was reached, or long ago, are free.
    const isFirst = this.#seenAtMs === 0
    const earned = isFirst
      ? SLOW_BYTES_PER_SECOND
      : (Math.max(0, nowMs - this.#seenAtMs) * SLOW_BYTES_PER_SECOND) / 1000
    const spent = isFirst ? 0 : bytes - this.#seenBytes
    this.#allowance = Math.min(SLOW_BYTES_PER_SECOND, this.#allowance + earned) - spent
    this.#seenBytes = bytes
    this.#seenAtMs = nowMs
  }
}
