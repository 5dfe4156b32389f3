import type { FlowKeyRow } from '../../store/operations/flow-keys.js'
import type { PendingRow } from '../../store/operations/messages.js'
import type { FlowHold, FlowValue, MessageConfig } from '../types.js'
import type { Entry } from './entry.js'
import { Fifo } from './fifo.js'

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
  readonly waiting = new Fifo<Entry>()
  #open = 0
  #begun = 0
  #periodStart = Number.NEGATIVE_INFINITY

  /** Takes a place for a call that begins now, if there is one. */
  take(now: number): boolean {
    const { isPaused, parallelism, rate } = this.limits
    if (isPaused || (parallelism !== null && this.#open >= parallelism)) return false
    if (!this.#isRunning(now)) {
      this.#begun = 0
      this.#periodStart = now
    }
    if (rate !== null && this.#begun >= rate) return false
    this.#open++
    this.#begun++
    return true
  }

  release(): void {
    this.#open--
  }

  /** Nothing has been sent from the place that was taken last. */
  giveBack(): void {
    this.#open--
    this.#begun--
  }

  endPeriod(): void {
    this.#begun = 0
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
    return this.#open === 0 && this.waiting.size === 0
  }

  /** A clock that was set back ends the period too: it must not last longer than it says. */
  #isRunning(now: number): boolean {
    return now >= this.#periodStart && now < this.#periodStart + this.limits.periodMs
  }
}

/**
 * Flow control (reference queue 3.9): a message that names a key goes out when the key has room. Room is taken when the
 * message is next to be sent, retries included, whatever kind it is of, and given back when its request is over.
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
    if (!this.#withWaiting.has(key) && key.take(now)) {
      entry.hasPlace = true
      return true
    }
    entry.state = 'limited'
    key.waiting.push(entry)
    this.#withWaiting.add(key)
    return false
  }

  /** The request of a message is over, or it will not be sent. */
  release(entry: Entry): void {
    if (entry.flow === undefined || !entry.hasPlace) return
    entry.hasPlace = false
    this.#key(entry.flow).release()
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
      if (!key.take(now)) return
      const entry = key.waiting.shiftAlive('limited')
      if (!entry) {
        key.giveBack()
        this.#withWaiting.delete(key)
        return
      }
      entry.hasPlace = true
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
