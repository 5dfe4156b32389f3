import { newId } from '../base/index.js'
import { ACTIVITY_KINDS, type ActivityKind } from '../contract/console/activity.js'

/** Length of the intervals that are counted, milliseconds. */
export const MINUTE_MS = 60_000
/** Minutes of a block. */
export const BLOCK_MINUTES = 15
/** Length of a block, milliseconds. */
export const BLOCK_MS = BLOCK_MINUTES * MINUTE_MS

const POSITIONS: Readonly<Record<ActivityKind, number>> = Object.fromEntries(
  ACTIVITY_KINDS.map((kind, position) => [kind, position]),
  // Safe: one entry for each kind.
) as Record<ActivityKind, number>

/** The counts of an account in one block. */
export interface BlockCounts {
  readonly accountId: string
  /** When the block began, Unix milliseconds. */
  readonly start: number
  /** Distinguishes blocks with the same start: those of other processes, and of this one after its clock was set back. */
  readonly writer: string
  /** By minute, and within a minute by the position in `ACTIVITY_KINDS`. */
  readonly counts: Uint32Array
}

interface Counts extends BlockCounts {
  /** Whether it has counts that are not stored. */
  hasChanged: boolean
}

interface Block {
  readonly start: number
  readonly writer: string
  readonly accounts: Map<string, Counts>
}

/**
 * Most blocks in memory: the current one, the one before, and blocks that are not stored yet. A block in which 10,000
 * accounts were active takes about 9 MB.
 */
const MAX_BLOCKS = 4

/**
 * Counts what accounts do, by minute. Counting is a look-up and an addition. Counts are kept in blocks of a quarter of an
 * hour; `src/activity` stores them.
 */
export class ActivityMeter {
  readonly #now: () => number
  /** Oldest first. */
  #blocks: Block[] = []
  #listener: (() => void) | undefined
  /** Whether the listener was called since the last `takeChanged`. */
  #isNotified = false

  /** @param now the current time, Unix milliseconds. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** The current time, Unix milliseconds. */
  get now(): number {
    return this.#now()
  }

  /** Registers a listener for the first count, and for the first count after each `takeChanged`. */
  onChange(listener: () => void): void {
    this.#listener = listener
    this.#isNotified = false
  }

  /** @param at when it happened, Unix milliseconds. Default: now. */
  add(accountId: string, kind: ActivityKind, times = 1, at = this.#now()): void {
    if (times <= 0) return
    const block = this.#blockAt(at - (at % BLOCK_MS))
    const counts = block.accounts.get(accountId) ?? addAccount(block, accountId)
    const index = Math.floor((at - block.start) / MINUTE_MS) * ACTIVITY_KINDS.length + POSITIONS[kind]
    counts.counts[index] = (counts.counts[index] ?? 0) + times
    counts.hasChanged = true
    if (this.#isNotified) return
    this.#isNotified = true
    this.#listener?.()
  }

  /** The blocks of an account that are in memory. Their arrays are not copies: later counts change them. */
  of(accountId: string): readonly BlockCounts[] {
    return this.#blocks.flatMap(({ accounts }) => accounts.get(accountId) ?? [])
  }

  /** All counts that are not stored. The caller stores them, or returns them with `putBack`. */
  takeChanged(): readonly BlockCounts[] {
    this.#isNotified = false
    const changed: Counts[] = []
    for (const { accounts } of this.#blocks) {
      for (const counts of accounts.values()) if (counts.hasChanged) changed.push(counts)
    }
    for (const counts of changed) counts.hasChanged = false
    return changed
  }

  /** Marks counts as not stored, after a failed write. */
  putBack(blocks: readonly BlockCounts[]): void {
    const failed = new Set(blocks)
    for (const { accounts } of this.#blocks) {
      for (const counts of accounts.values()) counts.hasChanged ||= failed.has(counts)
    }
  }

  /** Drops past blocks that are stored. */
  dropStored(): void {
    const oldest = this.#now() - 2 * BLOCK_MS
    this.#blocks = this.#blocks.filter(
      ({ start, accounts }) => start > oldest || [...accounts.values()].some(({ hasChanged }) => hasChanged),
    )
  }

  #blockAt(start: number): Block {
    const known = this.#blocks.findLast((block) => block.start === start)
    if (known) return known
    const block: Block = { start, writer: newId('', this.#now()), accounts: new Map() }
    this.#blocks.push(block)
    // If the store has failed for most of an hour, the counts of the oldest block are lost.
    if (this.#blocks.length > MAX_BLOCKS) this.#blocks.shift()
    return block
  }
}

function addAccount({ start, writer, accounts }: Block, accountId: string): Counts {
  const counts = new Uint32Array(BLOCK_MINUTES * ACTIVITY_KINDS.length)
  const added: Counts = { accountId, start, writer, counts, hasChanged: false }
  accounts.set(accountId, added)
  return added
}
