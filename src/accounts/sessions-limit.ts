import type { Clock } from '../base/index.js'
import { HomeportError } from '../contract/errors.js'

/** Failed sign-ins of one address in one window; the next one has to wait for the window to end. */
export const MOST_FAILED_SIGN_INS = 10
/** Length of a window. */
export const SIGN_IN_WINDOW_MS = 60_000
/** Beyond this many addresses the oldest window is forgotten, so that memory stays bounded. */
const MOST_ADDRESSES = 10_000

interface Window {
  readonly endsAt: number
  readonly failures: number
}

/** Counts failed sign-ins by address. In memory: a key cannot be guessed anyway, this only keeps guessing cheap for us. */
export class FailedSignIns {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @throws HomeportError `sign_in_limit` while this address may not try. */
  check(ip: string): void {
    const window = this.#current(ip)
    if (!window || window.failures < MOST_FAILED_SIGN_INS) return
    const retryAfterSeconds = Math.ceil((window.endsAt - this.#clock.now()) / 1000)
    throw new HomeportError('sign_in_limit', { retryAfterSeconds })
  }

  /** Notes a failed sign-in. */
  note(ip: string): void {
    const { endsAt, failures } = this.#current(ip) ?? { endsAt: this.#clock.now() + SIGN_IN_WINDOW_MS, failures: 0 }
    this.#windows.set(ip, { endsAt, failures: failures + 1 })
    const [oldest] = this.#windows.keys()
    if (this.#windows.size > MOST_ADDRESSES && oldest !== undefined) this.#windows.delete(oldest)
  }

  #current(ip: string): Window | undefined {
    const window = this.#windows.get(ip)
    if (window && window.endsAt > this.#clock.now()) return window
    this.#windows.delete(ip)
    return undefined
  }
}
