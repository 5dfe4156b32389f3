import { type Entry, isBefore, type Place } from './entry.js'

/** The next page to load from the store: messages after one place in due order, up to another. */
export type Load = LoadRange &
  (
    | { readonly kind: 'all'; readonly exceptAccounts: readonly string[]; readonly exceptLanes: readonly string[] }
    | { readonly kind: 'account'; readonly accountId: string; readonly exceptLanes: readonly string[] }
    | { readonly kind: 'lane'; readonly lane: string; readonly accountId: string }
    /** Messages that memory covers and does not hold; see `Recalls`. This load moves no horizon. */
    | { readonly kind: 'strays'; readonly seqs: readonly number[]; readonly foundBy: 'sweep' | 'hint' }
  )

/** The range of a load and its row limit. */
export interface LoadRange {
  readonly after: Place
  readonly until: Place
  readonly limit: number
  /** The partitions of this node. Absent on a server that is alone. */
  readonly partitions?: readonly number[] | undefined
}

/** Before every place. */
export const START: Place = { nextAt: Number.MIN_SAFE_INTEGER, seq: 0 }
/** After every number of a message. */
export const LAST_SEQ = Number.MAX_SAFE_INTEGER
const justBefore = (place: Place): Place => ({ nextAt: place.nextAt, seq: place.seq - 1 })
const earlier = (a: Place, b: Place): Place => (isBefore(a, b) ? a : b)

interface ParkedLane {
  readonly accountId: string
  horizon: Place
}

/**
 * Tracks up to which place memory covers the pending messages: the horizon. Every pending message before its horizon is
 * held; later ones may or may not be. All messages share one horizon, except that accounts and lanes with too many held
 * messages are parked: they have an earlier horizon of their own, until loads have brought them up to the common one.
 *
 * Moving a horizon back is always safe: a load skips the messages that are held already.
 */
export class Coverage {
  #horizon = START
  readonly #accounts = new Map<string, Place>()
  readonly #lanes = new Map<string, ParkedLane>()
  /** Accounts whose messages are not loaded. */
  #held: ReadonlySet<string> = new Set()

  /** Horizon of everything that is not parked. */
  get horizon(): Place {
    return this.#horizon
  }

  /** Parked accounts, including held ones. */
  get parkedAccounts(): Iterable<string> {
    return this.#accounts.keys()
  }

  /**
   * Sets the accounts whose messages are not loaded. Returns the accounts that
   * changed; the caller calls `restart` for each.
   */
  hold(accountIds: ReadonlySet<string>): string[] {
    const before = this.#held
    this.#held = accountIds
    return [...accountIds].filter((id) => !before.has(id)).concat([...before].filter((id) => !accountIds.has(id)))
  }

  isHeld(accountId: string): boolean {
    return this.#held.has(accountId)
  }

  /** Moves the horizon of an account to the start. Unless the account is held, loads bring its messages again. */
  restart(accountId: string): void {
    this.#accounts.set(accountId, START)
    for (const [lane, parked] of this.#lanes) if (parked.accountId === accountId) this.#lanes.delete(lane)
  }

  isParked(lane: string): boolean {
    return this.#lanes.has(lane)
  }

  /** Whether memory covers the place of a message. `laneOf` is called only if lanes are parked. */
  covers(accountId: string, laneOf: () => string, place: Place): boolean {
    const parked = this.#lanes.size > 0 ? this.#lanes.get(laneOf()) : undefined
    return !isBefore(parked?.horizon ?? this.#horizonOf(accountId), place)
  }

  /** Parks the lane of a message: memory covers only what is due before that message. */
  parkLane(from: Entry): void {
    const { lane } = from
    const { accountId } = from.message
    const covered = this.#lanes.get(lane)?.horizon ?? this.#horizonOf(accountId)
    this.#lanes.set(lane, { accountId, horizon: earlier(covered, justBefore(from)) })
  }

  /** Parks the account of a message: memory covers only what is due before that message. */
  parkAccount(from: Entry): void {
    const { accountId } = from.message
    const horizon = earlier(this.#horizonOf(accountId), justBefore(from))
    this.#accounts.set(accountId, horizon)
    for (const [lane, parked] of this.#lanes) {
      if (parked.accountId === accountId && !isBefore(parked.horizon, horizon)) this.#lanes.delete(lane)
    }
  }

  /** Everything from a place on is loaded again. */
  moveBack(place: Place): void {
    this.#horizon = earlier(this.#horizon, justBefore(place))
  }

  /** The load of everything that is not parked, up to a time. */
  loadOfAll(until: number, limit: number): Load {
    return { kind: 'all', after: this.#horizon, until: { nextAt: until, seq: LAST_SEQ }, limit, ...this.parked }
  }

  /** The load of a parked account, without its parked lanes. */
  loadOfAccount(accountId: string, limit: number): Load {
    const lanes = [...this.#lanes].filter(([, parked]) => parked.accountId === accountId)
    const after = this.#horizonOf(accountId)
    return {
      kind: 'account',
      accountId,
      after,
      until: this.#horizon,
      limit,
      exceptLanes: lanes.map(([lane]) => lane),
    }
  }

  /** The load of a parked lane; `undefined` if it is not parked. */
  loadOfLane(lane: string, limit: number): Load | undefined {
    const parked = this.#lanes.get(lane)
    if (!parked) return undefined
    const { accountId, horizon } = parked
    return { kind: 'lane', lane, accountId, after: horizon, until: this.#horizonOf(accountId), limit }
  }

  /** The parked accounts and lanes. */
  get parked(): { readonly exceptAccounts: readonly string[]; readonly exceptLanes: readonly string[] } {
    return { exceptAccounts: [...this.#accounts.keys()], exceptLanes: [...this.#lanes.keys()] }
  }

  /** Moves the horizons of parked accounts and lanes to the start. They are loaded again when it is their turn. */
  rewindParked(): void {
    for (const accountId of this.#accounts.keys()) this.#accounts.set(accountId, START)
    for (const parked of this.#lanes.values()) parked.horizon = START
  }

  /** Moves all horizons to the start, because any due time may have changed. */
  rewind(): void {
    this.#horizon = START
    this.rewindParked()
  }

  /** A load has brought everything up to a place. A horizon that was removed while the load ran stays removed. */
  loaded(load: Load, upTo: Place): void {
    const isWhole = !isBefore(upTo, load.until)
    switch (load.kind) {
      case 'all':
        this.#horizon = upTo
        return
      case 'account':
        if (isWhole) this.#accounts.delete(load.accountId)
        else if (this.#accounts.has(load.accountId)) this.#accounts.set(load.accountId, upTo)
        return
      case 'strays':
        return
      case 'lane': {
        const parked = this.#lanes.get(load.lane)
        if (isWhole) this.#lanes.delete(load.lane)
        else if (parked) parked.horizon = upTo
      }
    }
  }

  #horizonOf(accountId: string): Place {
    return earlier(this.#accounts.get(accountId) ?? this.#horizon, this.#horizon)
  }
}
