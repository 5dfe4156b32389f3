import type { FlowKeyRow } from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import type { FlowHold, FlowValue, MessageConfig } from '../types.js'
import { Heap } from './collections.js'
import type { Entry, FlowPlace } from './entry.js'
import { FlowKey, type FlowLimits, type FlowUse, UNUSED } from './flow-key.js'

/** The use of a flow-control key that a node passes to the key's next owner. */
export interface FlowNote {
  /** `<account>/<flow-control key>`. */
  readonly name: string
  /** Requests started in the current period. */
  readonly begun: number
  /** Unix milliseconds. */
  readonly periodStart: number
}

type AccountKey = readonly [account: string, key: string]

interface PeriodEnd {
  readonly key: FlowKey
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * Flow control (reference queue 3.9). A due message that names a key waits until the key has a free place, for retries
 * and for messages of every kind. It takes the place, then waits for its turn among all messages that may be sent. At
 * its turn the place must still be valid. The place is free again when the request is over.
 *
 * Limits are stored. Use is in memory: after a restart a new period begins. Nothing here reads a clock: the caller
 * passes the time.
 *
 * Messages may wait for ten thousand keys, and the dispatcher advances after every few responses. So `advance` checks
 * only the keys that have changed and those whose period is over.
 */
export class FlowControl {
  readonly #keys = new Map<string, FlowKey>()
  readonly #withWaiting = new Set<FlowKey>()
  /** Keys of `#withWaiting` that may have a free place. */
  readonly #maybeFree = new Set<FlowKey>()
  /** Ends of the periods of keys that messages wait for. An outdated entry only causes a check without effect. */
  readonly #periodEnds = new Heap<PeriodEnd>((one, other) => one.at < other.at)
  /** The newest entry of `#periodEnds` for each key. */
  readonly #nextEnds = new Map<FlowKey, number>()
  #advancedAt = Number.NEGATIVE_INFINITY
  readonly #meter: { flowWaits: number } | undefined
  /** Set while stored limits are read: keys whose limits have changed meanwhile. */
  #changed: Set<string> | undefined
  #reading: Promise<void> = Promise.resolve()

  /** @param meter counts how often a message waits. */
  constructor(meter?: { flowWaits: number }) {
    this.#meter = meter
  }

  /**
   * Reads the limits of keys from the store. Limits that are set while the read runs are newer and stay.
   * @param asked keys to forget if the store no longer has them.
   */
  reload(readRows: () => Promise<readonly FlowKeyRow[]>, asked: readonly AccountKey[] = []): Promise<void> {
    const reading = this.#reading.then(() => this.#reload(readRows, asked))
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #reload(readRows: () => Promise<readonly FlowKeyRow[]>, asked: readonly AccountKey[]): Promise<void> {
    const changed = new Set<string>()
    this.#changed = changed
    try {
      const missing = new Map(asked.map((name) => [name.join('/'), name]))
      for (const row of await readRows()) {
        const name = `${row.account_id}/${row.flow_key}`
        missing.delete(name)
        if (!changed.has(name)) this.set(row)
      }
      for (const [name, [account, key]] of missing) if (!changed.has(name)) this.forget(account, key)
    } finally {
      this.#changed = undefined
    }
  }

  /** The keys that have sent requests in their current period, for the next owner of their partition. */
  running(now: number): FlowNote[] {
    const notes: FlowNote[] = []
    for (const [name, key] of this.#keys) {
      if (!key.hasBegun) continue
      const { begun, periodStart } = key.use(now)
      if (begun > 0) notes.push({ name, begun, periodStart })
    }
    return notes
  }

  /** Continues the period of a key that another node has counted. */
  resume({ name, begun, periodStart }: FlowNote, now: number): void {
    const key = this.#key(name)
    // The clock of the other node may be ahead.
    key.resume(begun, Math.min(periodStart, now))
    this.#noteChange(key)
  }

  /** Sets the limits of a key from its stored row. */
  set(row: FlowKeyRow): void {
    this.#changed?.add(`${row.account_id}/${row.flow_key}`)
    const key = this.#key(`${row.account_id}/${row.flow_key}`)
    this.#noteChange(key)
    key.limits = {
      parallelism: row.parallelism,
      rate: row.rate,
      periodMs: row.period_s * 1_000,
      isPaused: row.paused === 1,
      isPinnedParallelism: row.pinned_parallelism === 1,
      isPinnedRate: row.pinned_rate === 1,
    }
  }

  /** A new message replaces the limits of its key, except pinned ones. */
  note(row: PendingRow): void {
    if (row.flow_key === null) return
    const key = this.#key(`${row.account_id}/${row.flow_key}`)
    // This program wrote and validated the column.
    const { flow } = JSON.parse(row.config) as MessageConfig
    if (!flow) return
    this.#changed?.add(`${row.account_id}/${row.flow_key}`)
    key.limits = { ...key.limits, ...limitsFrom(flow, key.limits) }
    this.#noteChange(key)
  }

  /** Forgets a key, unless it is in use. */
  forget(account: string, name: string): void {
    const key = this.#keys.get(`${account}/${name}`)
    if (!key?.isIdle) return
    this.#keys.delete(`${account}/${name}`)
    this.#noteEmpty(key)
  }

  /** Ends the current period of a key. */
  resetRate(account: string, name: string): void {
    const key = this.#key(`${account}/${name}`)
    key.endPeriod()
    this.#noteChange(key)
  }

  /** Use of a key. */
  use(account: string, name: string, now: number): FlowUse {
    return this.#keys.get(`${account}/${name}`)?.use(now) ?? UNUSED
  }

  /** The keys of an account that are in use. Looks at the keys of all accounts. */
  uses(account: string, now: number): (readonly [key: string, FlowUse])[] {
    const prefix = `${account}/`
    const uses: (readonly [string, FlowUse])[] = []
    for (const [name, key] of this.#keys) {
      if (!name.startsWith(prefix)) continue
      const use = key.use(now)
      if (use.open + use.begun > 0) uses.push([name.slice(prefix.length), use])
    }
    return uses
  }

  /** The limit that blocks another request of a key; `undefined` if none does, or if no message has named the key. */
  hold(account: string, name: string, now: number): FlowHold | undefined {
    return this.#keys.get(`${account}/${name}`)?.hold(now)
  }

  /** Whether a due message may be sent now. If not, it waits, and a later `advance` returns it. */
  admit(entry: Entry, now: number): boolean {
    if (entry.flow === undefined) return true
    const key = this.#key(entry.flow)
    if (!this.#withWaiting.has(key)) entry.place = key.take(now)
    if (entry.place) return true
    this.#wait(key, entry, 'new')
    return false
  }

  /**
   * Whether an admitted message may be sent now that its turn has come. Its key may have been paused, its limits
   * lowered, or its period may be over. Then the message takes another place, or waits again.
   */
  mayGoNow(entry: Entry, now: number): boolean {
    if (entry.flow === undefined) return true
    const key = this.#key(entry.flow)
    const place = this.#validPlace(key, entry, now)
    if (place) key.markSent(place, now)
    else this.#wait(key, entry, 'returned')
    return place !== undefined
  }

  /** The message's place if it is still valid, or another one. */
  #validPlace(key: FlowKey, entry: Entry, now: number): FlowPlace | undefined {
    if (entry.place && key.isValid(entry.place, now)) return entry.place
    this.release(entry)
    entry.place = key.take(now)
    return entry.place
  }

  #wait(key: FlowKey, entry: Entry, from: 'new' | 'returned'): void {
    key.wait(entry, from)
    if (this.#meter) this.#meter.flowWaits++
    this.#withWaiting.add(key)
    this.#maybeFree.add(key)
  }

  /** Notes that waiting messages of the key may have a free place. */
  #noteChange(key: FlowKey): void {
    if (this.#withWaiting.has(key)) this.#maybeFree.add(key)
  }

  /** Notes that no message waits for the key any more. */
  #noteEmpty(key: FlowKey): void {
    this.#withWaiting.delete(key)
    this.#maybeFree.delete(key)
    this.#nextEnds.delete(key)
  }

  /** Frees the place of a message whose request is over, or that will not be sent. */
  release(entry: Entry): void {
    const { flow, place } = entry
    if (flow === undefined || place === undefined) return
    entry.place = undefined
    const key = this.#key(flow)
    key.release(place)
    this.#noteChange(key)
  }

  /** Frees the place of a taken message that had nothing to send. It does not count in the period. */
  refund(entry: Entry): void {
    const { flow, place } = entry
    if (flow === undefined || place === undefined) return
    entry.place = undefined
    const key = this.#key(flow)
    key.refund(place)
    this.#noteChange(key)
  }

  /** Returns the waiting messages that may be sent now. */
  advance(now: number): Entry[] {
    // A clock that is set back ends the current periods.
    if (now < this.#advancedAt) for (const key of this.#withWaiting) this.#maybeFree.add(key)
    this.#advancedAt = now
    for (let end = this.#periodEnds.peek(); end && end.at <= now; end = this.#periodEnds.peek()) {
      this.#periodEnds.pop()
      if (this.#nextEnds.get(end.key) === end.at) this.#nextEnds.delete(end.key)
      this.#noteChange(end.key)
    }
    const free: Entry[] = []
    for (const key of this.#maybeFree) this.#advanceKey(key, now, free)
    this.#maybeFree.clear()
    return free
  }

  /** When the end of a period frees a place for a waiting message, Unix milliseconds. May be too early, never too late. */
  wakeAt(): number {
    let at = this.#periodEnds.peek()?.at ?? Number.POSITIVE_INFINITY
    for (const key of this.#maybeFree) at = Math.min(at, key.freeAt())
    return at
  }

  #noteEnd(key: FlowKey): void {
    const at = key.freeAt()
    if (at === Number.POSITIVE_INFINITY || this.#nextEnds.get(key) === at) return
    this.#nextEnds.set(key, at)
    this.#periodEnds.push({ key, at })
  }

  #advanceKey(key: FlowKey, now: number, free: Entry[]): void {
    for (;;) {
      const place = key.take(now)
      if (place === undefined) return void this.#noteEnd(key)
      const entry = key.next()
      if (!entry) {
        key.release(place)
        this.#noteEmpty(key)
        return
      }
      entry.place = place
      free.push(entry)
    }
  }

  #key(name: string): FlowKey {
    let key = this.#keys.get(name)
    if (!key) {
      key = new FlowKey()
      this.#keys.set(name, key)
    }
    return key
  }
}

function limitsFrom(flow: FlowValue, { isPinnedParallelism, isPinnedRate }: FlowLimits): Partial<FlowLimits> {
  return {
    ...(!isPinnedParallelism && { parallelism: flow.parallelism ?? null }),
    ...(!isPinnedRate && { rate: flow.rate ?? null, periodMs: (flow.period ?? 1) * 1_000 }),
  }
}
