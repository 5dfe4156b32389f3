import type { LentBytes } from '../resp/lent-memory.js'
import type { ReplySink } from './reply-sink.js'

/** Number of replies to a scrub: to RESET, and to the new login. */
export const SCRUB_REPLIES = 2

/** Checks both replies of a scrub: `+RESET`, then no error. */
export class ScrubCheck implements ReplySink {
  readonly #done: (clean: boolean) => void
  #text = ''
  #left = SCRUB_REPLIES

  constructor(done: (clean: boolean) => void) {
    this.#done = done
  }

  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    this.#text += chunk.toString('latin1', start, end)
    this.#left -= completed
    if (this.#left === 0) this.#done(/^\+RESET\r\n[*%]/.test(this.#text))
  }

  fail(): void {
    this.#done(false)
  }
}
