import type { HomeportError } from '../../contract/errors/errors.js'
import type { Awaited, ReplySink } from './reply-sink.js'

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
