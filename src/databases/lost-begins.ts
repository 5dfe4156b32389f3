import { isError } from '../contract/errors/errors.js'

/** A commit whose answer was lost may happen this much later: a paused PostgreSQL has it in its buffers. */
const KEPT_MS = 5 * 60_000

/**
 * Databases of which the store may say that work on them has begun, although nobody does it: the answer to the commit that
 * began it was lost.
 */
export class LostBegins {
  readonly #sinceMs = new Map<string, number>()

  /** Passes the outcome of a begin on, and notes the database when it is unknown. */
  async watch<Outcome>(databaseId: string, begin: Promise<Outcome>, nowMs: number): Promise<Outcome> {
    try {
      return await begin
    } catch (error) {
      if (isError(error, 'store_outcome_unknown')) this.#sinceMs.set(databaseId, nowMs)
      throw error
    }
  }

  /** Other work on the database has begun: the earlier one did not, or has ended. */
  forget(databaseId: string): void {
    this.#sinceMs.delete(databaseId)
  }

  /** The databases that were noted in the last minutes. */
  recent(nowMs: number): ReadonlySet<string> {
    for (const [databaseId, sinceMs] of this.#sinceMs) {
      if (Math.abs(nowMs - sinceMs) > KEPT_MS) this.#sinceMs.delete(databaseId)
    }
    return new Set(this.#sinceMs.keys())
  }
}
