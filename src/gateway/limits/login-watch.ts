import type { Clock } from '../../base/index.js'

/** Number of failures without a delay, for people who mistype a password. */
const FREE_FAILURES = 5
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 5_000
/** Longest wait; an attempt that would have to wait longer is refused. */
const MAX_WAIT_MS = 10_000
/** Failures are forgotten after this time without another. */
const FORGET_AFTER_MS = 15 * 60_000
const MAX_ENTRIES = 10_000

/** When an attempt may be made: now, when `turn` resolves, or only after `afterSeconds`. */
export type LoginTurn =
  | { readonly kind: 'now' }
  | { readonly kind: 'later'; readonly turn: Promise<void> }
  | { readonly kind: 'refused'; readonly afterSeconds: number }

const NOW: LoginTurn = { kind: 'now' }

interface Entry {
  readonly failures: number
  readonly failedAtMs: number
  /** When the next attempt may be made. */
  readonly freeAtMs: number
}

/**
 * Slows down clients that guess passwords. After a few consecutive failures every attempt of the same origin (an address at
 * a database) waits for its turn. The time between turns doubles with every further failure, up to a limit, so any number of
 * connections guess no faster than one. A success forgets all failures.
 *
 * Memory is bounded: only the last few thousand origins with failures are remembered.
 */
export class LoginWatch {
  readonly #clock: Clock
  /** Oldest failure first. */
  readonly #entries = new Map<string, Entry>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Number of remembered origins. */
  get size(): number {
    return this.#entries.size
  }

  /** Assigns a turn to an attempt of this origin. */
  turn(origin: string): LoginTurn {
    const entry = this.#recent(origin)
    if (!entry) return NOW
    const nowMs = this.#clock.now()
    const waitMs = Math.max(0, entry.freeAtMs - nowMs)
    if (waitMs > MAX_WAIT_MS) return { kind: 'refused', afterSeconds: Math.ceil((waitMs - MAX_WAIT_MS) / 1000) }
    this.#entries.set(origin, { ...entry, freeAtMs: nowMs + waitMs + delayMs(entry.failures) })
    if (waitMs === 0) return NOW
    return { kind: 'later', turn: new Promise((resolve) => void this.#clock.after(waitMs, resolve)) }
  }

  /** Records that an attempt of this origin has failed. */
  failed(origin: string): void {
    const nowMs = this.#clock.now()
    const { failures = 0, freeAtMs = nowMs } = this.#recent(origin) ?? {}
    this.#entries.delete(origin)
    this.#entries.set(origin, {
      failures: failures + 1,
      failedAtMs: nowMs,
      freeAtMs: Math.max(freeAtMs, nowMs + delayMs(failures + 1)),
    })
    if (this.#entries.size > MAX_ENTRIES) this.#forgetOldest()
  }

  /** Records that an attempt of this origin has succeeded. */
  succeeded(origin: string): void {
    this.#entries.delete(origin)
  }

  #recent(origin: string): Entry | undefined {
    const entry = this.#entries.get(origin)
    const agoMs = entry ? this.#clock.now() - entry.failedAtMs : 0
    // A failure in the future means that the clock was set back. Its turns would be just as far in the future.
    if (agoMs > FORGET_AFTER_MS || agoMs < 0) {
      this.#entries.delete(origin)
      return undefined
    }
    return entry
  }

  #forgetOldest(): void {
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}

function delayMs(failures: number): number {
  if (failures <= FREE_FAILURES) return 0
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(failures - FREE_FAILURES - 1, 16))
}
