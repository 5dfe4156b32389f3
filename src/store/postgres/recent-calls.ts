const WINDOW_MS = 500
/** Upkeep and large jobs alone make no more calls than this. */
const FEW = 20

/** Counts the most recent calls, in two windows: the previous one and the current one. */
export class RecentCalls {
  #beganMs = Number.NEGATIVE_INFINITY
  #before = 0
  #now = 0

  /** Counts a call at this time, by `performance.now()`. */
  note(nowMs: number): void {
    this.#turn(nowMs)
    this.#now++
  }

  /** Whether there were more than a few within the last half to one second. */
  areMany(nowMs: number): boolean {
    this.#turn(nowMs)
    return this.#before + this.#now > FEW
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#beganMs
    if (elapsedMs < WINDOW_MS) return
    this.#before = elapsedMs < 2 * WINDOW_MS ? this.#now : 0
    this.#now = 0
    this.#beganMs = nowMs
  }
}
