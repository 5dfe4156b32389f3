import type { Clock, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/** Time after which an upload fails of which nothing has arrived: its client may hang without closing its connection. */
const STALL_MS = 5 * 60_000
/** Nothing has arrived at this many looks in a row: at one of them, this process may just have been paused. */
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

  /** What to answer, if so. */
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
