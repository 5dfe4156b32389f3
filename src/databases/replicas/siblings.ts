import type { Incarnation } from '../../cluster/index.js'

/** Asks nodes how much they have passed on. Those that do not answer are left out. */
export type AskSiblings = (siblings: readonly Incarnation[]) => Promise<ReadonlyMap<Incarnation, number>>

/** After a sibling has not answered, the home answers for this long before it is asked again. */
const SILENT_FOR_MS = 500

/**
 * The other nodes of the region of a replica: what its clients have been answered by the home through them. Each counts what it
 * has passed on, so a count that has changed means that every client may have seen something new. A sibling that is gone
 * may have passed something on after it was asked last.
 */
export class Siblings {
  #current: readonly Incarnation[] | undefined = []
  /** What each has counted when it was asked last. Undefined: it was not known who they are. */
  #counts: ReadonlyMap<Incarnation, number> | undefined = new Map()
  #asking: Promise<boolean> | undefined
  #next: Promise<boolean> | undefined
  #silentUntilMs = 0

  /** The home says which there are. */
  are(siblings: readonly Incarnation[] | undefined): void {
    this.#current = siblings
    if (!siblings) this.#counts = undefined
  }

  /** As far as they are known. */
  get now(): readonly Incarnation[] {
    return this.#current ?? []
  }

  /** Whether there are none, and were none. */
  get areNone(): boolean {
    return this.#current?.length === 0 && this.#counts?.size === 0
  }

  /**
   * Resolves when the siblings were asked; false: not all have answered.
   * @param onMore called before, when clients may have been answered by the home through them.
   */
  ask(ask: AskSiblings, onMore: () => void): Promise<boolean> {
    if (this.areNone) return Promise.resolve(true)
    if (performance.now() < this.#silentUntilMs) return Promise.resolve(false)
    // A question that is on its way may be older than what the caller has seen.
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
    // Nothing is known of those that were there meanwhile.
    if (this.#current) this.#counts = counts
    return true
  }
}
