import type { DropSelector } from '../types.js'
import { EndedSet } from './ended.js'
import type { Entry } from './entry.js'

/** What is loaded from its start again, from the least to the most: nothing, what is parked, everything, also what is held. */
const REWINDS = ['nothing', 'parked', 'covered', 'held'] as const

/** @see REWINDS */
export type Rewind = (typeof REWINDS)[number]

/** What happens while a load runs. The load knows nothing of it, and may still bring what was there before. */
export class Meanwhile {
  /** Accounts that were held or released: the load says nothing about them. */
  readonly accounts = new Set<string>()
  #arrivals: Entry[] = []
  #rewind: Rewind = 'nothing'

  /** Messages that came, and may lie between the old horizon and the new one. */
  get arrivals(): readonly Entry[] {
    return this.#arrivals
  }

  /** What to do at the end of the load. */
  get rewind(): Rewind {
    return this.#rewind
  }

  arrive(entry: Entry): void {
    this.#arrivals.push(entry)
  }

  /** Does this at the end of the load, or what is more. */
  rewindLater(what: Rewind): void {
    if (REWINDS.indexOf(what) > REWINDS.indexOf(this.#rewind)) this.#rewind = what
  }

  /** Forgets arrivals that a committed transaction has ended. */
  drop(which: DropSelector): void {
    if (this.#arrivals.length === 0) return
    const dropped = new EndedSet()
    dropped.add(which)
    this.#arrivals = this.#arrivals.filter(({ seq, message }) => !dropped.has(seq, message.groupKey))
  }

  /** Forgets the arrivals of partitions that this node no longer sends. */
  dropPartitions(partitions: ReadonlySet<number>): void {
    this.#arrivals = this.#arrivals.filter(({ partition }) => !partitions.has(partition))
  }
}
