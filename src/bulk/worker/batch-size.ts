import type { StoreDescription } from '../../store/index.js'

/** How large batches may be, and how many are with the store. */
export interface BatchLimits {
  /** So long one batch should take, with its share of the commit. */
  readonly aimMs: number
  readonly smallest: number
  readonly largest: number
  /** So many batches are asked for before the first of them is decided. */
  readonly ahead: number
}

/**
 * On SQLite every other writer waits for one batch at most; those that nobody interrupts share a commit, so there have to
 * be some in reserve. On PostgreSQL only those wait who change the very same runs, and each batch waits for the one before
 * on a connection of its own; it is as long as to make the way there and back a trifle.
 */
export const LIMITS: Readonly<Record<StoreDescription['kind'], BatchLimits>> = {
  sqlite: { aimMs: 5, smallest: 600, largest: 2_000, ahead: 6 },
  postgres: { aimMs: 80, smallest: 300, largest: 2_000, ahead: 2 },
}

/** The first batch of all, whose code no thread has run before: it takes several times as long as later ones. */
const FIRST_ITEMS = 60
/** By how much batches grow at most. */
const GROWTH = 1.5

/** Batches that end within so short a time shared a commit, or its news were late: only together they tell something. */
const SAME_COMMIT_MS = 0.5
/** So many commits are looked back at; most of them hold turns of others too. */
const WINDOW_COMMITS = 8
/** The fastest of them may be one whose forerunner's news were late. */
const RANK = 1

/** Batches that ended together. */
interface Ended {
  readonly items: number
  readonly elapsedMs: number
}

const itemMs = ({ items, elapsedMs }: Ended): number => Math.max(elapsedMs, 0.1) / items

/**
 * How many items are decided in one turn: as many as fit into a few milliseconds on this machine. What is measured goes
 * as far as the commit, and holds the turns of others too; the fastest of the last commits had the fewest of those.
 */
export class BatchSize {
  readonly #limits: BatchLimits
  #items: number
  #ended: readonly Ended[] = []
  #lastEndedAt = Number.NEGATIVE_INFINITY

  constructor(limits: BatchLimits) {
    this.#limits = limits
    this.#items = Math.min(FIRST_ITEMS, limits.smallest)
  }

  /** The size of the next batch. */
  get items(): number {
    return Math.round(this.#items)
  }

  /** Learns from a batch of this many items, which was asked for and ended at these times, milliseconds of one clock. */
  took(items: number, askedAt: number, endedAt: number): void {
    this.#note(items, askedAt, endedAt)
    this.#lastEndedAt = endedAt
    // A small batch says little about the size that would fit.
    const telling = this.#ended.filter((ended) => ended.items * 2 >= this.#items)
    const cost = telling.map(itemMs).sort((one, other) => one - other)[Math.min(RANK, telling.length - 1)]
    if (cost !== undefined) this.#approach(this.#limits.aimMs / cost)
  }

  #note(items: number, askedAt: number, endedAt: number): void {
    const last = this.#ended.at(-1)
    if (last && endedAt - this.#lastEndedAt < SAME_COMMIT_MS) {
      this.#ended = [...this.#ended.slice(0, -1), { ...last, items: last.items + items }]
      return
    }
    // The commit before it took the rest of the time.
    const elapsedMs = endedAt - Math.max(askedAt, this.#lastEndedAt)
    this.#ended = [...this.#ended, { items, elapsedMs }].slice(-WINDOW_COMMITS)
  }

  #approach(wanted: number): void {
    const { smallest, largest } = this.#limits
    const grown = this.#items * GROWTH
    const bounded = Math.min(Math.max(wanted, this.#items / 2), grown)
    this.#items = Math.min(Math.max(bounded, Math.min(smallest, grown)), largest)
  }
}
