import type { PendingRow } from '../../store/operations/messages.js'
import type { DropSelector, PendingMessage } from '../types.js'
import { type Entry, flowOfLane, isBefore, laneOf, type Place, toEntry } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { Heap } from './heap.js'
import { HostQueues } from './host-queues.js'

/**
 * Which pending messages are in memory.
 *
 * All pending messages stand in the store in the order in which they fall due. Memory covers that order up to a place,
 * the horizon: every pending message up to it is held, later ones may or may not be. New messages up to the horizon are
 * therefore taken in when they are offered, and later ones are left to the next load, which goes on at the horizon.
 *
 * Messages share lanes: those that name a flow-control key the lane of the key, the others that of their host. A lane of
 * which too many messages are held is parked: it has a horizon of its own, which only moves on when most of what is held
 * has gone. So neither a great backlog nor one dead destination nor one slow key fills the memory.
 *
 * A horizon may always be moved back: messages beyond it that are held already are simply met again by the next load.
 */

/** How much is held. */
export interface BacklogLimits {
  /** Messages due later than this from now are left in the store. */
  readonly windowMs: number
  /** A load brings at most this many. A parked host gets another one when half of it is left. */
  readonly loadLimit: number
  /** A host is parked when this many of its messages are held; more than `loadLimit`, less than `capacity`. */
  readonly mostOfHost: number
  /** The same for the lane of a flow-control key, of which there may be very many: a load, and the most of a lane. */
  readonly flowLoadLimit: number
  readonly mostOfFlow: number
  /** No more than this many are held in all. */
  readonly capacity: number
  /** Requests in flight to one host. */
  readonly sendingPerHost: number
}

/** What to load next from the store. */
export type Load =
  | {
      readonly kind: 'all'
      readonly after: Place
      readonly until: number
      readonly limit: number
      readonly exceptHosts: readonly string[]
      readonly exceptFlows: readonly string[]
    }
  | {
      readonly kind: 'lane'
      readonly lane: string
      readonly after: Place
      readonly until: Place
      readonly limit: number
    }

const START: Place = { nextAt: Number.MIN_SAFE_INTEGER, seq: 0 }
const justBefore = (place: Place): Place => ({ nextAt: place.nextAt, seq: place.seq - 1 })
const placeOf = (row: PendingRow): Place => ({ nextAt: row.next_at, seq: row.seq })

/** The part of the pending messages that is in memory. Pure: time comes in, nothing is awaited. */
export class Backlog {
  readonly #limits: BacklogLimits
  readonly #held = new Map<number, Entry>()
  readonly #heldOfLane = new Map<string, number>()
  readonly #groups = new Map<number, Set<Entry>>()
  readonly #waiting = new Heap<Entry>(isBefore)
  readonly #ready: HostQueues
  readonly #flow: FlowControl
  readonly #parked = new Map<string, Place>()
  #horizon: Place = START
  /** While a load is under way: what came meanwhile and may lie between the old horizon and the new one. */
  #aside: Entry[] | undefined

  constructor(limits: BacklogLimits, flow: FlowControl) {
    this.#limits = limits
    this.#flow = flow
    this.#ready = new HostQueues(limits.sendingPerHost)
  }

  /** How many messages are held. */
  get size(): number {
    return this.#held.size
  }

  /** Takes in committed messages, as far as memory covers their places. */
  offer(rows: readonly PendingRow[], now: number): void {
    for (const row of rows) {
      if (this.#aside || this.#covers(laneOf(row), placeOf(row))) this.#admit(toEntry(row), now)
    }
  }

  /** Makes ready what has fallen due. */
  advance(now: number): void {
    for (let entry = this.#waiting.peek(); entry && entry.nextAt <= now; entry = this.#waiting.peek()) {
      this.#waiting.pop()
      if (entry.state === 'waiting') this.#fallsDue(entry, now)
    }
    for (const entry of this.#flow.advance(now)) this.#ready.push(entry)
  }

  /** Takes the next message to send. `release` or `again` has to follow, and `answered` as soon as its request is over. */
  take(): Entry | undefined {
    return this.#ready.take()
  }

  /** The request of a taken message is over: its host may have another. */
  answered(entry: Entry): void {
    this.#flow.release(entry)
    this.#ready.done(entry.host)
  }

  /** Forgets a message that is finished or gone. */
  release(entry: Entry): void {
    if (this.#held.get(entry.seq) !== entry) return
    this.#held.delete(entry.seq)
    const left = (this.#heldOfLane.get(entry.lane) ?? 1) - 1
    if (left > 0) this.#heldOfLane.set(entry.lane, left)
    else this.#heldOfLane.delete(entry.lane)
    this.#leaveGroup(entry)
  }

  /** Puts a message that was taken back, with the next attempt that has been committed for it. */
  again(entry: Entry, message: PendingMessage, now: number): void {
    this.release(entry)
    const kept = entry.bodyInStore ? { ...message, body: undefined } : message
    const { nextAt, seq } = message
    this.#admit({ ...entry, message: kept, nextAt, seq, hasPlace: false, state: 'waiting', abort: undefined }, now)
  }

  /** Forgets messages that a committed transaction has ended. Answers those whose requests are in flight. */
  drop(which: DropSelector): Entry[] {
    const entries = 'seqs' in which ? which.seqs.map((seq) => this.#held.get(seq)) : this.#ofGroups(which.groupKeys)
    const inFlight: Entry[] = []
    for (const entry of entries) {
      if (!entry) continue
      if (entry.state === 'sending') inFlight.push(entry)
      else this.#flow.release(entry)
      entry.state = 'dropped'
      this.release(entry)
    }
    if (this.#aside) this.#aside = this.#aside.filter((entry) => !isSelected(entry, which))
    return inFlight
  }

  /** When `advance` or `nextLoad` has something to do again, if nothing else happens before. */
  wakeAt(now: number): number {
    const loadAt = this.#horizon.nextAt - this.#limits.windowMs / 2
    // A load that is due but has not begun waits for messages to leave, not for time.
    const nextLoadAt = loadAt > now && !this.#aside ? loadAt : Number.POSITIVE_INFINITY
    return Math.min(this.#waiting.peek()?.nextAt ?? Number.POSITIVE_INFINITY, nextLoadAt, this.#flow.wakeAt())
  }

  /** The load that is due now, if any; `loaded` or `loadFailed` has to follow. */
  nextLoad(now: number): Load | undefined {
    // Without room for a whole load, messages have to leave first.
    if (this.#aside || this.#held.size + this.#limits.loadLimit > this.#limits.capacity) return undefined
    const load = this.#loadOfLane() ?? this.#loadOfAll(now)
    if (load) this.#aside = []
    return load
  }

  /** Takes in what a load brought. */
  loaded(load: Load, rows: readonly PendingRow[], now: number): void {
    const aside = this.#aside ?? []
    this.#aside = undefined
    if (load.kind === 'all') this.#loadedAll(load, rows)
    else this.#loadedLane(load, rows)
    for (const row of rows) this.#admit(toEntry(row), now)
    for (const entry of aside) this.#admit(entry, now)
  }

  /** A load failed: it is due again. */
  loadFailed(): void {
    this.#aside = undefined
  }

  #covers(lane: string, place: Place): boolean {
    return !isBefore(this.#parked.get(lane) ?? this.#horizon, place)
  }

  /** Holds a message whose place memory covers, or moves a horizon back when there is no room for it. */
  #admit(entry: Entry, now: number): void {
    if (this.#held.has(entry.seq)) return
    if (this.#covers(entry.lane, entry)) {
      if (this.#hasRoomFor(entry)) {
        this.#hold(entry, now)
        return
      }
      const parks = this.#parked.has(entry.lane) || this.#held.size < this.#limits.capacity
      if (parks) this.#parked.set(entry.lane, justBefore(entry))
      else this.#horizon = justBefore(entry)
    }
    this.#aside?.push(entry)
  }

  #hasRoomFor(entry: Entry): boolean {
    const { most } = this.#limitsOf(entry.lane)
    return this.#held.size < this.#limits.capacity && (this.#heldOfLane.get(entry.lane) ?? 0) < most
  }

  #hold(entry: Entry, now: number): void {
    this.#held.set(entry.seq, entry)
    this.#heldOfLane.set(entry.lane, (this.#heldOfLane.get(entry.lane) ?? 0) + 1)
    this.#joinGroup(entry)
    if (entry.nextAt <= now) this.#fallsDue(entry, now)
    else this.#waiting.push(entry)
  }

  #fallsDue(entry: Entry, now: number): void {
    if (this.#flow.admit(entry, now)) this.#ready.push(entry)
  }

  #limitsOf(lane: string): { readonly most: number; readonly load: number } {
    const { flowLoadLimit, mostOfFlow, loadLimit, mostOfHost } = this.#limits
    return flowOfLane(lane) === undefined
      ? { most: mostOfHost, load: loadLimit }
      : { most: mostOfFlow, load: flowLoadLimit }
  }

  #loadOfLane(): Load | undefined {
    for (const [lane, after] of this.#parked) {
      const limit = this.#limitsOf(lane).load
      if ((this.#heldOfLane.get(lane) ?? 0) > limit / 2) continue
      return { kind: 'lane', lane, after, until: this.#horizon, limit }
    }
    return undefined
  }

  #loadOfAll(now: number): Load | undefined {
    const { windowMs, loadLimit } = this.#limits
    if (this.#horizon.nextAt > now + windowMs / 2) return undefined
    const lanes = [...this.#parked.keys()]
    const exceptFlows = lanes.map(flowOfLane).filter((flow) => flow !== undefined)
    const exceptHosts = lanes.filter((lane) => flowOfLane(lane) === undefined)
    return { kind: 'all', after: this.#horizon, until: now + windowMs, limit: loadLimit, exceptHosts, exceptFlows }
  }

  #loadedAll(load: Load & { kind: 'all' }, rows: readonly PendingRow[]): void {
    const last = rows.length < load.limit ? undefined : rows.at(-1)
    this.#horizon = last ? placeOf(last) : { nextAt: load.until, seq: Number.MAX_SAFE_INTEGER }
  }

  #loadedLane(load: Load & { kind: 'lane' }, rows: readonly PendingRow[]): void {
    const last = rows.length < load.limit ? undefined : rows.at(-1)
    if (last) this.#parked.set(load.lane, placeOf(last))
    else this.#parked.delete(load.lane)
  }

  #joinGroup(entry: Entry): void {
    const key = entry.message.groupKey
    if (key === undefined) return
    const group = this.#groups.get(key)
    if (group) group.add(entry)
    else this.#groups.set(key, new Set([entry]))
  }

  #leaveGroup(entry: Entry): void {
    const key = entry.message.groupKey
    const group = key === undefined ? undefined : this.#groups.get(key)
    if (key === undefined || !group) return
    group.delete(entry)
    if (group.size === 0) this.#groups.delete(key)
  }

  #ofGroups(keys: readonly number[]): Entry[] {
    return keys.flatMap((key) => [...(this.#groups.get(key) ?? [])])
  }
}

function isSelected(entry: Entry, which: DropSelector): boolean {
  if ('seqs' in which) return which.seqs.includes(entry.seq)
  const key = entry.message.groupKey
  return key !== undefined && which.groupKeys.includes(key)
}
