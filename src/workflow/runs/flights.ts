/**
 * Which deliveries of runs are under way right now, and since when. Kept in memory, because an attempt writes nothing
 * when it begins. A delivery that was dropped half way is forgotten when no attempt could still be under way.
 */
export class Flights {
  readonly #since = new Map<number, number>()
  readonly #longestMs: number

  /** @param longestMs no attempt takes longer. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs
  }

  /** An attempt of the message with this number begins. */
  begin(seq: number, now: number): void {
    this.#forget(now - this.#longestMs)
    // Deleted first, so that the oldest stays at the front.
    this.#since.delete(seq)
    this.#since.set(seq, now)
  }

  /** The attempt is over. */
  end(seq: number): void {
    this.#since.delete(seq)
  }

  /** Since when the message is being delivered, Unix milliseconds; `undefined` when it is not. */
  since(seq: number): number | undefined {
    return this.#since.get(seq)
  }

  #forget(before: number): void {
    for (const [seq, since] of this.#since) {
      if (since >= before) return
      this.#since.delete(seq)
    }
  }
}
