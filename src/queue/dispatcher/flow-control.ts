import type { FlowKeyRow } from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import type { FlowHold, FlowValue, MessageConfig } from '../types.js'
import type { Entry, FlowPlace } from './entry.js'
import { Fifo } from './ordering.js'

/** The limits of a flow-control key. */
export interface FlowLimits {
  readonly parallelism: number | null
  readonly rate: number | null
  readonly periodMs: number
  readonly isPaused: boolean
  readonly isPinnedParallelism: boolean
  readonly isPinnedRate: boolean
}

/** What a key has open and has begun. */
export interface FlowUse {
  readonly open: number
  /** Calls begun in the present period; 0 when none is running. */
  readonly begun: number
  /** Unix milliseconds; 0 when no period is running. */
  readonly periodStart: number
}

const UNLIMITED: FlowLimits = {
  parallelism: null,
  rate: null,
  periodMs: 1_000,
  isPaused: false,
  isPinnedParallelism: false,
  isPinnedRate: false,
}

/** A key: its limits, its use, and the messages that wait for room under it. */
class Key {
  limits: FlowLimits = UNLIMITED
  readonly #waiting = new Fifo<Entry>()
  /** Those that had a place and lost it before they were sent: they go before the others. */
  readonly #sentBack = new Fifo<Entry>()
  /** Places that are taken, and those of them from which a request has been sent. */
  #open = 0
  #underWay = 0
  #begun = 0
  /** Periods are numbered, as the start of one moves until its first call is sent. */
  #period = 0
  #sent = 0
  #periodStart = Number.NEGATIVE_INFINITY

  /** Takes a place for a call that begins now, if there is one. */
  take(now: number): FlowPlace | undefined {
    const { isPaused, parallelism, rate } = this.limits
    if (isPaused || (parallelism !== null && this.#open >= parallelism)) return undefined
    if (!this.#isRunning(now)) this.#beginPeriod(now)
    if (rate !== null && this.#begun >= rate) return undefined
    this.#open++
    this.#begun++
    return { period: this.#period, use: 'kept' }
  }

  /** Whether a place that was taken before may still be used: limits may have changed since, and the period be over. */
  isGood(place: FlowPlace, now: number): boolean {
    const { isPaused, parallelism, rate } = this.limits
    if (isPaused || (parallelism !== null && this.#underWay >= parallelism)) return false
    return rate === null || (place.period === this.#period && this.#isRunning(now))
  }

  /** A call is sent from a place that is good. A period begins with its first call. */
  sends(place: FlowPlace, now: number): void {
    place.use = 'sent'
    this.#underWay++
    if (this.#sent++ === 0) this.#periodStart = now
  }

  #beginPeriod(now: number): void {
    this.#period++
    this.#periodStart = now
    this.#begun = 0
    this.#sent = 0
  }

  /** The call from a place is over, or nothing will be sent from it. */
  release(place: FlowPlace): void {
    this.#open--
    if (place.use === 'sent') this.#underWay--
    else this.#uncount(place)
  }

  /** The message that was to be sent from a place had nothing to send. */
  takeBack(place: FlowPlace): void {
    if (place.use === 'sent' && place.period === this.#period) this.#sent--
    this.release(place)
    if (place.use === 'sent') this.#uncount(place)
  }

  /** A place from which nothing was sent is free for another call of its period, which does not begin without any. */
  #uncount({ period }: FlowPlace): void {
    if (period === this.#period && --this.#begun === 0) this.endPeriod()
  }

  wait(entry: Entry, from: 'new' | 'sentBack'): void {
    entry.state = 'limited'
    const line = from === 'new' ? this.#waiting : this.#sentBack
    line.push(entry)
  }

  /** The next message that waits. */
  next(): Entry | undefined {
    return this.#sentBack.shiftAlive('limited') ?? this.#waiting.shiftAlive('limited')
  }

  /** Places that were taken in it count in no other. */
  endPeriod(): void {
    this.#period++
    this.#begun = 0
    this.#sent = 0
    this.#periodStart = Number.NEGATIVE_INFINITY
  }

  use(now: number): FlowUse {
    if (!this.#isRunning(now)) return { open: this.#open, begun: 0, periodStart: 0 }
    return { open: this.#open, begun: this.#begun, periodStart: this.#periodStart }
  }

  /** When time alone makes room; what else does is told by `release` and by new limits. */
  roomAt(): number {
    const { isPaused, parallelism, rate } = this.limits
    const isOnlyRate = !isPaused && rate !== null && (parallelism === null || this.#open < parallelism)
    return isOnlyRate ? this.#periodStart + this.limits.periodMs : Number.POSITIVE_INFINITY
  }

  /** What leaves no room for another call; `undefined` when there is room. */
  hold(now: number): FlowHold | undefined {
    const { isPaused, parallelism, rate, periodMs } = this.limits
    if (isPaused) return { by: 'pause' }
    if (parallelism !== null && this.#open >= parallelism) return { by: 'parallelism', parallelism }
    if (rate === null || !this.#isRunning(now) || this.#begun < rate) return undefined
    return { by: 'rate', rate, periodMs, until: this.#periodStart + periodMs }
  }

  get isIdle(): boolean {
    return this.#open === 0 && this.#waiting.size === 0 && this.#sentBack.size === 0
  }

  /** A clock that was set back ends the period too: it must not last longer than it says. */
  #isRunning(now: number): boolean {
    return now >= this.#periodStart && now < this.#periodStart + this.limits.periodMs
  }
}

/**
 * Flow control (reference queue 3.9): a message that names a key goes out when the key has room. Room is taken when the
 * message is next to be sent, retries included, whatever kind it is of, and given back when its request is over. Between
 * the two it waits for its turn among all that may go; when that comes, the room must still be good.
 *
 * Limits are durable, use is not: after a restart a rate begins a new period. Pure: time comes in.
 */
export class FlowControl {
  readonly #keys = new Map<string, Key>()
  readonly #withWaiting = new Set<Key>()

  /** Learns the limits of a key as they are stored. */
  set(row: FlowKeyRow): void {
    this.#key(`${row.account_id}/${row.flow_key}`).limits = {
      parallelism: row.parallelism,
      rate: row.rate,
      periodMs: row.period_s * 1_000,
      isPaused: row.paused === 1,
      isPinnedParallelism: row.pinned_parallelism === 1,
      isPinnedRate: row.pinned_rate === 1,
    }
  }

  /** A new message replaces the limits of its key, but for those that are pinned. */
  note(row: PendingRow): void {
    if (row.flow_key === null) return
    const key = this.#key(`${row.account_id}/${row.flow_key}`)
    // Written by this program when the message was accepted.
    const { flow } = JSON.parse(row.config) as MessageConfig
    if (flow) key.limits = { ...key.limits, ...asked(flow, key.limits) }
  }

  /** Forgets a key that the store has forgotten. */
  forget(account: string, name: string): void {
    const key = this.#keys.get(`${account}/${name}`)
    if (key?.isIdle) this.#keys.delete(`${account}/${name}`)
  }

  /** Ends the present period of a key. */
  resetRate(account: string, name: string): void {
    this.#key(`${account}/${name}`).endPeriod()
  }

  /** What a key has open and has begun. */
  use(account: string, name: string, now: number): FlowUse {
    return this.#key(`${account}/${name}`).use(now)
  }

  /** What leaves no room for another call of a key; `undefined` when there is room, or nothing has named the key. */
  hold(account: string, name: string, now: number): FlowHold | undefined {
    return this.#keys.get(`${account}/${name}`)?.hold(now)
  }

  /** Whether a due message may go out now. Otherwise it waits, and `advance` will answer it. */
  admit(entry: Entry, now: number): boolean {
    if (entry.flow === undefined) return true
    const key = this.#key(entry.flow)
    if (!this.#withWaiting.has(key)) entry.place = key.take(now)
    if (entry.place) return true
    this.#wait(key, entry, 'new')
    return false
  }

  /**
   * Whether a message that was let go may be sent now that its turn has come. Meanwhile its key may have been paused or
   * narrowed, and its period may be over: then it takes another place, or waits again.
   */
  mayGoNow(entry: Entry, now: number): boolean {
    if (entry.flow === undefined) return true
    const key = this.#key(entry.flow)
    const place = this.#goodPlace(key, entry, now)
    if (place) key.sends(place, now)
    else this.#wait(key, entry, 'sentBack')
    return place !== undefined
  }

  /** The place that a message has, or another one in its stead. */
  #goodPlace(key: Key, entry: Entry, now: number): FlowPlace | undefined {
    if (entry.place && key.isGood(entry.place, now)) return entry.place
    this.release(entry)
    entry.place = key.take(now)
    return entry.place
  }

  #wait(key: Key, entry: Entry, from: 'new' | 'sentBack'): void {
    key.wait(entry, from)
    this.#withWaiting.add(key)
  }

  /** The request of a message is over, or it will not be sent. */
  release(entry: Entry): void {
    const { flow, place } = entry
    if (flow === undefined || place === undefined) return
    entry.place = undefined
    this.#key(flow).release(place)
  }

  /** A message whose turn had come had nothing to send. */
  takeBack(entry: Entry): void {
    const { flow, place } = entry
    if (flow === undefined || place === undefined) return
    entry.place = undefined
    this.#key(flow).takeBack(place)
  }

  /** Messages that waited and may go out now. */
  advance(now: number): Entry[] {
    const free: Entry[] = []
    for (const key of this.#withWaiting) this.#advanceKey(key, now, free)
    return free
  }

  /** When time alone lets a waiting message go. */
  wakeAt(): number {
    let at = Number.POSITIVE_INFINITY
    for (const key of this.#withWaiting) at = Math.min(at, key.roomAt())
    return at
  }

  #advanceKey(key: Key, now: number, free: Entry[]): void {
    for (;;) {
      const place = key.take(now)
      if (place === undefined) return
      const entry = key.next()
      if (!entry) {
        key.release(place)
        this.#withWaiting.delete(key)
        return
      }
      entry.place = place
      free.push(entry)
    }
  }

  #key(name: string): Key {
    let key = this.#keys.get(name)
    if (!key) {
      key = new Key()
      this.#keys.set(name, key)
    }
    return key
  }
}

function asked(flow: FlowValue, { isPinnedParallelism, isPinnedRate }: FlowLimits): Partial<FlowLimits> {
  return {
    ...(!isPinnedParallelism && { parallelism: flow.parallelism ?? null }),
    ...(!isPinnedRate && { rate: flow.rate ?? null, periodMs: (flow.period ?? 1) * 1_000 }),
  }
}
