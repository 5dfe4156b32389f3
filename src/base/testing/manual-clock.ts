import type { Clock, Timer } from '../clock.js'

/** A clock for tests: its time changes only by `advance` and `jump`. */
export class ManualClock implements Clock {
  #now: number
  #timers: { at: number; callback: () => void }[] = []

  /** @param startAt initial time, Unix milliseconds. */
  constructor(startAt = 1_700_000_000_000) {
    this.#now = startAt
  }

  now(): number {
    return this.#now
  }

  after(delayMs: number, callback: () => void): Timer {
    const entry = { at: this.#now + Math.max(delayMs, 0), callback }
    this.#timers.push(entry)
    return { cancel: () => this.#remove(entry) }
  }

  /** Advances the time by `byMs` and fires all timers that become due, in the order of their times. */
  advance(byMs: number): void {
    const end = this.#now + byMs
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0]
      if (!due) break
      this.#remove(due)
      this.#now = Math.max(this.#now, due.at)
      due.callback()
    }
    this.#now = end
  }

  /** Sets the clock ahead, or back if negative. As on a machine, timers keep the time that they have left. */
  jump(byMs: number): void {
    this.#now += byMs
    for (const timer of this.#timers) timer.at += byMs
  }

  #remove(entry: { at: number }): void {
    this.#timers = this.#timers.filter((other) => other !== entry)
  }

  /** Number of timers that are set. */
  get pendingTimers(): number {
    return this.#timers.length
  }
}
