import type { ClientMemoryBudget, MemoryConsumer } from '../../base/index.js'

/**
 * Counts the bytes that the connection of one client holds of a reply until the reply is whole. They count in the memory
 * budget of clients, because an engine may send such replies to a thousand clients at the same time.
 */
export class HeldMemory implements MemoryConsumer {
  readonly owner: string
  heldBytes = 0
  readonly #budget: Pick<ClientMemoryBudget, 'grow' | 'remove'>
  readonly #close: () => void

  /** `close` closes the connection; it is called in a later turn of the event loop. */
  constructor(owner: string, budget: Pick<ClientMemoryBudget, 'grow' | 'remove'>, close: () => void) {
    this.owner = owner
    this.#budget = budget
    this.#close = close
  }

  /** Changes the number of held bytes by `bytes`, which may be negative. */
  add(bytes: number): void {
    // The connection may have been lost since the bytes were added.
    this.heldBytes = Math.max(0, this.heldBytes + bytes)
    if (bytes > 0) this.#budget.grow(this, bytes)
    else if (this.heldBytes === 0) this.#budget.remove(this)
  }

  /** Call it when the connection is closed. */
  release(): void {
    this.heldBytes = 0
    this.#budget.remove(this)
  }

  evict(): void {
    this.heldBytes = 0
    // Not at once: the connection is handling a chunk.
    setImmediate(this.#close)
  }
}
