import type { HomeportError } from '../../contract/errors/errors.js'
import { joinThen } from '../resp/join-in-slices.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'

/** Why a reply may take long: the engine runs a script, or waits for an event. */
export type Awaited = 'script' | 'event'

/** Receives replies of an engine. */
export interface ReplySink {
  /** Why the replies may take long; undefined for ordinary commands. */
  readonly awaits?: Awaited | undefined
  /**
   * The bytes [start, end) of `chunk` belong to this sink. `completed` replies end in them, and the last bytes may begin
   * one more.
   */
  deliver(chunk: LentBytes, start: number, end: number, completed: number): void
  /**
   * Takes one whole reply in its pieces, which were held until it was complete. For sinks that would otherwise search
   * megabytes for its end. Other sinks get the pieces one by one with `deliver`.
   */
  deliverHeld?(pieces: readonly LentBytes[]): void
  /** `count` replies will never arrive. `partial`: the beginning of the first of them was delivered. */
  fail(count: number, error: HomeportError, partial: boolean): void
}

/** Ignores replies. */
export const DISCARD: ReplySink = { deliver: () => {}, fail: () => {} }

/**
 * Gathers the bytes of `count` replies and passes them on together, or the error that replaced them. Megabytes are passed
 * on some turns of the event loop after they have arrived.
 */
export class CollectedReplies implements ReplySink {
  readonly awaits: Awaited | undefined
  readonly #done: (replies: KeptBytes) => void
  readonly #failed: (error: HomeportError) => void
  #chunks: KeptBytes[] = []
  #left: number

  constructor(
    count: number,
    done: (replies: KeptBytes) => void,
    failed: (error: HomeportError) => void,
    awaits?: Awaited,
  ) {
    this.awaits = awaits
    this.#left = count
    this.#done = done
    this.#failed = failed
  }

  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    this.#chunks.push(keep(chunk.subarray(start, end)))
    this.#left -= completed
    if (this.#left > 0) return
    const [only] = this.#chunks
    if (only && this.#chunks.length === 1) this.#done(only)
    else joinThen(this.#chunks, this.#done)
  }

  fail(_count: number, error: HomeportError): void {
    this.#chunks = []
    this.#failed(error)
  }
}

/** Passes one reply on to another sink, and calls back when it has arrived or is lost. */
export class WatchedReply implements ReplySink {
  readonly awaits: Awaited | undefined
  readonly #sink: ReplySink
  readonly #settled: () => void

  constructor(sink: ReplySink, awaits: Awaited | undefined, settled: () => void) {
    this.awaits = awaits
    this.#sink = sink
    this.#settled = settled
  }

  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    if (completed > 0) this.#settled()
    this.#sink.deliver(chunk, start, end, completed)
  }

  fail(count: number, error: HomeportError, partial: boolean): void {
    this.#settled()
    this.#sink.fail(count, error, partial)
  }
}
