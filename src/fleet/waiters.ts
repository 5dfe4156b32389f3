import type { Clock } from '../base/index.js'

/** When to stop waiting. */
export interface WaitLimit {
  /** `onPass` words the rejection. */
  readonly deadline?: { readonly afterMs: number; readonly onPass: () => Error }
  readonly signal?: AbortSignal | undefined
}

/** Promises that wait for a condition, which is looked at when their owner says that something has changed. */
export class Waiters {
  readonly #clock: Clock
  /** The looks of those who wait: each settles its own promise if it can. */
  readonly #waiting = new Set<() => boolean>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Looks at every condition. Call after each change. */
  look(): void {
    for (const look of [...this.#waiting]) look()
  }

  /**
   * Resolves with the first answer of `check` that is not undefined; rejects with what it throws, when the deadline
   * passes, or with the signal's reason. Looks at once, so that what is already true costs no turn.
   */
  wait<Value>(check: () => Value | undefined, limit: WaitLimit): Promise<Value> {
    return new Promise((resolve, reject) => {
      const { deadline, signal } = limit
      const leave = (settle: () => void): true => {
        this.#waiting.delete(look)
        timer?.cancel()
        signal?.removeEventListener('abort', abort)
        settle()
        return true
      }
      /** Answers whether it has settled. */
      const look = (): boolean => {
        try {
          const value = check()
          return value === undefined ? false : leave(() => resolve(value))
        } catch (error) {
          return leave(() => reject(error))
        }
      }
      const abort = (): void => void leave(() => reject(signal?.reason))
      const timer = deadline && this.#clock.after(deadline.afterMs, () => leave(() => reject(deadline.onPass())))
      if (signal?.aborted) return abort()
      if (look()) return
      signal?.addEventListener('abort', abort)
      this.#waiting.add(look)
    })
  }
}
