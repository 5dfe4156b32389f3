import type { PendingRow } from '../transactions/messages.js'
import { type DuePage, laneOf } from '../transactions/messages-due.js'
import type { DropSelector, PendingMessage } from '../types.js'
import { Heap } from './collections.js'
import { Coverage, type Load, START } from './coverage.js'
import { Ended, EndedSet } from './ended.js'
import { type Entry, isBefore, type Place, toEntry } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { HeldMessages } from './held-messages.js'
import type { BacklogLimits } from './limits.js'
import { RoundRobin } from './round-robin.js'

/**
 * The pending messages that are in memory.
 *
 * The store holds all pending messages in the order in which they are due. Memory covers that order up to a horizon
 * (`Coverage`). A new message is held when memory covers its place; otherwise a later load brings it.
 *
 * Messages of an account are grouped in lanes: one lane for each flow-control key, and one for each host for the rest. A
 * lane is parked when it has too many messages in memory. When memory is full, the largest lane of the largest account
 * is parked and its later half evicted. A parked lane is loaded again when most of its held messages are gone. So no
 * large backlog, dead destination or slow key keeps other messages out of memory, whichever account they belong to.
 *
 * Nothing here reads a clock or awaits: the caller passes the time.
 */
export class Backlog {
  readonly #limits: BacklogLimits
  readonly #held = new HeldMessages()
  readonly #coverage = new Coverage()
  readonly #waiting = new Heap<Entry>(isBefore)
  readonly #ready: RoundRobin
  readonly #flow: FlowControl
  /** Parked lanes with few messages left in memory, each with its account. They are loaded next. */
  readonly #refills = new Map<string, string>()
  /** Set while a load runs: messages that came meanwhile and may lie between the old horizon and the new one. */
  #arrivals: Entry[] | undefined
  #lastLoad: Load['kind'] = 'all'
  #rewindAfterLoad: 'no' | 'parked' | 'all' = 'no'
  /** Accounts that were held or released while a load ran: that load says nothing about them. */
  readonly #restartAfterLoad = new Set<string>()
  /** Found by a sweep; loaded next. */
  #strays: readonly Place[] = []
  readonly #ended = new Ended()

  constructor(limits: BacklogLimits, flow: FlowControl) {
    this.#limits = limits
    this.#flow = flow
    this.#ready = new RoundRobin(limits.inFlight)
  }

  /** How many messages are held. */
  get size(): number {
    return this.#held.size
  }

  /** Requests in flight, without slow ones. */
  get sending(): number {
    return this.#ready.quick
  }

  /** Whether a load runs. */
  get isLoading(): boolean {
    return this.#arrivals !== undefined
  }

  /** Offers committed messages. Those whose place memory covers are held. */
  offer(rows: readonly PendingRow[], now: number): void {
    for (const row of rows) {
      const place = { nextAt: row.next_at, seq: row.seq }
      if (this.#ended.isOver(row)) continue
      if (this.#arrivals || this.#coverage.covers(row.account_id, laneOf(row), place))
        this.#admit(toEntry(row, 'offer'), now)
    }
  }

  /** Queues the messages that have become due for sending. */
  advance(now: number): void {
    this.#ended.forgetDrops()
    for (let entry = this.#waiting.peek(); entry && entry.nextAt <= now; entry = this.#waiting.peek()) {
      this.#waiting.pop()
      if (entry.state === 'waiting') this.#becomeDue(entry, now)
    }
    for (const entry of this.#flow.advance(now)) this.#ready.push(entry)
  }

  /** Takes the next message to send. The caller then calls `answered` or `unsent`, and after that `release` or `reschedule`. */
  take(now: number): Entry | undefined {
    for (;;) {
      const entry = this.#ready.take(now)
      if (!entry || this.#flow.mayGoNow(entry, now)) return entry
      this.#ready.done(entry)
    }
  }

  /** The request of a taken message is over: its place in flight is free. */
  answered(entry: Entry): void {
    this.#flow.release(entry)
    this.#ready.done(entry)
  }

  /** A taken message made no request: its place in flight is free, and its flow-control key does not count it. */
  unsent(entry: Entry): void {
    this.#flow.refund(entry)
    this.#ready.done(entry)
  }

  /** Forgets a message that has ended. */
  release(entry: Entry): void {
    if (!this.#held.holds(entry)) return
    this.#ended.attemptOver(entry)
    this.#held.remove(entry)
    this.#noteRefill(entry.lane, entry.message.accountId)
  }

  /** Puts a taken message back, with its next attempt, which is committed. */
  reschedule(entry: Entry, message: PendingMessage, now: number): void {
    this.release(entry)
    const kept = entry.bodyInStore ? { ...message, body: undefined } : message
    this.#admit(fresh({ ...entry, message: kept, nextAt: message.nextAt }), now)
  }

  /** Forgets messages that a committed transaction has ended. Answers those with a request in flight. */
  drop(which: DropSelector): Entry[] {
    const inFlight: Entry[] = []
    this.#ended.drop(which)
    for (const entry of this.#held.select(which)) {
      if (entry.state === 'sending') inFlight.push(entry)
      this.#evict(entry)
    }
    if (this.#arrivals?.length) this.#arrivals = without(this.#arrivals, which)
    return inFlight
  }

  /** When `advance`, `take` or `nextLoad` has work again, unless another call comes first. Unix milliseconds. */
  wakeAt(now: number): number {
    const loadAt = this.#coverage.horizon.nextAt - this.#limits.windowMs / 2
    const nextLoadAt = loadAt > now && !this.#arrivals ? loadAt : Number.POSITIVE_INFINITY
    const dueAt = this.#waiting.peek()?.nextAt ?? Number.POSITIVE_INFINITY
    return Math.min(dueAt, nextLoadAt, this.#flow.wakeAt(), this.#ready.wakeAt())
  }

  /** The load to run now, if any. The caller then calls `loaded` or `loadFailed`. */
  nextLoad(now: number): Load | undefined {
    if (this.#arrivals) return undefined
    // Alternate, so that neither the parked lanes nor the others starve.
    const parked = () => this.#loadOfLane() ?? this.#loadOfAccount()
    const ordinary = () =>
      this.#lastLoad === 'all' ? (parked() ?? this.#loadOfAll(now)) : (this.#loadOfAll(now) ?? parked())
    const load = this.#loadOfStrays() ?? ordinary()
    if (!load) return undefined
    if (load.kind !== 'strays') this.#lastLoad = load.kind
    this.#arrivals = []
    this.#ended.loadStarted()
    return load
  }

  /** A load has brought a page. Answers how many strays are held now. */
  loaded(load: Load, { rows, upTo }: DuePage, now: number): number {
    const arrivals = this.#arrivals ?? []
    this.#arrivals = undefined
    const ended = this.#ended.loadFinished()
    this.#coverage.loaded(load, upTo)
    this.#restartAccounts()
    // A message that was offered while the load ran is no stray.
    if (load.kind === 'strays') for (const entry of arrivals.splice(0)) this.#admit(entry, now)
    const missing = load.kind === 'strays' ? rows.filter(({ seq }) => !this.#held.has(seq)) : []
    for (const row of rows) if (!ended?.has(row.seq, row.group_key)) this.#admit(toEntry(row, 'load'), now)
    for (const entry of arrivals) this.#admit(entry, now)
    this.#loadOver(load)
    return missing.filter(({ seq }) => this.#held.has(seq)).length
  }

  #loadOver(load: Load): void {
    if (load.kind === 'lane') this.#noteRefill(load.lane, load.accountId)
    if (this.#rewindAfterLoad === 'all') this.rewind()
    else if (this.#rewindAfterLoad === 'parked') this.rewindParked()
  }

  /** Up to where memory covers what is not parked, and what is parked. */
  get covered(): Coverage['parked'] & { readonly upTo: Place } {
    return { upTo: this.#coverage.horizon, ...this.#coverage.parked }
  }

  /** Those of these places of pending messages that are not parked, which memory covers and does not hold. */
  missing(places: readonly Place[]): readonly Place[] {
    const { horizon } = this.#coverage
    return places.filter((place) => !this.#held.has(place.seq) && !isBefore(horizon, place))
  }

  /** Loads strays. A message that has ended meanwhile, or that is held, is skipped as in every load. */
  recall(strays: readonly Place[]): void {
    this.#strays = [...this.#strays, ...strays]
  }

  /** Numbers of the held messages that no request is in flight for. */
  get unsentSeqs(): readonly number[] {
    return this.#held.unsent()
  }

  /** Forgets messages that the store no longer has as pending, unless a request is in flight. */
  dropEnded(seqs: readonly number[]): void {
    const unsent = this.#held.select({ seqs }).filter(({ state }) => state !== 'sending')
    this.drop({ seqs: unsent.map(({ seq }) => seq), mayBeOfferedAgain: true })
  }

  /** Loads what is parked from its start again: messages may be missing in what memory has covered of it. */
  rewindParked(): void {
    if (this.#arrivals) {
      if (this.#rewindAfterLoad === 'no') this.#rewindAfterLoad = 'parked'
      return
    }
    this.#rewindAfterLoad = 'no'
    this.#coverage.rewindParked()
  }

  /**
   * The store has changed the due times of messages. Forgets those that are not due and loads them again. A running load
   * may still bring the old times, so the rewind waits for its end.
   */
  rewind(): void {
    if (this.#arrivals) {
      this.#rewindAfterLoad = 'all'
      return
    }
    this.#rewindAfterLoad = 'no'
    for (const entry of this.#held.waiting()) this.#evict(entry)
    this.#coverage.rewind()
  }

  /**
   * Sends nothing more of these accounts, and again of those that were held before: their messages stay in the store
   * meanwhile. Requests in flight end as usual.
   */
  hold(accountIds: ReadonlySet<string>): void {
    for (const accountId of this.#coverage.hold(accountIds)) {
      this.#coverage.restart(accountId)
      if (this.#arrivals) this.#restartAfterLoad.add(accountId)
      if (!accountIds.has(accountId)) continue
      for (const entry of this.#held.unsentOf(accountId)) this.#evict(entry)
    }
  }

  /** Whether nothing is sent of an account now. */
  isHeld(accountId: string): boolean {
    return this.#coverage.isHeld(accountId)
  }

  #restartAccounts(): void {
    for (const accountId of this.#restartAfterLoad) this.#coverage.restart(accountId)
    this.#restartAfterLoad.clear()
  }

  /** Loads messages from this place on again: one of them could not be read. */
  loadAgainFrom(place: Place): void {
    this.#coverage.moveBack(place)
  }

  /** A load has failed: it is due again. */
  loadFailed(load: Load): void {
    this.#arrivals = undefined
    this.#ended.loadFinished()
    this.#restartAccounts()
    this.#loadOver(load)
  }

  /** Holds a message if memory covers its place and has space. Without space, its lane or account is parked. */
  #admit(entry: Entry, now: number): void {
    if (this.#held.has(entry.seq)) return
    const isCovered = this.#coverage.covers(entry.message.accountId, entry.lane, entry)
    if (isCovered && this.#hasSpaceFor(entry)) this.#hold(entry, now)
    else this.#arrivals?.push(entry)
  }

  #hasSpaceFor(entry: Entry): boolean {
    const { accountId } = entry.message
    if (this.#held.ofLane(accountId, entry.lane) >= this.#mostOf(entry)) {
      this.#parkLane(entry)
      return false
    }
    return this.#held.size < this.#limits.capacity || this.#makeSpace(entry)
  }

  /** Memory is full: evicts from the largest lane or account. A message of that same lane or account is not admitted. */
  #makeSpace(entry: Entry): boolean {
    const excess = this.#held.excess()
    const first = excess?.entries[0]
    if (!excess || !first) {
      this.#parkLane(entry)
      return false
    }
    const isOwn = excess.of === 'lane' ? first.lane === entry.lane : first.message.accountId === entry.message.accountId
    const from = isOwn ? entry : first
    if (excess.of === 'lane') this.#parkLane(from)
    else this.#coverage.parkAccount(from)
    if (isOwn) return false
    for (const each of excess.entries) {
      this.#evict(each)
      this.#arrivals?.push(fresh(each))
    }
    return true
  }

  #parkLane(from: Entry): void {
    this.#coverage.parkLane(from)
    this.#noteRefill(from.lane, from.message.accountId)
  }

  #evict(entry: Entry): void {
    if (entry.state !== 'sending') this.#flow.release(entry)
    entry.state = 'dropped'
    this.release(entry)
  }

  #hold(entry: Entry, now: number): void {
    this.#held.add(entry)
    if (entry.nextAt <= now) this.#becomeDue(entry, now)
    else this.#waiting.push(entry)
  }

  #becomeDue(entry: Entry, now: number): void {
    if (this.#flow.admit(entry, now)) this.#ready.push(entry)
  }

  #mostOf(entry: Entry): number {
    return entry.flow === undefined ? this.#limits.maxPerHost : this.#limits.maxPerFlowKey
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

  #noteRefill(lane: string, accountId: string): void {
    if (this.#coverage.isParked(lane) && this.#needsRefill(lane, accountId)) this.#refills.set(lane, accountId)
  }

  #loadOfStrays(): Load | undefined {
    const places = this.#strays.slice(0, this.#limits.loadLimit)
    const until = places.at(-1)
    if (!until) return undefined
    this.#strays = this.#strays.slice(places.length)
    return { kind: 'strays', seqs: places.map(({ seq }) => seq), after: START, until, limit: places.length }
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

/** The same message as if it had just come into memory. */
function fresh(entry: Entry): Entry {
  return { ...entry, place: undefined, state: 'waiting', abort: undefined }
}

function without(entries: readonly Entry[], which: DropSelector): Entry[] {
  const dropped = new EndedSet()
  dropped.add(which)
  return entries.filter(({ seq, message }) => !dropped.has(seq, message.groupKey))
}
