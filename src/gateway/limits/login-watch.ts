import type { Clock } from '../../base/index.js'

/** Whoever mistypes a password a few times is not kept waiting. */
const FREE_FAILURES = 5
const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 5_000
/** Whoever would have to wait for longer is sent away. */
const LONGEST_WAIT_MS = 10_000
/** Without a failure for so long, those of the past are forgotten. */
const FORGET_AFTER_MS = 15 * 60_000
const MOST_ENTRIES = 10_000

/** When an attempt may be made: now, when `turn` resolves, or not before `afterSeconds`. */
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
 * Slows down those who guess passwords. After a few failures in a row every attempt of the same origin (an address at a
 * database) has to wait for its turn, and the turns lie apart for twice as long with every further failure, up to a
 * bound: many connections at once guess no faster than one. A success forgets all failures.
 *
 * Memory is bounded: of the origins that fail, the last few thousand are remembered.
 */
export class LoginWatch {
  readonly #clock: Clock
  /** Oldest failure first. */
  readonly #entries = new Map<string, Entry>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many origins are remembered. */
  get size(): number {
    return this.#entries.size
  }

  /** Gives an attempt of this origin its turn. */
  turn(origin: string): LoginTurn {
    const entry = this.#recent(origin)
    if (!entry) return NOW
    const nowMs = this.#clock.now()
    const waitMs = Math.max(0, entry.freeAtMs - nowMs)
    if (waitMs > LONGEST_WAIT_MS) return { kind: 'refused', afterSeconds: Math.ceil((waitMs - LONGEST_WAIT_MS) / 1000) }
    this.#entries.set(origin, { ...entry, freeAtMs: nowMs + waitMs + delayMs(entry.failures) })
    if (waitMs === 0) return NOW
    return { kind: 'later', turn: new Promise((resolve) => void this.#clock.after(waitMs, resolve)) }
  }

  /** An attempt of this origin was wrong. */
  failed(origin: string): void {
    const nowMs = this.#clock.now()
    const { failures = 0, freeAtMs = nowMs } = this.#recent(origin) ?? {}
    this.#entries.delete(origin)
    this.#entries.set(origin, {
      failures: failures + 1,
      failedAtMs: nowMs,
      freeAtMs: Math.max(freeAtMs, nowMs + delayMs(failures + 1)),
    })
    if (this.#entries.size > MOST_ENTRIES) this.#forgetOldest()
  }

  /** An attempt of this origin was right. */
  succeeded(origin: string): void {
    this.#entries.delete(origin)
  }

  #recent(origin: string): Entry | undefined {
    const entry = this.#entries.get(origin)
    if (entry && this.#clock.now() - entry.failedAtMs > FORGET_AFTER_MS) {
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
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(failures - FREE_FAILURES - 1, 16))
}
