import type { Coverage, Load } from './coverage.js'
import { isBefore, type Place } from './entry.js'
import type { HeldMessages } from './held-messages.js'
import type { BacklogLimits } from './limits.js'
import { type FoundBy, Recalls } from './recalls.js'

/**
 * How much later than its stored due time a held message may be due without counting as missing, milliseconds. Nothing for a
 * hint, which says that the due time has changed. A sweep allows for messages that pause after a failure of the store, which
 * takes less than this.
 */
export const MAY_WAIT_MS: Readonly<Record<FoundBy, number>> = { hint: 0, sweep: 5_000 }

/**
 * Chooses what to load next: strays, a parked lane or account, or the messages that are due next. It only reads the state of
 * `HeldMessages` and `Coverage`.
 */
export class Loads {
  readonly #limits: BacklogLimits
  readonly #held: HeldMessages
  readonly #coverage: Coverage
  /** Parked lanes with few messages left in memory, each with its account. They are loaded next. */
  readonly #refills = new Map<string, string>()
  readonly #recalls: Recalls
  #lastLoad: Load['kind'] = 'all'

  constructor(limits: BacklogLimits, held: HeldMessages, coverage: Coverage) {
    this.#limits = limits
    this.#held = held
    this.#coverage = coverage
    this.#recalls = new Recalls(limits)
  }

  /** The load to run now, if any. */
  next(now: number): Load | undefined {
    // Alternate, so that neither the parked lanes nor the others starve.
    const parked = () => this.#loadOfLane() ?? this.#loadOfAccount()
    const ordinary = () =>
      this.#lastLoad === 'all' ? (parked() ?? this.#loadOfAll(now)) : (this.#loadOfAll(now) ?? parked())
    const load = this.#recalls.next((places, foundBy) => this.missing(places, foundBy)) ?? ordinary()
    if (!load) return undefined
    if (load.kind !== 'strays') this.#lastLoad = load.kind
    return load
  }

  /** See `Backlog.recall`. */
  recall(strays: readonly Place[], foundBy: FoundBy): void {
    this.#recalls.add(strays, foundBy)
  }

  /**
   * Returns the places, among these of pending messages that are not parked, that memory misses: it covers the place and
   * does not hold the message, or holds it with a later due time. A held message is checked even beyond the horizon,
   * which moves to the start when partitions are gained, because ordinary loads skip held messages.
   */
  missing(places: readonly Place[], foundBy: FoundBy): readonly Place[] {
    const { horizon } = this.#coverage
    const isLoadedLater = (place: Place): boolean => isBefore(horizon, place) && !this.#held.has(place.seq)
    return places.filter((place) => !isLoadedLater(place) && this.#held.misses(place, MAY_WAIT_MS[foundBy]))
  }

  /** How many messages each account may hold if all share the capacity equally. */
  get #fairShare(): number {
    return this.#limits.capacity / Math.max(1, this.#held.accounts)
  }

  /**
   * How many rows a load of a lane may bring. Together with the messages still held at that time this is less than the
   * lane's fair share. So loads alone never fill the memory, and evicted messages do not come back at once.
   */
  #loadLimitOf(lane: string, accountId: string): number {
    const { flowLoadLimit, loadLimit } = this.#limits
    const limit = lane.startsWith(`${accountId} flow `) ? flowLoadLimit : loadLimit
    const fair = this.#fairShare / Math.max(1, this.#held.lanesOf(accountId))
    return Math.max(1, Math.min(limit, Math.floor(fair / 2)))
  }

  #needsRefill(lane: string, accountId: string): boolean {
    return this.#held.ofLane(accountId, lane) <= this.#loadLimitOf(lane, accountId) / 2
  }

  /** A message has left memory. If its parked lane has few messages left, the lane is loaded next. */
  noteRefill(lane: string, accountId: string): void {
    if (this.#coverage.isParked(lane) && this.#needsRefill(lane, accountId)) this.#refills.set(lane, accountId)
  }

  #loadOfLane(): Load | undefined {
    for (const [lane, accountId] of this.#refills) {
      this.#refills.delete(lane)
      const needsRefill = this.#needsRefill(lane, accountId)
      const load = needsRefill ? this.#coverage.loadOfLane(lane, this.#loadLimitOf(lane, accountId)) : undefined
      if (load) return load
    }
    return undefined
  }

  #loadOfAccount(): Load | undefined {
    const limit = Math.max(1, Math.min(this.#limits.loadLimit, Math.floor(this.#fairShare / 4)))
    for (const accountId of this.#coverage.parkedAccounts) {
      if (this.#coverage.isHeld(accountId)) continue
      if (this.#held.ofAccount(accountId) <= this.#fairShare / 2) return this.#coverage.loadOfAccount(accountId, limit)
    }
    return undefined
  }

  #loadOfAll(now: number): Load | undefined {
    const { windowMs, loadLimit } = this.#limits
    if (this.#coverage.horizon.nextAt > now + windowMs / 2) return undefined
    return this.#coverage.loadOfAll(now + windowMs, loadLimit)
  }
}
