import type { HomeportError } from '../../contract/errors/errors.js'
import type { GatewayLogger } from '../deps.js'
import type { LentBytes } from '../resp/lent-memory.js'
import type { ReplySink } from './reply-sink.js'

const FIRST_CAPACITY = 64

/**
 * The pending replies of an engine connection, in order, as a ring of (sink, count). Consecutive replies of one sink share
 * an entry. Besides replies of the engine, the ring contains two kinds of bytes of the gateway:
 *
 * - a *note* (count 0): goes to the sink when everything before it has arrived;
 * - a *substitute* (count 1): goes to the sink in place of the engine's reply.
 */
export class PendingReplies {
  #sinks: (ReplySink | undefined)[] = new Array(FIRST_CAPACITY).fill(undefined)
  #counts: number[] = new Array(FIRST_CAPACITY).fill(0)
  #gatewayBytes: (Buffer | undefined)[] = new Array(FIRST_CAPACITY).fill(undefined)
  #head = 0
  #length = 0
  /** Pending replies of the engine in all entries. */
  #pendingCount = 0
  readonly #logger: Pick<GatewayLogger, 'error'>

  /** `logger` reports a sink whose `fail` throws; the other sinks are failed nevertheless. */
  constructor(logger: Pick<GatewayLogger, 'error'>) {
    this.#logger = logger
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** Pending replies of the engine. */
  get count(): number {
    return this.#pendingCount
  }

  /** The sink of the next reply; undefined when none is pending. */
  get headSink(): ReplySink | undefined {
    return this.#sinks[this.#head]
  }

  /** Pending replies of the head entry. */
  get headCount(): number {
    return this.#counts[this.#head] ?? 0
  }

  /** The sink expects `count` more replies. */
  expect(sink: ReplySink, count: number): void {
    const tail = this.#slot(this.#length - 1)
    if (this.#length > 0 && this.#sinks[tail] === sink && this.#gatewayBytes[tail] === undefined) {
      this.#counts[tail] = (this.#counts[tail] ?? 0) + count
      this.#pendingCount += count
    } else {
      this.#push(sink, count, undefined)
    }
  }

  /** Adds a note. */
  note(sink: ReplySink, bytes: Buffer): void {
    this.#push(sink, 0, bytes)
    if (this.#length === 1) this.#deliverNotes()
  }

  /** Adds a substitute. */
  substitute(sink: ReplySink, bytes: Buffer): void {
    this.#push(sink, 1, bytes)
  }

  /** Delivers bytes of the engine to the head entry. `completed` of its replies end in them. */
  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    const sink = this.#sinks[this.#head]
    const substitute = this.#gatewayBytes[this.#head]
    const left = this.#settle(completed)
    if (substitute === undefined) sink?.deliver(chunk, start, end, completed)
    else if (left === 0) sink?.deliver(substitute, 0, substitute.length, 1)
    if (left === 0) this.#deliverNotes()
  }

  /** Delivers one reply that was held until it was whole. */
  deliverHeld(pieces: readonly LentBytes[]): void {
    const sink = this.headSink
    if (this.#gatewayBytes[this.#head] === undefined && sink?.deliverHeld) {
      const left = this.#settle(1)
      sink.deliverHeld(pieces)
      if (left === 0) this.#deliverNotes()
      return
    }
    const last = pieces.length - 1
    pieces.forEach((piece, place) => {
      this.deliver(piece, 0, piece.length, place === last ? 1 : 0)
    })
  }

  /**
   * Fails all pending replies but the last `kept`. Notes before the kept ones are still delivered. `partial`: the beginning
   * of the first reply was delivered.
   */
  fail(error: HomeportError, partial: boolean, kept = 0): void {
    let first = partial
    this.#deliverNotes()
    for (let lost = this.#pendingCount - kept; lost > 0 && this.#length > 0; first = false) {
      const sink = this.#sinks[this.#head]
      const count = Math.min(this.headCount, lost)
      const substituted = this.#gatewayBytes[this.#head] !== undefined
      lost -= count
      this.#settle(count)
      try {
        sink?.fail(count, error, first && !substituted)
        this.#deliverNotes()
      } catch (fault) {
        this.#logger.error('gateway_reply_fault', { error: fault })
      }
    }
  }

  /** Settles `count` replies of the head entry. @returns how many are left */
  #settle(count: number): number {
    const left = this.headCount - count
    this.#counts[this.#head] = left
    this.#pendingCount -= count
    if (left === 0) this.#shift()
    return left
  }

  #deliverNotes(): void {
    while (this.#length > 0 && this.headCount === 0) {
      const sink = this.#sinks[this.#head]
      const note = this.#gatewayBytes[this.#head]
      this.#shift()
      if (note) sink?.deliver(note, 0, note.length, 1)
    }
  }

  #push(sink: ReplySink, count: number, gatewayBytes: Buffer | undefined): void {
    if (this.#length === this.#sinks.length) this.#grow()
    const slot = this.#slot(this.#length++)
    this.#pendingCount += count
    this.#sinks[slot] = sink
    this.#counts[slot] = count
    this.#gatewayBytes[slot] = gatewayBytes
  }

  #shift(): void {
    this.#sinks[this.#head] = undefined
    this.#gatewayBytes[this.#head] = undefined
    this.#head = this.#slot(1)
    this.#length--
  }

  #slot(offset: number): number {
    return (this.#head + offset) & (this.#sinks.length - 1)
  }

  #grow(): void {
    this.#sinks = this.#unrolled(this.#sinks, undefined)
    this.#counts = this.#unrolled(this.#counts, 0)
    this.#gatewayBytes = this.#unrolled(this.#gatewayBytes, undefined)
    this.#head = 0
  }

  /** The items of the ring from the head on, followed by as many empty places. */
  #unrolled<Item>(ring: Item[], empty: Item): Item[] {
    const inOrder = [...ring.slice(this.#head), ...ring.slice(0, this.#head)]
    return [...inOrder, ...new Array<Item>(ring.length).fill(empty)]
  }
}
