import type { PendingRow } from '../transactions/messages.js'
import type { DropSelector } from '../types.js'

/**
 * What has ended a moment ago. Two transactions may be committed together, the first of which offers a message and the
 * second of which ends it; those who asked for them hear of it at the same time, and in no certain order. So an offer
 * may come after the end of what it offers.
 */
export class Ended {
  #selectors: DropSelector[] = []
  readonly #seqs = new Set<number>()
  readonly #groupKeys = new Set<number>()

  add(which: DropSelector): void {
    if (which.comesBack !== true) this.#selectors.push(which)
  }

  /** Whether a message has ended that is offered. */
  has({ seq, group_key }: PendingRow): boolean {
    // Most often nothing is offered beside what ends, and thousands end at once.
    for (const which of this.#selectors.splice(0)) {
      if ('seqs' in which) for (const each of which.seqs) this.#seqs.add(each)
      else for (const key of which.groupKeys) this.#groupKeys.add(key)
    }
    return this.#seqs.has(seq) || (group_key !== null && this.#groupKeys.has(group_key))
  }

  /** Everybody has heard of it. */
  clear(): void {
    this.#selectors = []
    this.#seqs.clear()
    this.#groupKeys.clear()
  }
}
