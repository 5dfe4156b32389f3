import type { PendingRow } from '../transactions/messages.js'
import { type DuePage, laneOf } from '../transactions/messages-due.js'
import type { DropSelector, PendingMessage } from '../types.js'
import { ChangesDuringLoad, type Rewind } from './changes-during-load.js'
import { Coverage, type Load } from './coverage.js'
import { DueMessages } from './due-messages.js'
import { Ended } from './ended.js'
import { type Entry, loadedEntry, type Place, toEntry, UNDUE } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { HeldMessages } from './held-messages.js'
import type { BacklogLimits } from './limits.js'
import { Loads, MAY_WAIT_MS } from './loads.js'
import type { FoundBy } from './recalls.js'

/** The result of a load. */
export interface Loaded {
  /** Messages that memory had missed and holds now; 0 for a load of hinted messages, which are expected to be missing. */
  readonly strays: number
  /** Rows that cannot be read. */
  readonly damaged: readonly Place[]
}

/**
 * The pending messages in memory.
 *
 * The store holds all pending messages in the order in which they are due. Memory covers that order up to a horizon
 * (`Coverage`). A new message is held when memory covers its place; otherwise a later load brings it. A held message
 * proceeds to its request (`due`). It is released when it has ended, or rescheduled with its next attempt.
 *
 * Messages of an account are grouped in lanes: one lane for each flow-control key, and one for each host for the rest. A
 * lane is parked when it has too many messages in memory. When memory is full, the largest lane of the largest account
 * is parked and its later half evicted. A parked lane is loaded again when most of its held messages are gone. So no
 * large backlog, dead destination or slow key keeps other messages out of memory, whichever account they belong to.
 *
 * One load runs at a time (`nextLoad`, then `loaded` or `loadFailed`). A change that happens while it runs
 * may be missing in its page, so `ChangesDuringLoad` records the changes and they are applied at the end. A
 * message offered late may have ended (`Ended`).
 *
 * Nothing here reads a clock or awaits: the caller passes the time.
 */
export class Backlog {
  /** The held messages on their way to being sent. */
  readonly due: DueMessages
  readonly ended = new Ended()
  readonly #limits: BacklogLimits
  readonly #held = new HeldMessages()
  readonly #coverage = new Coverage()
  readonly #loads: Loads
  /** Set while a load runs. */
  #meanwhile: ChangesDuringLoad | undefined
  /** Entries parked while in flight. Their next due time is read from the store, because any node may resume them. */
  readonly #leaving = new Set<Entry>()
  readonly #isOwn: (partition: number) => boolean

  /** @param isOwn whether this node sends the messages of a partition; absent on a server that is alone. */
  constructor(limits: BacklogLimits, flow: FlowControl, isOwn: (partition: number) => boolean = () => true) {
    this.#limits = limits
    this.#isOwn = isOwn
    this.#loads = new Loads(limits, this.#held, this.#coverage)
    this.due = new DueMessages(flow, limits.inFlight)
  }

  /** How many messages are held. */
  get size(): number {
    return this.#held.size
  }

  /** Whether a load runs. */
  get isLoading(): boolean {
    return this.#meanwhile !== undefined
  }

  /**
   * Holds committed messages whose place memory covers and that do not wait for a turn.
   * @param isAgain the messages were brought back, perhaps after a drop that is remembered.
   */
  offer(rows: readonly PendingRow[], now: number, isAgain = false): void {
    for (const row of rows) {
      const place = { nextAt: row.next_at, seq: row.seq }
      // Only the store knows whether a remembered drop was committed before or after this transaction.
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

  /** Forgets a message that has ended. */
  release(entry: Entry): void {
    this.#leaving.delete(entry)
    if (!this.#held.holds(entry)) return
    this.ended.attemptOver(entry)
    this.#meanwhile?.released(entry)
    this.#held.remove(entry)
    this.#loads.noteRefill(entry.lane, entry.message.accountId)
  }

  /** Puts a taken message back with its next attempt, which is already committed. */
  reschedule(entry: Entry, message: PendingMessage, now: number): void {
    // If the message was parked while its outcome was being stored, it may be resumed by now. Only the store knows.
    const isLeaving = this.#leaving.has(entry) || entry.state === 'dropped'
    this.release(entry)
    const kept = entry.bodyInStore ? { ...message, body: undefined } : message
    if (isLeaving) this.recall([{ nextAt: message.nextAt, seq: entry.seq }], 'hint')
    else this.#admit(fresh({ ...entry, message: kept, nextAt: message.nextAt }), now)
  }

  /** Forgets messages that a committed transaction has ended. Returns the entries with a request in flight. */
  drop(which: DropSelector): Entry[] {
    const inFlight: Entry[] = []
    this.ended.drop(which)
    for (const entry of this.#held.select(which)) {
      // An outcome that the store refuses meanwhile must be stored too, so its message is not dropped either.
      if (which.inFlight === 'ends' && (entry.abort || entry.isAnswered)) {
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

  /** Numbers of the held messages without a request in flight. */
  get unsentSeqs(): readonly number[] {
    return this.#held.unsent()
  }

  /** Forgets messages that the store no longer has as pending, unless a request is in flight. */
  dropEnded(seqs: readonly number[]): void {
    const unsent = this.#held.select({ seqs }).filter(({ state }) => state !== 'sending')
    this.drop({ seqs: unsent.map(({ seq }) => seq), mayBeOfferedAgain: true })
  }

  /** When the next message can be sent or the next load is due, unless another call comes first. Unix milliseconds. */
  wakeAt(now: number): number {
    const loadAt = this.#coverage.horizon.nextAt - this.#limits.windowMs / 2
    return Math.min(loadAt > now && !this.#meanwhile ? loadAt : Number.POSITIVE_INFINITY, this.due.wakeAt())
  }

  /** The load to run now, if any. The caller then calls `loaded` or `loadFailed`. */
  nextLoad(now: number): Load | undefined {
    const load = this.#meanwhile ? undefined : this.#loads.next(now)
    if (load) this.#meanwhile = new ChangesDuringLoad()
    return load
  }

  /** A load has brought a page. */
  loaded(load: Load, { rows: all, upTo }: DuePage, now: number): Loaded {
    const meanwhile = this.#endLoad()
    // While the load ran, this node may have lost a partition or made an attempt. Such rows are outdated.
    const rows = all.filter((row) => this.#isOwn(row.partition) && !meanwhile.isOutdated(row))
    const damaged: Place[] = []
    const entries: Entry[] = []
    for (const row of rows) {
      const entry = loadedEntry(row)
      if (entry) entries.push(entry)
      else damaged.push({ nextAt: row.next_at, seq: row.seq })
    }
    this.#coverage.loaded(load, upTo)
    this.#restart(meanwhile)
    const { arrivals } = meanwhile
    const strays = load.kind === 'strays' ? this.#admitStrays(load.foundBy, entries, arrivals, now) : 0
    if (load.kind !== 'strays') for (const entry of [...entries, ...arrivals]) this.#admit(entry, now)
    this.#loadOver(load, meanwhile)
    return { strays, damaged }
  }

  /** Returns how many messages memory had missed; 0 for hinted messages, which are expected to be missing. */
  #admitStrays(foundBy: FoundBy, found: readonly Entry[], arrivals: readonly Entry[], now: number): number {
    // A message that was offered while strays were loaded is not a stray.
    for (const entry of arrivals) this.#admit(entry, now)
    const missing = found.filter((entry) => this.#held.misses(entry, MAY_WAIT_MS[foundBy]))
    for (const entry of missing) {
      // The held entry may still have the later due time that another node has brought forward.
      const outdated = this.#held.get(entry.seq)
      if (outdated) this.#evict(outdated)
      this.#admit(entry, now)
    }
    return foundBy === 'hint' ? 0 : missing.filter(({ seq }) => this.#held.has(seq)).length
  }

  /** A load has failed, and will be due again. */
  loadFailed(load: Load): void {
    const meanwhile = this.#endLoad()
    this.#restart(meanwhile)
    this.#loadOver(load, meanwhile)
  }

  #endLoad(): ChangesDuringLoad {
    const meanwhile = this.#meanwhile ?? new ChangesDuringLoad()
    this.#meanwhile = undefined
    return meanwhile
  }

  #restart({ accounts }: ChangesDuringLoad): void {
    for (const accountId of accounts) this.#coverage.restart(accountId)
  }

  #loadOver(load: Load, { rewind }: ChangesDuringLoad): void {
    if (load.kind === 'lane') this.#loads.noteRefill(load.lane, load.accountId)
    if (rewind) this.rewind(rewind)
  }

  /** The place up to which memory covers messages that are not parked, and the parked accounts and lanes. */
  get covered(): Coverage['parked'] & { readonly upTo: Place } {
    return { upTo: this.#coverage.horizon, ...this.#coverage.parked }
  }

  /** Returns which places of pending messages, found by a sweep, memory misses: see `Loads.missing`. */
  missing(places: readonly Place[]): readonly Place[] {
    return this.#loads.missing(places, 'sweep')
  }

  /** Loads strays. Like every load, it skips messages that have ended, are already held, or are not covered. */
  recall(strays: readonly Place[], foundBy: FoundBy): void {
    this.#loads.recall(strays, foundBy)
  }

  /** Loads messages from this place on again, because one of them could not be read. */
  loadAgainFrom(place: Place): void {
    this.#coverage.moveBack(place)
  }

  /**
   * Loads messages again from the start:
   * - `parked`: parked accounts and lanes, because some of their messages may be missing;
   * - `covered`: everything, because this node has gained partitions;
   * - `held`: everything, also held messages that are not due, because due times in the store have changed.
   */
  rewind(what: Rewind): void {
    if (this.#meanwhile) {
      this.#meanwhile.rewindLater(what)
      return
    }
    if (what === 'held') for (const entry of this.#held.waiting()) this.#evict(entry)
    if (what === 'parked') this.#coverage.rewindParked()
    else this.#coverage.rewind()
  }

  /** Forgets the messages of partitions that this node no longer owns. Requests in flight finish as usual. */
  evictPartitions(partitions: ReadonlySet<number>): void {
    for (const entry of this.#held.unsentOfPartitions(partitions)) this.#evict(entry)
    this.#meanwhile?.dropPartitions(partitions)
  }

  /**
   * Stops sending messages of these accounts, and resumes the accounts that were held before. Messages of held accounts stay
   * in the store. Requests in flight finish as usual.
   */
  hold(accountIds: ReadonlySet<string>): void {
    for (const accountId of this.#coverage.hold(accountIds)) {
      this.#coverage.restart(accountId)
      this.#meanwhile?.accounts.add(accountId)
      if (!accountIds.has(accountId)) continue
      for (const entry of this.#held.unsentOf(accountId)) this.#evict(entry)
    }
  }

  /** Whether an account is held: none of its messages is sent now. */
  isHeld(accountId: string): boolean {
    return this.#coverage.isHeld(accountId)
  }

  /** Holds a message if memory covers its place and has space. Without space, its lane or account is parked. */
  #admit(entry: Entry, now: number): void {
    if (this.#held.has(entry.seq)) return
    const isCovered = this.#coverage.covers(entry.message.accountId, () => entry.lane, entry)
    if (!isCovered || !this.#hasSpaceFor(entry)) {
      this.#meanwhile?.arrive(entry)
      return
    }
    this.#held.add(entry)
    this.due.add(entry, now)
  }

  #hasSpaceFor(entry: Entry): boolean {
    const { maxPerHost, maxPerFlowKey, capacity } = this.#limits
    const ofLane = this.#held.ofLane(entry.message.accountId, entry.lane)
    if (ofLane >= (entry.flow === undefined ? maxPerHost : maxPerFlowKey)) {
      this.#parkLane(entry)
      return false
    }
    return this.#held.size < capacity || this.#makeSpace(entry)
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
    this.due.drop(entry)
    this.release(entry)
  }
}

/** A copy of an entry in the state of one that has just come into memory. */
function fresh(entry: Entry): Entry {
  return { ...entry, ...UNDUE }
}
