/** A timer that was set and may be taken back. Cancelling a timer that has fired does nothing. */
export interface Timer {
  cancel(): void
}

/** The source of time. All times are Unix milliseconds. */
export interface Clock {
  /** The present, in Unix milliseconds. */
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

/** Node fires a longer timeout at once, so longer waits are cut and renewed. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/** The clock of the machine. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, callback) {
    let handle: NodeJS.Timeout
    const arm = (remainingMs: number): void => {
      const waitMs = Math.min(Math.max(remainingMs, 0), LONGEST_TIMEOUT_MS)
      handle = setTimeout(() => (remainingMs > waitMs ? arm(remainingMs - waitMs) : callback()), waitMs)
      handle.unref()
    }
    arm(delayMs)
    return { cancel: () => clearTimeout(handle) }
  },
}
