import type { Clock, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/** An upload fails when nothing of it has arrived for this long: its client may hang without closing its connection. */
const STALL_MS = 5 * 60_000
/**
 * Consecutive checks without new bytes until an upload fails. One is not enough, because this process may have been paused.
 */
const SILENT_LOOKS = 2

/** Notices that nothing of a file arrives any more. */
export class Stall {
  readonly #clock: Clock
  readonly #received: () => number
  readonly #abort = new AbortController()
  #timer: Timer

  /** @param received bytes that have arrived so far. */
  constructor(clock: Clock, received: () => number) {
    this.#clock = clock
    this.#received = received
    this.#timer = this.#next(-1, 0)
  }

  /** Aborted when nothing has arrived for 5 to 7.5 minutes. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The error for the client then; undefined before. */
  get problem(): HomeportError | undefined {
    const reason = `nothing of the file has arrived for ${STALL_MS / 60_000} minutes`
    return this.signal.aborted ? new HomeportError('import_failed', { reason }) : undefined
  }

  end(): void {
    this.#timer.cancel()
  }

  #next(before: number, silentLooks: number): Timer {
    return this.#clock.after(STALL_MS / SILENT_LOOKS, () => {
      const received = this.#received()
      const silent = received === before ? silentLooks + 1 : 0
      if (silent === SILENT_LOOKS) this.#abort.abort()
      else this.#timer = this.#next(received, silent)
    })
  }
}
