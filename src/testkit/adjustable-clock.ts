import { type Clock, systemClock, type Timer } from '../base/index.js'

interface Entry {
  readonly at: number
  readonly callback: () => void
  timer: Timer
}

/** A clock that runs like that of the system and can be turned forward. */
export class AdjustableClock implements Clock {
  readonly #entries = new Set<Entry>()
  #aheadMs = 0

  now(): number {
    return systemClock.now() + this.#aheadMs
  }

  after(delayMs: number, callback: () => void): Timer {
    const at = this.now() + Math.max(delayMs, 0)
    const entry: Entry = { at, callback, timer: systemClock.after(delayMs, () => this.#fire(entry)) }
    this.#entries.add(entry)
    return { cancel: () => this.#remove(entry) }
  }

  /** Turns the clock forward to a time, and fires the timers that have become due, in their order. Never turns it back. */
  advanceTo(time: number): void {
    this.#aheadMs += Math.max(0, time - this.now())
    const now = this.now()
    for (const entry of [...this.#entries].sort((a, b) => a.at - b.at)) {
      entry.timer.cancel()
      if (entry.at > now) entry.timer = systemClock.after(entry.at - now, () => this.#fire(entry))
      else if (this.#entries.has(entry)) this.#fire(entry)
    }
  }

  #fire(entry: Entry): void {
    this.#entries.delete(entry)
    entry.callback()
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry)
    entry.timer.cancel()
  }
}
