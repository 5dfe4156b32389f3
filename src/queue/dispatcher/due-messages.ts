import { dueOf, rankOf } from '../transactions/priority.js'
import { Heap } from './collections.js'
import { type Entry, isBefore } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { type InFlightLimits, RoundRobin } from './round-robin.js'

/**
 * Takes held messages through their states to their requests (`EntryState`):
 *
 *   waiting ── due ──> limited ── place under its key ──> ready ── its turn ──> sending
 *   in a heap,         in the line of its                 in the round robin    `answered` or `unsent`
 *   by due time        flow-control key                   of accounts, hosts    ends it
 *
 * A dropped message stays where it is and is skipped there. Nothing here reads a clock: the caller passes the time.
 */
export class DueMessages {
  readonly #waiting = new Heap<Entry>(isBefore)
  readonly #flow: FlowControl
  readonly #ready: RoundRobin

  constructor(flow: FlowControl, limits: InFlightLimits) {
    this.#flow = flow
    this.#ready = new RoundRobin(limits)
  }

  /** Requests in flight, without slow ones. */
  get sending(): number {
    return this.#ready.quick
  }

  /** Adds a message that waits for its time, or is due. */
  add(entry: Entry, now: number): void {
    if (entry.nextAt > now) this.#waiting.push(entry)
    // A due message that was loaded from the store has already waited there.
    else this.#becomeDue(entry, now, entry.origin === 'load' ? dueOf(entry.message) : now)
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

  #becomeDue(entry: Entry, now: number, inLineSince: number): void {
    entry.inLineSince = inLineSince
    entry.rank = rankOf(entry.message)
    if (this.#flow.admit(entry, now)) this.#ready.push(entry)
  }

  /** Takes the next message to send. The caller then calls `answered` or `unsent`. */
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

  /** Marks a message that must not be sent. If its request is in flight, the caller still calls `answered` or `unsent`. */
  drop(entry: Entry): void {
    if (entry.state !== 'sending') this.#flow.release(entry)
    entry.state = 'dropped'
  }

  /** When `advance` or `take` has work again, unless another call comes first. Unix milliseconds. */
  wakeAt(): number {
    const dueAt = this.#waiting.peek()?.nextAt ?? Number.POSITIVE_INFINITY
    return Math.min(dueAt, this.#flow.wakeAt(), this.#ready.wakeAt())
  }
}
