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
}

/** Drops, indexed only when something is offered: a bulk cancel drops thousands, and mostly without an offer. */
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
 * What has ended recently, so that nothing offered earlier brings it back into memory. (What ends while a load runs is in
 * `Meanwhile`.) There are two races:
 *
 * - The store answers over several connections. A load brings a message before its publisher is notified of the commit;
 *   the message is sent and its outcome committed. Then the publisher offers it. So the last 50,000 to 100,000 attempts
 *   of loaded messages are remembered, with the time at which each was due: a later attempt is a new one.
 * - A transaction publishes a message or gives it its turn, and a later one ends it. Their callers are notified in no certain
 *   order, and on PostgreSQL the first answer may be seconds late, so the offer may follow the drop. So drops are remembered
 *   until every operation that ran at that time has ended (`age`, then `forgetAged`).
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

  /** An attempt is over: its message has ended, or has a later attempt now. */
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
   * A committed transaction has brought back a message, or others of its group: an attempt at the time at which it is due again
   * no longer counts. `unsure`: a drop is remembered. Its transaction may be an earlier one, or a later one whose caller was
   * notified first.
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

  /** Answers whether there are drops to forget: when all operations that run now have ended, the caller calls `forgetAged`. */
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
