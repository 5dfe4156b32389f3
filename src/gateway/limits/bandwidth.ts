import type { Clock } from '../../base/index.js'
import type { DatabaseMeter } from '../../telemetry/index.js'

/** What a database gets that has used up the bytes of its month. */
export const SLOW_BYTES_PER_SECOND = 128 * 1024
/** Limits may change and months turn, so nobody waits for longer without another look. */
const LONGEST_WAIT_MS = 1_000

/**
 * The bytes that clients of one database send and are sent in a calendar month. Beyond the limit nothing fails: commands
 * wait until what was transferred before them has been paid for, at a low rate. The meter counts every byte anyway, so
 * below the limit this costs one comparison for all commands that arrive together.
 */
export class Bandwidth {
  /** May be infinite. */
  limitBytes: number
  readonly #meter: DatabaseMeter
  readonly #clock: Clock
  /** Bytes that may go at once; negative while they are owed. */
  #allowance = SLOW_BYTES_PER_SECOND
  #seenBytes = 0
  #seenAtMs = 0

  constructor(limitBytes: number, meter: DatabaseMeter, clock: Clock) {
    this.limitBytes = limitBytes
    this.#meter = meter
    this.#clock = clock
  }

  /** How long the next command has to wait before it asks again, milliseconds; 0 when it may go. */
  get waitMs(): number {
    if (this.#meter.monthBytes < this.limitBytes) return 0
    this.#settle()
    if (this.#allowance >= 0) return 0
    return Math.min(LONGEST_WAIT_MS, Math.ceil((-1000 * this.#allowance) / SLOW_BYTES_PER_SECOND))
  }

  /** Resolves when a command may go; undefined when that is now. */
  turn(): Promise<void> | undefined {
    const { waitMs } = this
    if (waitMs === 0) return undefined
    return new Promise<void>((resolve) => void this.#clock.after(waitMs, resolve)).then(() => this.turn())
  }

  #settle(): void {
    const nowMs = this.#clock.now()
    const bytes = this.#meter.bytesIn + this.#meter.bytesOut
    // What went before the limit was reached, or long ago, is not owed.
    const isFirst = this.#seenAtMs === 0
    const earned = isFirst ? SLOW_BYTES_PER_SECOND : ((nowMs - this.#seenAtMs) * SLOW_BYTES_PER_SECOND) / 1000
    const spent = isFirst ? 0 : bytes - this.#seenBytes
    this.#allowance = Math.min(SLOW_BYTES_PER_SECOND, this.#allowance + earned) - spent
    this.#seenBytes = bytes
    this.#seenAtMs = nowMs
  }
}
