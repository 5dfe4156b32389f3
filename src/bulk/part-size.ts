import type { StoreDescription } from '../store/index.js'

/** How large parts may be. */
export interface PartLimits {
  /** So long one transaction should take. */
  readonly aimMs: number
  readonly smallest: number
  readonly largest: number
}

/**
 * On SQLite every other writer waits for one part at most, and each part waits once for the disk: smaller ones would do
 * hardly anything else, and help nobody. On PostgreSQL only those wait who change the very same runs; a part is as long
 * as to make the way there and back a trifle.
 */
export const LIMITS: Readonly<Record<StoreDescription['kind'], PartLimits>> = {
  sqlite: { aimMs: 4, smallest: 300, largest: 2_000 },
  postgres: { aimMs: 80, smallest: 300, largest: 2_000 },
}

/** So many parts are looked back at: the fastest of them tells what an item costs, the others met something in between. */
const LOOKED_BACK_AT = 8

/**
 * How many items are decided in one transaction: as many as fit into a few milliseconds on this machine. What is measured
 * goes as far as the commit, and holds the turns of others too; the fastest of the last parts had the fewest of those.
 */
export class PartSize {
  readonly #limits: PartLimits
  #items: number
  /** Milliseconds an item, of the last parts. */
  readonly #costs: number[] = []

  constructor(limits: PartLimits) {
    this.#limits = limits
    this.#items = limits.smallest
  }

  /** The size of the next part. */
  get items(): number {
    return Math.round(this.#items)
  }

  /** Learns from a part of this many items. */
  took(items: number, elapsedMs: number): void {
    // A small part says little about the size that would fit.
    if (items * 2 < this.#items) return
    this.#costs.push(Math.max(elapsedMs, 0.1) / items)
    if (this.#costs.length > LOOKED_BACK_AT) this.#costs.shift()
    const { aimMs, smallest, largest } = this.#limits
    const wanted = aimMs / Math.min(...this.#costs)
    const bounded = Math.min(Math.max(wanted, this.#items / 2), this.#items * 1.5)
    this.#items = Math.min(Math.max(bounded, smallest), largest)
  }
}
