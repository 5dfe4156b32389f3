import { type Clock, codeOf, pause, systemClock, TasksByKey } from '../../base/index.js'

const MAX_ATTEMPTS = 10
/** Deadlocked transactions start again at different times, so that they do not meet again. */
const DEADLOCK_PAUSE_MS = { from: 5, to: 50 }

const DEADLOCK = '40P01'
const SERIALIZATION_FAILURE = '40001'

/** What `Retries` is built from. */
export interface RetryDeps {
  readonly clock: Clock
  /** A number from 0 up to, not including, 1. */
  readonly random: () => number
}

/**
 * Runs transactions again that PostgreSQL rolled back because they conflicted with others. Retries of one operation run
 * one after the other, because transactions that conflicted would conflict again if they ran together. Different operations
 * do not wait for each other.
 */
export class Retries {
  readonly #deps: RetryDeps
  /** Retries, by their operation. */
  readonly #turns = new TasksByKey()

  constructor(deps: RetryDeps = { clock: systemClock, random: Math.random }) {
    this.#deps = deps
  }

  /** Runs `attempt`, and again after a conflict, ten times at most. Rejects with the error of the last attempt. */
  run<Result>(operation: string, attempt: () => Promise<Result>): Promise<Result> {
    return attempt().catch((error: unknown) => this.#again(operation, attempt, error))
  }

  async #again<Result>(operation: string, attempt: () => Promise<Result>, first: unknown): Promise<Result> {
    let error = first
    for (let attempts = 1; attempts < MAX_ATTEMPTS && isConflict(error); attempts++) {
      if (codeOf(error) === DEADLOCK) await this.#pause()
      try {
        return await this.#turns.take(operation, attempt)
      } catch (failure) {
        error = failure
      }
    }
    throw error
  }

  #pause(): Promise<void> {
    const { from, to } = DEADLOCK_PAUSE_MS
    return pause(this.#deps.clock, from + this.#deps.random() * (to - from))
  }
}

/** Whether the transaction was rolled back because of a conflict with another one. */
function isConflict(error: unknown): boolean {
  const code = codeOf(error)
  return code === SERIALIZATION_FAILURE || code === DEADLOCK
}
