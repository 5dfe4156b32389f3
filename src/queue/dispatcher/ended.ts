import type { PendingRow } from '../transactions/messages.js'
import type { DropSelector } from '../types.js'
import type { Entry, Place } from './entry.js'

/** How many attempts are remembered at least; never more than twice as many. */
const GENERATION = 50_000

/** Messages that have ended, by number or by group. */
export class EndedSet {
  readonly seqs = new Set<number>()
  readonly #groupKeys = new Set<number>()

  add(which: DropSelector): void {
    if ('seqs' in which) for (const seq of which.seqs) this.seqs.add(seq)
    else for (const key of which.groupKeys) this.#groupKeys.add(key)
  }

  has(seq: number, groupKey: number | null | undefined): boolean {
    return this.seqs.has(seq) || (groupKey != null && this.#groupKeys.has(groupKey))
  }

  clear(): void {
    this.seqs.clear()
    this.#groupKeys.clear()
  }
}

/**
 * What has ended recently, so that nothing read or offered earlier brings it back into memory. There are three races:
 *
 * - A load reads a message as pending. The message ends. Then the page of the load arrives and still lists it. So
 *   everything that ends while a load runs is remembered until its page arrives.
 * - The store answers over several connections. A load brings a message before its publisher is notified of the commit;
 *   the message is sent and its outcome committed. Then the publisher offers it. So the last 50,000 to 100,000 attempts
 *   of loaded messages are remembered, with the time at which each was due: a later attempt is a new one.
 * - Two transactions share one commit. The first publishes a message, the second ends it. Their callers are notified in
 *   no certain order, so the offer may follow the drop. So drops are remembered until the next `forgetDrops`.
 */
export class Ended {
  readonly #generation: number
  #duringLoad: EndedSet | undefined
  /** Due times of attempts that are over, by message number. */
  #newerAttempts = new Map<number, number>()
  #olderAttempts: ReadonlyMap<number, number> = new Map()
  #drops: DropSelector[] = []
  readonly #dropped = new EndedSet()

  constructor(generation = GENERATION) {
    this.#generation = generation
  }

  loadStarted(): void {
    this.#duringLoad = new EndedSet()
  }

  /** Answers what ended while the load ran. */
  loadFinished(): EndedSet | undefined {
    const ended = this.#duringLoad
    this.#duringLoad = undefined
    return ended
  }

  /** An attempt is over: its message has ended, or has a later attempt now. */
  attemptOver({ seq, nextAt, origin }: Pick<Entry, keyof Place | 'origin'>): void {
    this.#duringLoad?.seqs.add(seq)
    if (origin !== 'load') return
    if (this.#newerAttempts.size >= this.#generation) {
      this.#olderAttempts = this.#newerAttempts
      this.#newerAttempts = new Map()
    }
    this.#newerAttempts.set(seq, nextAt)
  }

  /** A committed transaction has ended these messages. */
  drop(which: DropSelector): void {
    if (which.mayBeOfferedAgain !== true) this.#drops.push(which)
    this.#duringLoad?.add(which)
  }

  /** Whether the offered attempt is already over. */
  isOver({ seq, next_at, group_key }: PendingRow): boolean {
    if ((this.#newerAttempts.get(seq) ?? this.#olderAttempts.get(seq)) === next_at) return true
    // Drops are indexed only when something is offered: a bulk cancel drops thousands, and mostly without an offer.
    for (const which of this.#drops.splice(0)) this.#dropped.add(which)
    return this.#dropped.has(seq, group_key)
  }

  /** Every caller of the last commits has been notified. */
  forgetDrops(): void {
    this.#drops = []
    this.#dropped.clear()
  }
}
