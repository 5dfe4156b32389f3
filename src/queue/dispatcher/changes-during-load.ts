import type { PendingRow } from '../transactions/messages.js'
import type { DropSelector } from '../types.js'
import { EndedSet } from './ended.js'
import type { Entry } from './entry.js'

/** Which messages to load again, from the least to the most; see `Backlog.rewind`. */
const REWINDS = ['parked', 'covered', 'held'] as const

/** @see REWINDS */
export type Rewind = (typeof REWINDS)[number]

/**
 * Records what happens while a load runs. The page of the load may list messages that have ended since, and may lack
 * messages that have come since although they lie before its new horizon.
 */
export class ChangesDuringLoad {
  /** Accounts that were held or released since the load began, so that its page is outdated for them. */
  readonly accounts = new Set<string>()
  #arrivals: Entry[] = []
  readonly #ended = new EndedSet()
  #rewind: Rewind | undefined

  /** Messages that have come since the load began, and may lie between the old horizon and the new one. */
  get arrivals(): readonly Entry[] {
    return this.#arrivals
  }

  /** The rewind to make at the end of the load. */
  get rewind(): Rewind | undefined {
    return this.#rewind
  }

  arrive(entry: Entry): void {
    this.#arrivals.push(entry)
  }

  /** Requests a rewind at the end of the load. The most extensive request counts. */
  rewindLater(what: Rewind): void {
    if (!this.#rewind || REWINDS.indexOf(what) > REWINDS.indexOf(this.#rewind)) this.#rewind = what
  }

  /** A message has left memory: it has ended, has a later attempt now, or was evicted. */
  released({ seq }: Pick<Entry, 'seq'>): void {
    this.#ended.seqs.add(seq)
  }

  /** A committed transaction has ended these messages. */
  drop(which: DropSelector): void {
    this.#ended.add(which)
    if (this.#arrivals.length === 0) return
    const dropped = new EndedSet()
    dropped.add(which)
    this.#arrivals = this.#arrivals.filter(({ seq, message }) => !dropped.has(seq, message.groupKey))
  }

  /** Whether a row of the load is older than what happened to its message. */
  isOutdated({ seq, group_key: group }: PendingRow): boolean {
    return this.#ended.has(seq, group)
  }

  /** Forgets the arrivals of partitions that this node no longer sends. */
  dropPartitions(partitions: ReadonlySet<number>): void {
    this.#arrivals = this.#arrivals.filter(({ partition }) => !partitions.has(partition))
  }
}
