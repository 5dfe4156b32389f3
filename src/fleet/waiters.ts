import type { Clock } from '../base/index.js'

/** When to stop waiting. */
export interface WaitLimit {
  /** `onTimeout` words the rejection. */
  readonly deadline?: { readonly afterMs: number; readonly onTimeout: () => Error }
  readonly signal?: AbortSignal | undefined
}

/** Promises that wait for conditions. Their owner calls `check` after each change. */
export class Waiters {
  readonly #clock: Clock
  /** Checks of the waiting promises; each settles its promise if it can. */
  readonly #waiting = new Set<() => boolean>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Checks every condition. Call it after each change. */
  check(): void {
    for (const attempt of [...this.#waiting]) attempt()
  }

  /**
   * Resolves with the first result of `check` that is not undefined. Rejects with what it throws, at the deadline, or
   * with the reason of the signal. Checks at once, so a condition that holds costs no turn of the event loop.
   */
  wait<Value>(check: () => Value | undefined, limit: WaitLimit): Promise<Value> {
    return new Promise((resolve, reject) => {
      const { deadline, signal } = limit
      const leave = (settle: () => void): true => {
        this.#waiting.delete(attempt)
        timer?.cancel()
        signal?.removeEventListener('abort', abort)
        settle()
        return true
      }
      /** @returns whether it has settled. */
      const attempt = (): boolean => {
        try {
          const value = check()
          return value === undefined ? false : leave(() => resolve(value))
        } catch (error) {
          return leave(() => reject(error))
        }
      }
      const abort = (): void => void leave(() => reject(signal?.reason))
      const timer = deadline && this.#clock.after(deadline.afterMs, () => leave(() => reject(deadline.onTimeout())))
      if (signal?.aborted) return abort()
      if (attempt()) return
      signal?.addEventListener('abort', abort)
      this.#waiting.add(attempt)
    })
  }
}
