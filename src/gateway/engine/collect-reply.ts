import type { HomeportError } from '../../contract/errors/errors.js'
import { kept } from '../resp/lent-memory.js'
import type { Awaited, ReplySink } from './reply-sink.js'

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
