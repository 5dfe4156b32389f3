import { isGathered, type LentBytes, newBlock } from './lent-memory.js'

/** Sizes of the memory that is reused. Rounded up, a command takes at most twice its length. */
const SIZES = [8_192, 16_384, 32_768, 65_536]
/** The smallest length that is worth it: a client that has sent a few bytes does not get 8 KiB for them. */
const LEAST_REUSED_BYTES = 4_096
/** Spare memory of each size, bytes. */
const MOST_SPARE_BYTES = 2 ** 20

const spare = new Map<number, LentBytes[]>(SIZES.map((size) => [size, []]))

/**
 * The memory in which one client's commands are gathered when they are spread over reads. That of commands up to 64 KiB is
 * lent, to one client after the other: fresh memory for each command of 10 KB was more than half of what such a command
 * cost, most of it garbage collection.
 */
export class GatherMemory {
  #current: LentBytes | undefined
  /** Memory that was left, in which frames may lie that are still needed. */
  #left: LentBytes[] = []

  /** Whether this is the memory that was taken last, and not left. */
  isCurrent(bytes: LentBytes): boolean {
    return bytes === this.#current
  }

  /** Takes memory of at least this length, and leaves that which was taken before. */
  take(bytes: number): LentBytes {
    this.leave()
    const taken = takeMemory(bytes)
    this.#current = taken
    return taken
  }

  /** Leaves the current memory. It stays as it is until `giveBack`. */
  leave(): void {
    if (this.#current) this.#left.push(this.#current)
    this.#current = undefined
  }

  /** Lets others use the memory that was left. */
  giveBack(): void {
    if (this.#left.length === 0) return
    for (const memory of this.#left) giveBack(memory)
    this.#left = []
  }
}

function takeMemory(bytes: number): LentBytes {
  const size = bytes < LEAST_REUSED_BYTES ? undefined : SIZES.find((known) => known >= bytes)
  if (size === undefined) return Buffer.allocUnsafeSlow(bytes)
  return spare.get(size)?.pop() ?? newBlock('gathered', size)
}

function giveBack(memory: LentBytes): void {
  const list = spare.get(memory.length)
  if (list && isGathered(memory) && list.length * memory.length < MOST_SPARE_BYTES) list.push(memory)
}
