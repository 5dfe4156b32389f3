import type { PendingRow } from '../transactions/messages.js'
import { type DuePage, laneOf } from '../transactions/messages-due.js'
import type { DropSelector, PendingMessage } from '../types.js'
import { Coverage, type Load } from './coverage.js'
import { Ended } from './ended.js'
import { type Entry, isBefore, type Place, toEntry } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { Holdings } from './holdings.js'
import { Heap } from './ordering.js'
import { Past } from './past.js'
import { type TurnLimits, Turns } from './turns.js'

/**
 * Which pending messages are in memory.
 *
 * All pending messages stand in the store in the order in which they fall due. Memory covers that order up to a place
 * (`Coverage`). New messages that it covers are taken in when they are offered, and later ones are left to a load.
 *
 * Messages of an account share lanes: those that name a flow-control key the lane of the key, the others that of their
 * host. A lane of which too many messages are held is parked, and so is, when memory is full, whatever holds the most:
 * its later messages leave, and are loaded again when most of the others have gone. So neither a great backlog nor a dead
 * destination nor a slow key keeps others out of memory, whoever they belong to.
 */

/** How much is held. */
export interface BacklogLimits {
  /** Messages due later than this from now are left in the store. */
  readonly windowMs: number
  /** A load brings at most this many. */
  readonly loadLimit: number
  /** The lane of a host is parked when this many of its messages are held; less than `capacity`. */
  readonly mostOfHost: number
  /** The same for the lane of a flow-control key, of which there may be very many: a load, and the most of a lane. */
  readonly flowLoadLimit: number
  readonly mostOfFlow: number
  /** No more than this many are held in all. */
  readonly capacity: number
  /** Requests in flight. */
  readonly turns: TurnLimits
}

/**
 * What happens while a load is under way, whose rows tell how things stood when it was read.
 */
interface Meanwhile {
  /** Messages that came and may lie between the old horizon and the new one. */
  came: Entry[]
  /** Messages, and groups of them, that have ended or have another attempt ahead: what the load says of them is over. */
  readonly left: Set<number>
  readonly leftGroups: Set<number>
}

/** The part of the pending messages that is in memory. Pure: time comes in, nothing is awaited. */
export class Backlog {
  readonly #limits: BacklogLimits
  readonly #held = new Holdings()
  readonly #coverage = new Coverage()
  readonly #waiting = new Heap<Entry>(isBefore)
  readonly #ready: Turns
  readonly #flow: FlowControl
  /** Parked lanes with few messages left in memory, and the account of each. */
  readonly #hungry = new Map<string, string>()
  /** Set while a load is under way. */
  #meanwhile: Meanwhile | undefined
  #lastLoad: Load['kind'] = 'all'
  #rewindAfterLoad = false
  readonly #past = new Past()
  readonly #ended = new Ended()

  constructor(limits: BacklogLimits, flow: FlowControl) {
    this.#limits = limits
    this.#flow = flow
    this.#ready = new Turns(limits.turns)
  }

  /** How many messages are held. */
  get size(): number {
    return this.#held.size
  }

  /** Requests in flight that count against the limit. */
  get sending(): number {
    return this.#ready.quick
  }

  /** Takes in committed messages, as far as memory covers their places. */
  offer(rows: readonly PendingRow[], now: number): void {
    for (const row of rows) {
      const place = { nextAt: row.next_at, seq: row.seq }
      if (this.#past.has(place) || this.#ended.has(row)) continue
      if (this.#meanwhile || this.#coverage.covers(row.account_id, laneOf(row), place))
        this.#admit(toEntry(row, 'offer'), now)
    }
  }

  /** Makes ready what has fallen due. */
  advance(now: number): void {
    this.#ended.clear()
    for (let entry = this.#waiting.peek(); entry && entry.nextAt <= now; entry = this.#waiting.peek()) {
      this.#waiting.pop()
      if (entry.state === 'waiting') this.#fallsDue(entry, now)
    }
    for (const entry of this.#flow.advance(now)) this.#ready.push(entry)
  }

  /** Takes the next message to send. `release` or `again` has to follow, and `answered` or `unsent` before. */
  take(now: number): Entry | undefined {
    for (;;) {
      const entry = this.#ready.take(now)
      if (!entry || this.#flow.mayGoNow(entry, now)) return entry
      this.#ready.done(entry)
    }
  }

  /** The request of a taken message is over: others may have its place. */
  answered(entry: Entry): void {
    this.#flow.release(entry)
    this.#ready.done(entry)
  }

  /** The same for a taken message from which no request has come: it has used up nothing of its flow-control key. */
  unsent(entry: Entry): void {
    this.#flow.takeBack(entry)
    this.#ready.done(entry)
  }

  /** Forgets a message that is finished or gone. */
  release(entry: Entry): void {
    if (!this.#held.holds(entry)) return
    this.#meanwhile?.left.add(entry.seq)
    if (entry.origin === 'load') this.#past.add(entry)
    this.#held.remove(entry)
    this.#noteHunger(entry.lane, entry.message.accountId)
  }

  /** Puts a message that was taken back, with the next attempt that has been committed for it. */
  again(entry: Entry, message: PendingMessage, now: number): void {
    this.release(entry)
    const kept = entry.bodyInStore ? { ...message, body: undefined } : message
    this.#admit(fresh({ ...entry, message: kept, nextAt: message.nextAt }), now)
  }

  /** Forgets messages that a committed transaction has ended. Answers those whose requests are in flight. */
  drop(which: DropSelector): Entry[] {
    const inFlight: Entry[] = []
    this.#ended.add(which)
    for (const entry of this.#held.select(which)) {
      if (entry.state === 'sending') inFlight.push(entry)
      this.#leave(entry)
    }
    if (this.#meanwhile) dropFrom(this.#meanwhile, which)
    return inFlight
  }

  /** When `advance`, `take` or `nextLoad` has something to do again, if nothing else happens before. */
  wakeAt(now: number): number {
    const loadAt = this.#coverage.horizon.nextAt - this.#limits.windowMs / 2
    const nextLoadAt = loadAt > now && !this.#meanwhile ? loadAt : Number.POSITIVE_INFINITY
    const dueAt = this.#waiting.peek()?.nextAt ?? Number.POSITIVE_INFINITY
    return Math.min(dueAt, nextLoadAt, this.#flow.wakeAt(), this.#ready.wakeAt())
  }

  /** The load that is due now, if any; `loaded` or `loadFailed` has to follow. */
  nextLoad(now: number): Load | undefined {
    if (this.#meanwhile) return undefined
    // In turns: lanes that are always hungry must not keep the rest in the store, nor the rest them.
    const parked = () => this.#loadOfLane() ?? this.#loadOfAccount()
    const load = this.#lastLoad === 'all' ? (parked() ?? this.#loadOfAll(now)) : (this.#loadOfAll(now) ?? parked())
    if (!load) return undefined
    this.#lastLoad = load.kind
    this.#meanwhile = { came: [], left: new Set(), leftGroups: new Set() }
    return load
  }

  /** Takes in what a load brought. */
  loaded(load: Load, { rows, upTo }: DuePage, now: number): void {
    const meanwhile = this.#meanwhile
    this.#meanwhile = undefined
    this.#coverage.loaded(load, upTo)
    for (const row of rows) if (!meanwhile || !hasLeft(meanwhile, row)) this.#admit(toEntry(row, 'load'), now)
    for (const entry of meanwhile?.came ?? []) this.#admit(entry, now)
    if (load.kind === 'lane') this.#noteHunger(load.lane, load.accountId)
    if (this.#rewindAfterLoad) this.rewind()
  }

  /**
   * The store has moved messages to other times: what waits for its time is forgotten and loaded again. A load that is
   * under way may tell of the old times, so it is done after that.
   */
  rewind(): void {
    if (this.#meanwhile) {
      this.#rewindAfterLoad = true
      return
    }
    this.#rewindAfterLoad = false
    for (const entry of this.#held.waiting()) this.#leave(entry)
    this.#coverage.rewind()
  }

  /** Messages from this place on that are not held are loaded again: one could not be read. */
  loadAgainFrom(place: Place): void {
    this.#coverage.moveBack(place)
  }

  /** A load failed: it is due again. */
  loadFailed(load: Load): void {
    this.#meanwhile = undefined
    if (load.kind === 'lane') this.#noteHunger(load.lane, load.accountId)
    if (this.#rewindAfterLoad) this.rewind()
  }

  /** Holds a message whose place memory covers, or moves a horizon back when there is no room for it. */
  #admit(entry: Entry, now: number): void {
    if (this.#held.has(entry.seq)) return
    const isCovered = this.#coverage.covers(entry.message.accountId, entry.lane, entry)
    if (isCovered && this.#hasRoomFor(entry)) this.#hold(entry, now)
    else this.#meanwhile?.came.push(entry)
  }

  #hasRoomFor(entry: Entry): boolean {
    const { accountId } = entry.message
    if (this.#held.ofLane(accountId, entry.lane) >= this.#mostOf(entry)) {
      this.#parkLane(entry)
      return false
    }
    return this.#held.size < this.#limits.capacity || this.#makeRoom(entry)
  }

  /** Memory is full: whatever holds the most gives some of it up, or, when the message is of that, it stays outside. */
  #makeRoom(entry: Entry): boolean {
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
      this.#leave(each)
      this.#meanwhile?.came.push(fresh(each))
    }
    return true
  }

  #parkLane(from: Entry): void {
    this.#coverage.parkLane(from)
    this.#noteHunger(from.lane, from.message.accountId)
  }

  #leave(entry: Entry): void {
    if (entry.state !== 'sending') this.#flow.release(entry)
    entry.state = 'dropped'
    this.release(entry)
  }

  #hold(entry: Entry, now: number): void {
    this.#held.add(entry)
    if (entry.nextAt <= now) this.#fallsDue(entry, now)
    else this.#waiting.push(entry)
  }

  #fallsDue(entry: Entry, now: number): void {
    if (this.#flow.admit(entry, now)) this.#ready.push(entry)
  }

  #mostOf(entry: Entry): number {
    return entry.flow === undefined ? this.#limits.mostOfHost : this.#limits.mostOfFlow
  }

  /** The part of the memory that each account may count on, however many there are. */
  get #fairShare(): number {
    return this.#limits.capacity / Math.max(1, this.#held.accounts)
  }

  /**
   * What a load of a lane may bring. Together with what is left when it is due this is less than the lane's fair share,
   * so that loads alone never fill the memory, and what has left it to make room does not come back at once.
   */
  #loadLimitOf(lane: string, accountId: string): number {
    const { flowLoadLimit, loadLimit } = this.#limits
    const limit = lane.startsWith(`${accountId} flow `) ? flowLoadLimit : loadLimit
    const fair = this.#fairShare / Math.max(1, this.#held.lanesOf(accountId))
    return Math.max(1, Math.min(limit, Math.floor(fair / 2)))
  }

  #isHungry(lane: string, accountId: string): boolean {
    return this.#held.ofLane(accountId, lane) <= this.#loadLimitOf(lane, accountId) / 2
  }

  #noteHunger(lane: string, accountId: string): void {
    if (this.#coverage.isParked(lane) && this.#isHungry(lane, accountId)) this.#hungry.set(lane, accountId)
  }

  #loadOfLane(): Load | undefined {
    for (const [lane, accountId] of this.#hungry) {
      this.#hungry.delete(lane)
      const isHungry = this.#isHungry(lane, accountId)
      const load = isHungry ? this.#coverage.loadOfLane(lane, this.#loadLimitOf(lane, accountId)) : undefined
      if (load) return load
    }
    return undefined
  }

  #loadOfAccount(): Load | undefined {
    const limit = Math.max(1, Math.min(this.#limits.loadLimit, Math.floor(this.#fairShare / 4)))
    for (const accountId of this.#coverage.parkedAccounts) {
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

/** The same message as one that has just come into memory. */
function fresh(entry: Entry): Entry {
  return { ...entry, place: undefined, state: 'waiting', abort: undefined }
}

function hasLeft({ left, leftGroups }: Meanwhile, row: PendingRow): boolean {
  return left.has(row.seq) || (row.group_key !== null && leftGroups.has(row.group_key))
}

function dropFrom(meanwhile: Meanwhile, which: DropSelector): void {
  if ('seqs' in which) {
    const seqs = new Set(which.seqs)
    for (const seq of seqs) meanwhile.left.add(seq)
    meanwhile.came = meanwhile.came.filter((entry) => !seqs.has(entry.seq))
    return
  }
  const keys = new Set(which.groupKeys)
  for (const key of keys) meanwhile.leftGroups.add(key)
  meanwhile.came = meanwhile.came.filter(({ message: { groupKey } }) => groupKey === undefined || !keys.has(groupKey))
}
