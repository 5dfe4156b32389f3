import type { ClientMemoryBudget, MemoryConsumer } from '../../base/index.js'

/**
 * What the connection of one client holds of a reply until it is whole. It counts in the memory of clients: an engine may
 * send the replies to a thousand clients at the same time.
 */
export class HeldMemory implements MemoryConsumer {
  readonly owner: string
  heldBytes = 0
  readonly #budget: Pick<ClientMemoryBudget, 'grow' | 'remove'>
  readonly #close: () => void

  /** `close` closes the connection; it is called in a turn of its own. */
  constructor(owner: string, budget: Pick<ClientMemoryBudget, 'grow' | 'remove'>, close: () => void) {
    this.owner = owner
    this.#budget = budget
    this.#close = close
  }

  /** `bytes` more bytes are held, or fewer. */
  add(bytes: number): void {
    this.heldBytes += bytes
    if (bytes > 0) this.#budget.grow(this, bytes)
  }

  /** The connection is closed. */
  release(): void {
    this.heldBytes = 0
    this.#budget.remove(this)
  }

  evict(): void {
    this.heldBytes = 0
    // The connection is in the middle of a chunk.
    setImmediate(this.#close)
  }
}
