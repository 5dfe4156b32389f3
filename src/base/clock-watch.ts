import type { Clock, Timer } from './clock.js'

/** How often the clock is looked at. */
const LOOK_EVERY_MS = 5_000
/** Smaller differences are a clock that is kept in time, or a timer that fires late. */
const LEAST_JUMP_MS = 1_000

/** Told of a jump of the clock, milliseconds: ahead, or back when negative. */
export type OnJump = (byMs: number) => void

/**
 * Notices when the time of day is set while the server runs: a timer waits for a span of time, whatever is done to the
 * clock meanwhile. A timer never fires early, so a jump back is at least as long as it is said to be. A machine that was
 * suspended looks like one whose clock was set ahead, and means the same: time has passed that nobody saw.
 */
export class ClockWatch {
  readonly #clock: Clock
  readonly #onJump: OnJump
  #timer: Timer | undefined

  constructor(clock: Clock, onJump: OnJump) {
    this.#clock = clock
    this.#onJump = onJump
  }

  start(): void {
    const expectedMs = this.#clock.now() + LOOK_EVERY_MS
    this.#timer = this.#clock.after(LOOK_EVERY_MS, () => {
      const jumpMs = this.#clock.now() - expectedMs
      this.start()
      if (Math.abs(jumpMs) >= LEAST_JUMP_MS) this.#onJump(jumpMs)
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }
}
