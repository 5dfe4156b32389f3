import { usableMemoryBytes } from './usable-memory.js'

/** A client for which memory is held: its incomplete request or its unread replies. */
export interface MemoryConsumer {
  /** Who the memory is counted for, such as a database or an account. */
  readonly owner: string
  /** Memory held for the client now, bytes; 0 once the client has disconnected. */
  readonly heldBytes: number
  /** Frees all of that memory. A client that cannot be sent an error loses its connection. */
  evict(): void
}

/** Consumers below this size, bytes, need not be reported: there are never enough of them to matter. */
export const MIN_REPORTED_BYTES = 64 * 1024

const MAX_LIMIT_BYTES = 2 ** 30
const SHARE_OF_MEMORY = 1 / 8
/** The total is counted again whenever the reported growth reaches this share of the limit. */
const RECOUNT_SHARE = 1 / 32

interface Account {
  bytes: number
  readonly consumers: { readonly consumer: MemoryConsumer; readonly bytes: number }[]
}

/**
 * Limits the memory that incomplete requests and unread replies of all clients hold together. Each client has a limit of
 * its own; many clients, each below its limit, could still fill the memory. Beyond the limit, the largest consumer of
 * the owner that holds the most is evicted first.
 *
 * The total may exceed the limit by 1/32, and by what an evicted consumer keeps until the end of the present turn of the
 * event loop.
 */
export class ClientMemoryBudget {
  readonly limitBytes: number
  readonly #consumers = new Set<MemoryConsumer>()
  readonly #onFault: (error: unknown) => void
  #grownBytes = 0

  /**
   * @param limitBytes default: one eighth of the memory that this server may use, at most 1 GiB.
   * @param onFault receives the error of a consumer whose `evict` throws; the client being served is not to blame.
   */
  constructor(
    limitBytes = Math.min(MAX_LIMIT_BYTES, Math.floor(usableMemoryBytes() * SHARE_OF_MEMORY)),
    onFault: (error: unknown) => void = () => undefined,
  ) {
    this.limitBytes = limitBytes
    this.#onFault = onFault
  }

  /** Reports that about `bytes` more are held for `consumer`. */
  grow(consumer: MemoryConsumer, bytes: number): void {
    this.#consumers.add(consumer)
    this.#grownBytes += bytes
    if (this.#grownBytes >= this.limitBytes * RECOUNT_SHARE) this.#recount()
  }

  /** Reports that nothing is held for `consumer` any more. */
  remove(consumer: MemoryConsumer): void {
    this.#consumers.delete(consumer)
  }

  #recount(): void {
    this.#grownBytes = 0
    let bytes = 0
    for (const consumer of this.#consumers) bytes += consumer.heldBytes
    if (bytes > this.limitBytes) this.#free(bytes - this.limitBytes)
  }

  #free(excessBytes: number): void {
    const accounts = this.#accounts()
    for (let left = excessBytes; left > 0; ) {
      const largest = accounts.reduce((most, other) => (other.bytes > most.bytes ? other : most))
      const first = largest.consumers.shift()
      if (!first) return
      largest.bytes -= first.bytes
      left -= first.bytes
      this.#consumers.delete(first.consumer)
      try {
        first.consumer.evict()
      } catch (error) {
        this.#onFault(error)
      }
    }
  }

  /** Bytes held for each owner, with its consumers in descending size. */
  #accounts(): readonly Account[] {
    const accounts = new Map<string, Account>()
    for (const consumer of this.#consumers) {
      const account = accounts.get(consumer.owner) ?? { bytes: 0, consumers: [] }
      const { heldBytes: bytes } = consumer
      account.bytes += bytes
      account.consumers.push({ consumer, bytes })
      accounts.set(consumer.owner, account)
    }
    for (const { consumers } of accounts.values()) consumers.sort((one, other) => other.bytes - one.bytes)
    return [...accounts.values()]
  }
}
