import type { PendingRow } from '../transactions/messages.js'
import { type DuePage, laneOf } from '../transactions/messages-due.js'
import { dueOf, rankOf } from '../transactions/priority.js'
import type { DropSelector, PendingMessage } from '../types.js'
import { Heap } from './collections.js'
import { Coverage, type Load } from './coverage.js'
import { Ended, type EndedSet } from './ended.js'
import { type Entry, isBefore, loadedEntry, type Place, toEntry, UNDUE } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { HeldMessages } from './held-messages.js'
import type { BacklogLimits } from './limits.js'
import { Loads, MAY_WAIT_MS } from './loads.js'
import { Meanwhile, type Rewind } from './meanwhile.js'
import type { FoundBy } from './recalls.js'
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
  /** Set while a load runs. */
  #meanwhile: Meanwhile | undefined
  readonly #loads: Loads
  readonly ended = new Ended()
  /** Parked while their request was in flight: the store says when their next attempt is due, because any node may resume them. */
  readonly #leaving = new Set<Entry>()
  readonly #isOwn: (partition: number) => boolean

  /** @param isOwn whether this node sends the messages of a partition; absent on a server that is alone. */
  constructor(limits: BacklogLimits, flow: FlowControl, isOwn: (partition: number) => boolean = () => true) {
    this.#limits = limits
    this.#flow = flow
    this.#isOwn = isOwn
    this.#loads = new Loads(limits, this.#held, this.#coverage)
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
    return this.#meanwhile !== undefined
  }

  /** Holds committed messages that memory covers and that wait for no turn. `isAgain`: a drop may be older. */
  offer(rows: readonly PendingRow[], now: number, isAgain = false): void {
    for (const row of rows) {
      const place = { nextAt: row.next_at, seq: row.seq }
      // Whether a drop that is remembered came before or after, only the store knows.
      if (isAgain && this.#readmit(row) && !row.held) this.recall([place], 'hint')
      if (row.held || this.ended.isOver(row)) continue
      const isCovered = this.#meanwhile || this.#coverage.covers(row.account_id, () => laneOf(row), place)
      if (isCovered) this.#admit(toEntry(row, 'offer'), now)
    }
  }

  #readmit(row: PendingRow): boolean {
    for (const held of this.#held.select({ seqs: [row.seq] })) this.#leaving.delete(held)
    return this.ended.readmit(row) === 'unsure'
  }

  /** Queues the messages that have become due for sending. */
  advance(now: number): void {
    for (let entry = this.#waiting.peek(); entry && entry.nextAt <= now; entry = this.#waiting.peek()) {
      this.#waiting.pop()
      if (entry.state === 'waiting') this.#becomeDue(entry, now, now)
    }
    for (const entry of this.#flow.advance(now)) {
      entry.heldMs += now - entry.inLineSince
      entry.inLineSince = now
      this.#ready.push(entry)
    }
  }

  /** Takes the next message to send. The caller then calls `answered` or `unsent`, and after that `release` or `reschedule`. */
  take(now: number): Entry | undefined {
    for (;;) {
      const entry = this.#ready.take(now)
      if (!entry || this.#flow.mayGoNow(entry, now)) {
        if (entry) entry.lineMs = now - entry.inLineSince
        return entry
      }
      this.#ready.done(entry)
    }
  }

  /** See `RoundRobin.claim`. */
  claim(entry: Entry, bytes: number): boolean {
    return this.#ready.claim(entry, bytes)
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
    this.#leaving.delete(entry)
    if (!this.#held.holds(entry)) return
    this.ended.attemptOver(entry)
    this.#held.remove(entry)
    this.#loads.noteRefill(entry.lane, entry.message.accountId)
  }

  /** Puts a taken message back, with its next attempt, which is committed. */
  reschedule(entry: Entry, message: PendingMessage, now: number): void {
    const isLeaving = this.#leaving.has(entry)
    this.release(entry)
    const kept = entry.bodyInStore ? { ...message, body: undefined } : message
    if (isLeaving) this.recall([{ nextAt: message.nextAt, seq: entry.seq }], 'hint')
    else this.#admit(fresh({ ...entry, message: kept, nextAt: message.nextAt }), now)
  }

  /** Forgets messages that a committed transaction has ended. Answers those with a request in flight. */
  drop(which: DropSelector): Entry[] {
    const inFlight: Entry[] = []
    this.ended.drop(which)
    for (const entry of this.#held.select(which)) {
      if (which.inFlight === 'ends' && entry.abort) {
        this.#leaving.add(entry)
        continue
      }
      if (entry.state === 'sending') inFlight.push(entry)
      this.#evict(entry)
      if (which.inFlight === 'ends') this.ended.parked(entry)
    }
    this.#meanwhile?.drop(which)
    return inFlight
  }

  /** When `advance`, `take` or `nextLoad` has work again, unless another call comes first. Unix milliseconds. */
  wakeAt(now: number): number {
    const loadAt = this.#coverage.horizon.nextAt - this.#limits.windowMs / 2
    const nextLoadAt = loadAt > now && !this.#meanwhile ? loadAt : Number.POSITIVE_INFINITY
    const dueAt = this.#waiting.peek()?.nextAt ?? Number.POSITIVE_INFINITY
    return Math.min(dueAt, nextLoadAt, this.#flow.wakeAt(), this.#ready.wakeAt())
  }

  /** The load to run now, if any. The caller then calls `loaded` or `loadFailed`. */
  nextLoad(now: number): Load | undefined {
    if (this.#meanwhile) return undefined
    const load = this.#loads.next(now)
    if (!load) return undefined
    this.#meanwhile = new Meanwhile()
    this.ended.loadStarted()
    return load
  }

  /** A load has brought a page. Calls `onDamaged` for each unreadable row, and answers how many strays are held now. */
  loaded(load: Load, { rows: all, upTo }: DuePage, now: number, onDamaged?: (row: PendingRow) => void): number {
    const { meanwhile, ended } = this.#endLoad()
    // While the load ran, a partition may have been lost, and an attempt been made: then a row is older than memory.
    const rows = all.filter((row) => this.#isOwn(row.partition) && !ended?.has(row.seq, row.group_key))
    this.#coverage.loaded(load, upTo)
    this.#restart(meanwhile)
    const missing = this.#admitLoaded(load, rows, meanwhile.arrivals, { now, onDamaged })
    this.#loadOver(load, meanwhile)
    if (load.kind === 'strays' && load.foundBy === 'hint') return 0
    return missing.filter(({ seq }) => this.#held.has(seq)).length
  }

  /** Holds what a load has brought and what came meanwhile. Answers the strays that memory did not have. */
  #admitLoaded(
    load: Load,
    rows: readonly PendingRow[],
    arrivals: readonly Entry[],
    { now, onDamaged }: { readonly now: number; readonly onDamaged: ((row: PendingRow) => void) | undefined },
  ): readonly PendingRow[] {
    // A message that was offered while strays were loaded is none.
    if (load.kind === 'strays') for (const entry of arrivals) this.#admit(entry, now)
    const missing = load.kind === 'strays' ? rows.filter((row) => this.#evictOutdated(row, load.foundBy)) : []
    for (const row of rows) {
      const entry = loadedEntry(row)
      if (entry) this.#admit(entry, now)
      else onDamaged?.(row)
    }
    if (load.kind !== 'strays') for (const entry of arrivals) this.#admit(entry, now)
    return missing
  }

  #endLoad(): { readonly meanwhile: Meanwhile; readonly ended: EndedSet | undefined } {
    const meanwhile = this.#meanwhile ?? new Meanwhile()
    this.#meanwhile = undefined
    return { meanwhile, ended: this.ended.loadFinished() }
  }

  /** Whether a stray is to be held: it is not in memory, or as it was before its due time was brought forward. */
  #evictOutdated({ seq, next_at: nextAt }: PendingRow, foundBy: FoundBy): boolean {
    if (!this.#held.misses({ seq, nextAt }, MAY_WAIT_MS[foundBy])) return false
    const outdated = this.#held.get(seq)
    if (outdated) this.#evict(outdated)
    return true
  }

  #loadOver(load: Load, { rewind }: Meanwhile): void {
    if (load.kind === 'lane') this.#loads.noteRefill(load.lane, load.accountId)
    this.#rewind(rewind)
  }

  /** Up to where memory covers what is not parked, and what is parked. */
  get covered(): Coverage['parked'] & { readonly upTo: Place } {
    return { upTo: this.#coverage.horizon, ...this.#coverage.parked }
  }

  /** Those of these places of pending messages that a sweep has found missing: see `Loads.missing`. */
  missing(places: readonly Place[]): readonly Place[] {
    return this.#loads.missing(places, 'sweep')
  }

  /** Loads strays. A message that has ended meanwhile, that is held or not covered, is skipped as in every load. */
  recall(strays: readonly Place[], foundBy: FoundBy): void {
    this.#loads.recall(strays, foundBy)
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
    this.#rewind('parked')
  }

  /** Loads everything from its start again: this node has more partitions. */
  rewindCovered(): void {
    this.#rewind('covered')
  }

  /** The store has changed the due times of messages. Forgets those that are not due and loads them again. */
  rewind(): void {
    this.#rewind('held')
  }

  #rewind(what: Rewind): void {
    if (this.#meanwhile) {
      this.#meanwhile.rewindLater(what)
      return
    }
    if (what === 'held') for (const entry of this.#held.waiting()) this.#evict(entry)
    if (what === 'parked') this.#coverage.rewindParked()
    else if (what !== 'nothing') this.#coverage.rewind()
  }

  /** Forgets the messages of these partitions, which this node no longer sends. Requests in flight end as usual. */
  evictPartitions(partitions: ReadonlySet<number>): void {
    for (const entry of this.#held.unsentOfPartitions(partitions)) this.#evict(entry)
    this.#meanwhile?.dropPartitions(partitions)
  }

  /**
   * Sends nothing more of these accounts, and again of those that were held before: their messages stay in the store
   * meanwhile. Requests in flight end as usual.
   */
  hold(accountIds: ReadonlySet<string>): void {
    for (const accountId of this.#coverage.hold(accountIds)) {
      this.#coverage.restart(accountId)
      this.#meanwhile?.accounts.add(accountId)
      if (!accountIds.has(accountId)) continue
      for (const entry of this.#held.unsentOf(accountId)) this.#evict(entry)
    }
  }

  /** Whether nothing is sent of an account now. */
  isHeld(accountId: string): boolean {
    return this.#coverage.isHeld(accountId)
  }

  #restart({ accounts }: Meanwhile): void {
    for (const accountId of accounts) this.#coverage.restart(accountId)
  }

  /** Loads messages from this place on again: one of them could not be read. */
  loadAgainFrom(place: Place): void {
    this.#coverage.moveBack(place)
  }

  /** A load has failed: it is due again. */
  loadFailed(load: Load): void {
    const { meanwhile } = this.#endLoad()
    this.#restart(meanwhile)
    this.#loadOver(load, meanwhile)
  }

  /** Holds a message if memory covers its place and has space. Without space, its lane or account is parked. */
  #admit(entry: Entry, now: number): void {
    if (this.#held.has(entry.seq)) return
    const isCovered = this.#coverage.covers(entry.message.accountId, () => entry.lane, entry)
    if (isCovered && this.#hasSpaceFor(entry)) this.#hold(entry, now)
    else this.#meanwhile?.arrive(entry)
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
      this.#meanwhile?.arrive(fresh(each))
    }
    return true
  }

  #parkLane(from: Entry): void {
    this.#coverage.parkLane(from)
    this.#loads.noteRefill(from.lane, from.message.accountId)
  }

  #evict(entry: Entry): void {
    if (entry.state !== 'sending') this.#flow.release(entry)
    entry.state = 'dropped'
    this.release(entry)
  }

  #hold(entry: Entry, now: number): void {
    this.#held.add(entry)
    // A due message that was in the store only has waited for its turn there.
    if (entry.nextAt <= now) this.#becomeDue(entry, now, entry.origin === 'load' ? dueOf(entry.message) : now)
    else this.#waiting.push(entry)
  }

  #becomeDue(entry: Entry, now: number, inLineSince: number): void {
    entry.inLineSince = inLineSince
    entry.rank = rankOf(entry.message)
    if (this.#flow.admit(entry, now)) this.#ready.push(entry)
  }

  #mostOf(entry: Entry): number {
    return entry.flow === undefined ? this.#limits.maxPerHost : this.#limits.maxPerFlowKey
  }
}

/** The same message as if it had just come into memory. */
function fresh(entry: Entry): Entry {
  return { ...entry, ...UNDUE }
}
