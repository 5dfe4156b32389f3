import type { StoreDescription } from '../../store/index.js'

/** Size and concurrency of batches. */
export interface BatchLimits {
  /** Target duration of a batch with its share of the commit. */
  readonly targetMs: number
  /** Size of the first batch. */
  readonly first: number
  readonly smallest: number
  readonly largest: number
  /** Batches in flight at once. */
  readonly inFlight: number
  /** The limits while others use the store. */
  readonly besideOthers?: { readonly largest: number; readonly inFlight: number }
}

/**
 * SQLite: other writers wait for one batch at most. Batches that follow each other directly share a commit, so several
 * are kept in flight. Cold code makes the first one several times as slow as later ones.
 * PostgreSQL: only writers of the same runs wait. Two batches run side by side, each on a connection of its own, and are
 * long enough to make the network round trips negligible. While others use the store, only one shorter batch runs: two
 * would take both processors of a small server, so that publishes would wait three times as long.
 */
export const LIMITS: Readonly<Record<StoreDescription['kind'], BatchLimits>> = {
  sqlite: { targetMs: 5, first: 60, smallest: 600, largest: 2_000, inFlight: 6 },
  postgres: {
    targetMs: 150,
    first: 1_000,
    smallest: 300,
    largest: 2_000,
    inFlight: 2,
    besideOthers: { largest: 1_000, inFlight: 1 },
  },
}

/** Largest growth from one batch to the next. */
const GROWTH = 1.5

/** Batches that end this close together shared a commit, or one notification was late; they are measured as one. */
const SAME_COMMIT_MS = 0.5
/** Sliding window of recent commits. Most of them include other transactions. */
const WINDOW_COMMITS = 8
/** Rank of the sample used: the fastest may be wrong because the notification before it was late. */
const SAMPLE_RANK = 1

/** Batches of one commit. */
interface CommitSample {
  readonly items: number
  readonly elapsedMs: number
}

const itemMs = ({ items, elapsedMs }: CommitSample): number => Math.max(elapsedMs, 0.1) / items

/**
 * Chooses how many items a batch has: as many as fit into a few milliseconds on this machine. Measurements include the
 * commit and other transactions; the fastest recent commits included the fewest.
 */
export class BatchSize {
  readonly #limits: BatchLimits
  readonly #isBesideOthers: () => boolean
  #items: number
  #samples: readonly CommitSample[] = []
  #lastEndedAt = Number.NEGATIVE_INFINITY

  /** @param isBesideOthers whether others use the store now. */
  constructor(limits: BatchLimits, isBesideOthers: () => boolean = () => false) {
    this.#limits = limits
    this.#isBesideOthers = isBesideOthers
    this.#items = limits.first
  }

  /** Items in the next batch. */
  get items(): number {
    return Math.min(Math.round(this.#items), this.#bounds.largest)
  }

  /** The most batches in flight. */
  get inFlight(): number {
    return this.#bounds.inFlight
  }

  get #bounds(): Pick<BatchLimits, 'largest' | 'inFlight'> {
    const { besideOthers } = this.#limits
    return besideOthers && this.#isBesideOthers() ? besideOthers : this.#limits
  }

  /** Records a batch of this many items with its request and end times, milliseconds of one clock. */
  took(items: number, requestedAt: number, endedAt: number): void {
    this.#record(items, requestedAt, endedAt)
    this.#lastEndedAt = endedAt
    // A much smaller batch says little about the right size.
    const samples = this.#samples.filter((ended) => ended.items * 2 >= this.#items)
    const cost = samples.map(itemMs).sort((one, other) => one - other)[Math.min(SAMPLE_RANK, samples.length - 1)]
    if (cost !== undefined) this.#approach(this.#limits.targetMs / cost)
  }

  #record(items: number, requestedAt: number, endedAt: number): void {
    const last = this.#samples.at(-1)
    if (last && endedAt - this.#lastEndedAt < SAME_COMMIT_MS) {
      this.#samples = [...this.#samples.slice(0, -1), { ...last, items: last.items + items }]
      return
    }
    // Until `#lastEndedAt` the previous commit was running.
    const elapsedMs = endedAt - Math.max(requestedAt, this.#lastEndedAt)
    this.#samples = [...this.#samples, { items, elapsedMs }].slice(-WINDOW_COMMITS)
  }

  #approach(target: number): void {
    const { smallest, largest } = this.#limits
    const grown = this.#items * GROWTH
    const bounded = Math.min(Math.max(target, this.#items / 2), grown)
    this.#items = Math.min(Math.max(bounded, Math.min(smallest, grown)), largest)
  }
}
