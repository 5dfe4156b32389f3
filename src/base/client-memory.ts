import { totalmem } from 'node:os'

/** A client for which memory is held: of what it has not sent to its end, or has not read. */
export interface Holder {
  /** Whose memory it counts as, such as a database or an account. */
  readonly owner: string
  /** What is held for it at the moment, bytes; 0 once it is gone. */
  readonly heldBytes: number
  /** Gives all of it up. A client that cannot be told loses its connection. */
  evict(): void
}

/** Holders of less need not be known, bytes: there are never so many of them that they matter. */
export const WORTH_NOTING_BYTES = 64 * 1024

const MOST_BYTES = 2 ** 30
const SHARE_OF_SYSTEM = 1 / 8
/** It is counted anew whenever this part of the bound may have come. */
const COUNTED_PART = 1 / 32

interface Account {
  bytes: number
  readonly holders: { readonly holder: Holder; readonly bytes: number }[]
}

/**
 * Bounds what all clients together make the process hold. Each of them has a bound of its own; many of them, each below
 * its bound, could still fill the memory. When they do, the owner that holds the most gives way, by its largest holder.
 *
 * The bound is exceeded by a thirty-second part of it at most, and by what a holder that has given way keeps until the
 * present turn is over.
 */
export class ClientMemoryBudget {
  readonly limitBytes: number
  readonly #holders = new Set<Holder>()
  readonly #onFault: (error: unknown) => void
  #grownBytes = 0

  /**
   * `limitBytes` omitted: an eighth of the system's memory, and 1 GiB at most.
   * @param onFault told of a holder that throws when it should give way, which is no fault of whoever is served.
   */
  constructor(
    limitBytes = Math.min(MOST_BYTES, Math.floor(totalmem() * SHARE_OF_SYSTEM)),
    onFault: (error: unknown) => void = () => undefined,
  ) {
    this.limitBytes = limitBytes
    this.#onFault = onFault
  }

  /** About so much more is held for `holder`. */
  grew(holder: Holder, bytes: number): void {
    this.#holders.add(holder)
    this.#grownBytes += bytes
    if (this.#grownBytes >= this.limitBytes * COUNTED_PART) this.#count()
  }

  /** Nothing is held for `holder` any more. */
  gone(holder: Holder): void {
    this.#holders.delete(holder)
  }

  #count(): void {
    this.#grownBytes = 0
    let bytes = 0
    for (const holder of this.#holders) bytes += holder.heldBytes
    if (bytes > this.limitBytes) this.#free(bytes - this.limitBytes)
  }

  #free(wantedBytes: number): void {
    const accounts = this.#accounts()
    for (let left = wantedBytes; left > 0; ) {
      const largest = accounts.reduce((most, other) => (other.bytes > most.bytes ? other : most))
      const first = largest.holders.shift()
      if (!first) return
      largest.bytes -= first.bytes
      left -= first.bytes
      this.#holders.delete(first.holder)
      try {
        first.holder.evict()
      } catch (error) {
        this.#onFault(error)
      }
    }
  }

  /** What each owner holds, its largest holder first. */
  #accounts(): readonly Account[] {
    const accounts = new Map<string, Account>()
    for (const holder of this.#holders) {
      const account = accounts.get(holder.owner) ?? { bytes: 0, holders: [] }
      const { heldBytes: bytes } = holder
      account.bytes += bytes
      account.holders.push({ holder, bytes })
      accounts.set(holder.owner, account)
    }
    for (const { holders } of accounts.values()) holders.sort((one, other) => other.bytes - one.bytes)
    return [...accounts.values()]
  }
}
