/** A timer that has been set. Cancelling it after it has fired does nothing. */
export interface Timer {
  cancel(): void
}

/** The source of time. All times are Unix milliseconds. */
export interface Clock {
  /** The current time, Unix milliseconds. */
  now(): number
  /** Calls `callback` once, `delayMs` milliseconds from now; a negative delay counts as 0. */
  after(delayMs: number, callback: () => void): Timer
}

/** Resolves `ms` milliseconds from now. */
export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve)
  })
}

/** Node fires a longer timeout at once, so longer waits are split. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** @param onSet receives each timeout of Node once it is set. */
function clockOf(onSet: (handle: NodeJS.Timeout) => void): Clock {
  return {
    now: () => Date.now(),
    after(delayMs, callback) {
      let handle: NodeJS.Timeout
      const arm = (remainingMs: number): void => {
        const waitMs = Math.min(Math.max(remainingMs, 0), MAX_TIMEOUT_MS)
        handle = setTimeout(() => (remainingMs > waitMs ? arm(remainingMs - waitMs) : callback()), waitMs)
        onSet(handle)
      }
      arm(delayMs)
      return { cancel: () => clearTimeout(handle) }
    },
  }
}

/** The clock of the machine. Its timers do not keep the process alive. */
export const systemClock: Clock = clockOf((handle) => handle.unref())

/** The clock of the machine for a command that waits for nothing else: its timers keep the process alive. */
export const commandClock: Clock = clockOf(() => undefined)

const WATCH_EVERY_MS = 5_000
/** Smaller differences come from NTP adjusting the clock, or from a timer that fires late. */
const SMALLEST_JUMP_MS = 1_000

/** After a jump ahead by this much or more, the clock may be wrong: nothing is deleted by age for the same time. */
const TRUST_AFTER_MS = 86_400_000

/** Decides whether the clock can be trusted when things are deleted by age. */
export class AgeTrust {
  #from = 0

  /** Reports that the clock was set, or the machine suspended. @returns whether deletions by age now stop for a while. */
  jumped(byMs: number, nowMs: number): boolean {
    if (byMs <= -TRUST_AFTER_MS) this.#from = 0
    if (byMs < TRUST_AFTER_MS) return false
    this.#from = nowMs + TRUST_AFTER_MS
    return true
  }

  /** Whether things may be deleted for their age. */
  at(nowMs: number): boolean {
    return nowMs >= this.#from
  }
}

/** Receives a jump of the clock, milliseconds: positive when it was set ahead, negative when it was set back. */
export type OnJump = (byMs: number) => void

/**
 * Notices when the system clock is set while the server runs: it compares the clock with a timer, which does not depend on
 * the clock. A timer never fires early, so a jump back is at least as long as reported. A suspended machine looks like one
 * whose clock was set ahead, and is treated the same: time has passed without the server.
 */
export class ClockWatch {
  readonly #clock: Clock
  readonly #onJump: OnJump
  #timer: Timer | undefined
  #nextLookMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, onJump: OnJump) {
    this.#clock = clock
    this.#onJump = onJump
  }

  start(): void {
    this.#nextLookMs = this.#clock.now() + WATCH_EVERY_MS
    this.#timer = this.#clock.after(WATCH_EVERY_MS, () => {
      const jumpMs = this.aheadMs
      this.start()
      if (Math.abs(jumpMs) >= SMALLEST_JUMP_MS) this.#onJump(jumpMs)
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** How far the clock is past the next look, milliseconds: negative, unless the clock was set ahead since the last one. */
  get aheadMs(): number {
    return this.#clock.now() - this.#nextLookMs
  }
}

/**
 * Watches the clock for a job that deletes things by age: for a day after a jump ahead of a day or more, nothing may be
 * deleted, unless the clock is set back.
 */
export class AgeWatch {
  readonly #clock: Clock
  readonly #watch: ClockWatch
  readonly #trust = new AgeTrust()

  /** @param onDistrust called when deletions stop for a while. */
  constructor(clock: Clock, onDistrust: OnJump) {
    this.#clock = clock
    this.#watch = new ClockWatch(clock, (byMs) => {
      if (this.#trust.jumped(byMs, clock.now())) onDistrust(byMs)
    })
  }

  start(): void {
    this.#watch.start()
  }

  stop(): void {
    this.#watch.stop()
  }

  /** Whether things may be deleted for their age now. False after a large jump ahead, even before the next look. */
  get mayDelete(): boolean {
    return this.#watch.aheadMs < TRUST_AFTER_MS && this.#trust.at(this.#clock.now())
  }
}
