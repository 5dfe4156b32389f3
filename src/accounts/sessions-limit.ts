import type { Clock } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/** Failed sign-ins of one address for one account in one window; what fails then is told to wait for the window to end. */
export const MOST_FAILED_SIGN_INS = 10
/** Length of a window. */
export const SIGN_IN_WINDOW_MS = 60_000
/** Beyond this many pairs of address and account the oldest window is forgotten, so that memory stays bounded. */
const MOST_PAIRS = 10_000

interface Window {
  readonly endsAt: number
  readonly failures: number
}

/**
 * Counts failed sign-ins by address and account. In memory: a key cannot be guessed anyway, this only keeps guessing cheap
 * for us. It is asked after a sign-in has failed: whoever has the right key is never kept out by others, who may fail
 * behind the same proxy or for the same account.
 */
export class FailedSignIns {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Notes a failed sign-in.
   * @throws HomeportError `sign_in_limit` when there were too many before.
   */
  note(ip: string, email: string): void {
    const pair = `${ip} ${email.trim().toLowerCase()}`
    this.#refuse(this.#current(pair))
    this.#count(pair)
  }

  #refuse(window: Window | undefined): void {
    if (!window || window.failures < MOST_FAILED_SIGN_INS) return
    const retryAfterSeconds = Math.ceil((window.endsAt - this.#clock.now()) / 1000)
    throw new HomeportError('sign_in_limit', { retryAfterSeconds })
  }

  #count(pair: string): void {
    const { endsAt, failures } = this.#current(pair) ?? { endsAt: this.#clock.now() + SIGN_IN_WINDOW_MS, failures: 0 }
    this.#windows.set(pair, { endsAt, failures: failures + 1 })
    const [oldest] = this.#windows.keys()
    if (this.#windows.size > MOST_PAIRS && oldest !== undefined) this.#windows.delete(oldest)
  }

  #current(pair: string): Window | undefined {
    const window = this.#windows.get(pair)
    if (window && window.endsAt > this.#clock.now()) return window
    this.#windows.delete(pair)
    return undefined
  }
}
