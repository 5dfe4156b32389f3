/** So long one transaction should take: other writers wait for it at most. */
const AIM_MS = 8
/** Each part waits once for the disk; smaller ones would do hardly anything else, and help nobody. */
const SMALLEST = 250
const LARGEST = 4_000

/**
 * How many items are decided in one transaction: as many as fit into a few milliseconds on this machine, right now.
 * What is measured is the whole way to the commit, so that a busy store gets smaller parts.
 */
export class PartSize {
  #items = SMALLEST

  /** The size of the next part. */
  get items(): number {
    return Math.round(this.#items)
  }

  /** Learns from a part of this many items. */
  took(items: number, elapsedMs: number): void {
    // A small part says little about the size that would fit.
    if (items * 2 < this.#items) return
    const wanted = (items * AIM_MS) / Math.max(elapsedMs, 0.1)
    const bounded = Math.min(Math.max(wanted, this.#items / 2), this.#items * 1.5)
    this.#items = Math.min(Math.max(bounded, SMALLEST), LARGEST)
  }
}
