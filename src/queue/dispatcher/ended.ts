import type { PendingRow } from '../transactions/messages.js'
import type { DropSelector } from '../types.js'
import type { Entry, Place } from './entry.js'

/** At least this many attempts are remembered, and at most twice as many. */
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
}

/** Drops, indexed only when a message is offered: a bulk cancel drops thousands, mostly without an offer afterwards. */
class Drops {
  #waiting: DropSelector[] = []
  readonly #indexed = new EndedSet()
  isEmpty = true

  add(which: DropSelector): void {
    this.isEmpty = false
    this.#waiting.push(which)
  }

  has(seq: number, groupKey: number | null): boolean {
    for (const which of this.#waiting) this.#indexed.add(which)
    this.#waiting = []
    return this.#indexed.has(seq, groupKey)
  }
}

/**
 * Remembers what has ended recently, so that a late offer does not bring it back into memory. (`ChangesDuringLoad` records
 * what ends while a load runs.) There are two races:
 *
 * - The store replies over several connections. A load brings a message before its publisher is notified of the commit. The
 * dispatcher sends the message and commits the outcome. Then the publisher offers
 * the message. So the last 50,000 to 100,000
 *   attempts of loaded messages are remembered with their due times; an offer with another due time is a new attempt.
 * - A transaction publishes a message or gives it its turn, and a later transaction
 *   ends it. Their callers are notified in any
 *   order, and on PostgreSQL the first reply may be seconds late, so the offer may follow the drop. So drops are remembered
 *   until every operation that ran at the time of the drop has ended (`age`, then `forgetAged`).
 */
export class Ended {
  readonly #generation: number
  /** Due times of attempts that are over, by message number. */
  #newerAttempts = new Map<number, number>()
  #olderAttempts = new Map<number, number>()
  #drops = new Drops()
  #agedDrops: Drops | undefined

  constructor(generation = GENERATION) {
    this.#generation = generation
  }

  /** An attempt is over: its message has ended or has a later attempt. */
  attemptOver({ seq, nextAt, origin }: Pick<Entry, keyof Place | 'origin'>): void {
    if (origin !== 'load') return
    if (this.#newerAttempts.size >= this.#generation) {
      this.#olderAttempts = this.#newerAttempts
      this.#newerAttempts = new Map()
    }
    this.#newerAttempts.set(seq, nextAt)
  }

  /** A message was parked before its attempt was sent: it may be offered again with the same due time. */
  parked({ seq }: Place): void {
    this.#forgetAttempt(seq)
  }

  #forgetAttempt(seq: number): void {
    this.#newerAttempts.delete(seq)
    this.#olderAttempts.delete(seq)
  }

  /** A committed transaction has ended these messages. */
  drop(which: DropSelector): void {
    if (which.mayBeOfferedAgain !== true) this.#drops.add(which)
  }

  /**
   * A committed transaction has brought back a message, or others of its group. Forgets the message's last attempt,
   * because the next one may have the same due time. `unsure`: a drop of the message is remembered, whose transaction
   * may be older than this one, or newer with a caller that was notified first.
   */
  readmit({ seq, group_key }: PendingRow): 'back' | 'unsure' {
    this.#forgetAttempt(seq)
    return this.#isDropped(seq, group_key) ? 'unsure' : 'back'
  }

  #isDropped(seq: number, group: number | null): boolean {
    return this.#drops.has(seq, group) || this.#agedDrops?.has(seq, group) === true
  }

  /** Whether the offered attempt is already over. */
  isOver({ seq, next_at, group_key }: PendingRow): boolean {
    if ((this.#newerAttempts.get(seq) ?? this.#olderAttempts.get(seq)) === next_at) return true
    return this.#isDropped(seq, group_key)
  }

  /**
   * Returns whether there are drops to forget. If so, the caller calls
   * `forgetAged` when all running operations have ended.
   */
  age(): boolean {
    if (this.#agedDrops || this.#drops.isEmpty) return false
    this.#agedDrops = this.#drops
    this.#drops = new Drops()
    return true
  }

  forgetAged(): void {
    this.#agedDrops = undefined
  }
}
