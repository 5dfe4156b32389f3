import { isGathered, type LentBytes, newBlock } from './lent-memory.js'

/** Sizes of the memory that is reused. A command gets the next larger size, at most twice its length. */
const SIZES = [8_192, 16_384, 32_768, 65_536]
/** Least length for which memory is reused: a client that has sent a few bytes must not occupy 8 KiB. */
const MIN_REUSED_BYTES = 4_096
/** Spare memory of each size, bytes. */
const MAX_SPARE_BYTES = 2 ** 20

const spare = new Map<number, LentBytes[]>(SIZES.map((size) => [size, []]))

/**
 * The memory in which one client's commands are gathered when they are spread over reads. For commands up to 64 KiB the
 * memory is lent to one client after the other: with fresh memory for each command of 10 KB, allocation and garbage
 * collection were more than half of the cost of such a command.
 */
export class GatherMemory {
  #current: LentBytes | undefined
  /** Memory that was left, which may still contain frames that are needed. */
  #left: LentBytes[] = []

  /** Whether `bytes` is the memory that was taken last and has not been left. */
  isCurrent(bytes: LentBytes): boolean {
    return bytes === this.#current
  }

  /** Takes memory of at least this length, and leaves the memory that was taken before. */
  take(bytes: number): LentBytes {
    this.leave()
    const taken = takeMemory(bytes)
    this.#current = taken
    return taken
  }

  /** Leaves the current memory, which stays unchanged until `giveBack`. */
  leave(): void {
    if (this.#current) this.#left.push(this.#current)
    this.#current = undefined
  }

  /** Lets other clients use the memory that was left. */
  giveBack(): void {
    if (this.#left.length === 0) return
    for (const memory of this.#left) giveBack(memory)
    this.#left = []
  }
}

function takeMemory(bytes: number): LentBytes {
  const size = bytes < MIN_REUSED_BYTES ? undefined : SIZES.find((known) => known >= bytes)
  if (size === undefined) return Buffer.allocUnsafeSlow(bytes)
  return spare.get(size)?.pop() ?? newBlock('gathered', size)
}

function giveBack(memory: LentBytes): void {
  const list = spare.get(memory.length)
  if (list && isGathered(memory) && list.length * memory.length < MAX_SPARE_BYTES) list.push(memory)
}
