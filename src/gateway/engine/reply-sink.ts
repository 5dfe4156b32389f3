import type { HomeportError } from '../../contract/errors/errors.js'
import { kept } from '../resp/lent-memory.js'

/** What an engine may be doing for long that owes a reply: running a script, or waiting for something to happen. */
export type Awaited = 'script' | 'event'

/** Who waits for replies of an engine. */
export interface ReplySink {
  /** What the replies are awaited from, where that is no ordinary command. */
  readonly awaits?: Awaited | undefined
  /**
   * The bytes [start, end) of `chunk` are this sink's, in order; `completed` replies ended in them, and the last bytes
   * may be the beginning of one more. The chunk may be lent: who needs its bytes after the call takes them with `kept`
   * or `copied` (`lent-memory.ts`).
   */
  deliver(chunk: Buffer, start: number, end: number, completed: number): void
  /** `count` replies will never come; of the first of them the beginning was delivered when `partial`. */
  fail(count: number, error: HomeportError, partial: boolean): void
}

/** For commands whose replies interest nobody. */
export const DISCARD: ReplySink = { deliver: () => {}, fail: () => {} }

/** Gathers the bytes of `count` replies and hands them over whole, or the error that took their place. */
export class CollectedReplies implements ReplySink {
  readonly awaits: Awaited | undefined
  readonly #done: (replies: Buffer) => void
  readonly #failed: (error: HomeportError) => void
  #parts: Buffer[] = []
  #left: number

  constructor(
    count: number,
    done: (replies: Buffer) => void,
    failed: (error: HomeportError) => void,
    awaits?: Awaited,
  ) {
    this.awaits = awaits
    this.#left = count
    this.#done = done
    this.#failed = failed
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#parts.push(kept(chunk.subarray(start, end)))
    this.#left -= completed
    if (this.#left > 0) return
    const [only] = this.#parts
    this.#done(this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts))
  }

  fail(_count: number, error: HomeportError): void {
    this.#parts = []
    this.#failed(error)
  }
}

/** Passes one reply on to another sink and tells when it has come, or never will. */
export class WatchedReply implements ReplySink {
  readonly awaits: Awaited | undefined
  readonly #sink: ReplySink
  readonly #settled: () => void

  constructor(sink: ReplySink, awaits: Awaited | undefined, settled: () => void) {
    this.awaits = awaits
    this.#sink = sink
    this.#settled = settled
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    if (completed > 0) this.#settled()
    this.#sink.deliver(chunk, start, end, completed)
  }

  fail(count: number, error: HomeportError, partial: boolean): void {
    this.#settled()
    this.#sink.fail(count, error, partial)
  }
}
