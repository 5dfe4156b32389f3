import { waitFor } from '../support/index.js'
import { type Pace, think } from './pace.js'
import { isRefusal, type Repeat } from './queue-ledger-load.js'

/** Minutes, seconds and milliseconds. */
export const timeNow = (): string => new Date().toISOString().slice(14, 23)

/** Callers that repeat their actions through every fault, and how often each succeeded. */
export class Callers {
  readonly successes = new Map<string, number>()
  /** What failed, and why. */
  readonly failures: string[] = []
  readonly #deadlineMs: number
  readonly pace: Pace
  readonly #once = new Set<string>()
  #isOver = false

  /** @param deadlineMs the longest time that a caller may go without success. */
  constructor(deadlineMs: number, pace: Pace) {
    this.#deadlineMs = deadlineMs
    this.pace = pace
  }

  readonly repeat: Repeat = async (name, action, times = Number.POSITIVE_INFINITY) => {
    if (times < Number.POSITIVE_INFINITY) this.#once.add(name)
    this.successes.set(name, 0)
    for (let done = 0; done < times && !this.#isOver; ) {
      try {
        await action()
        done++
        this.successes.set(name, (this.successes.get(name) ?? 0) + 1)
      } catch (error) {
        if (isRefusal(error)) throw error
        this.failures.push(`${timeNow()} ${name}: ${error}`)
      }
      await think(this.pace)
    }
  }

  /** Resolves when every caller has had another success. */
  async allSucceed(): Promise<void> {
    const before = new Map(this.successes)
    const late = () =>
      [...before].filter(([name, count]) => !this.#once.has(name) && (this.successes.get(name) ?? 0) <= count)
    const condition = { what: 'a success of every caller', deadlineMs: this.#deadlineMs }
    await waitFor(() => late().length === 0, condition).catch((error: Error) => {
      throw new Error(`${error.message}; without success: ${late().map(([name]) => name)}`)
    })
  }

  end(): void {
    this.#isOver = true
  }
}
