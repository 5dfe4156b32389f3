import type { Incarnation } from '../../cluster/index.js'

/** Asks nodes how much they have passed on. Those that do not answer are left out. */
export type AskSiblings = (siblings: readonly Incarnation[]) => Promise<ReadonlyMap<Incarnation, number>>

/** After a sibling has not answered, the siblings are not asked for this long: the home answers the reads. */
const SILENT_FOR_MS = 500

/**
 * The other nodes of the region of a replica. Each counts the answers of the home that it passes on to clients. A count
 * that has changed means that any client may have seen something new. A sibling that is gone may have passed on answers
 * after it was last asked.
 */
export class Siblings {
  #current: readonly Incarnation[] | undefined = []
  /** The count of each sibling when it was last asked. Undefined: the siblings were not known in between. */
  #counts: ReadonlyMap<Incarnation, number> | undefined = new Map()
  #asking: Promise<boolean> | undefined
  #next: Promise<boolean> | undefined
  #silentUntilMs = 0

  /** Sets the siblings as the home names them; undefined: not known. */
  are(siblings: readonly Incarnation[] | undefined): void {
    this.#current = siblings
    if (!siblings) this.#counts = undefined
  }

  /** The siblings, as far as they are known. */
  get now(): readonly Incarnation[] {
    return this.#current ?? []
  }

  /** Whether there are no siblings, and were none when they were last asked. */
  get areNone(): boolean {
    return this.#current?.length === 0 && this.#counts?.size === 0
  }

  /**
   * Resolves when the siblings were asked; false: not all have answered.
   * @param onMore called before that, when the siblings may have passed on answers of the home.
   */
  ask(ask: AskSiblings, onMore: () => void): Promise<boolean> {
    if (this.areNone) return Promise.resolve(true)
    if (performance.now() < this.#silentUntilMs) return Promise.resolve(false)
    // A pending question may be older than what the caller has seen, so the caller waits for the next one.
    if (this.#asking) this.#next ??= this.#asking.then(() => this.#begin(ask, onMore, 'next'))
    return this.#next ?? this.#begin(ask, onMore, 'first')
  }

  #begin(ask: AskSiblings, onMore: () => void, which: 'first' | 'next'): Promise<boolean> {
    if (which === 'next') this.#next = undefined
    const asking = this.#askAll(ask, onMore).finally(() => {
      if (this.#asking === asking) this.#asking = undefined
    })
    this.#asking = asking
    return asking
  }

  /** Never rejects. */
  async #askAll(ask: AskSiblings, onMore: () => void): Promise<boolean> {
    const asked = this.#current
    if (!asked) return false
    const counts = await ask(asked)
    if (asked.some((one) => !counts.has(one))) {
      this.#silentUntilMs = performance.now() + SILENT_FOR_MS
      return false
    }
    const before = this.#counts
    const isSame = before?.size === counts.size && asked.every((one) => before.get(one) === counts.get(one))
    if (!isSame) onMore()
    // If the siblings are not known any more, nothing is known of those that come and go meanwhile.
    if (this.#current) this.#counts = counts
    return true
  }
}
