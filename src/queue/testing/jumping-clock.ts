import type { Clock, Timer } from '../../base/index.js'

/**
 * A clock whose time of day can be set while its timers go on, as that of a machine can: a timer waits for a span of
 * time, whatever is done to the time of day meanwhile.
 */
export class JumpingClock implements Clock {
  readonly #steady: Clock
  #offsetMs = 0

  /** @param steady what timers go by. */
  constructor(steady: Clock) {
    this.#steady = steady
  }

  now(): number {
    return this.#steady.now() + this.#offsetMs
  }

  after(delayMs: number, callback: () => void): Timer {
    return this.#steady.after(delayMs, callback)
  }

  /** Sets the time of day ahead, or back when `byMs` is negative. */
  jump(byMs: number): void {
    this.#offsetMs += byMs
  }
}
