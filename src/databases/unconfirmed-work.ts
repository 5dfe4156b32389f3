import { isError } from '../contract/errors/errors.js'

/** A commit whose answer was lost may happen this much later: a paused PostgreSQL has it in its buffers. */
const KEPT_MS = 5 * 60_000

/**
 * Work that may have begun in the store although nobody carries it out, because the answer to the commit that began it was
 * lost. It is identified by its database, or by a value that distinguishes it from other work on the same database.
 */
export class UnconfirmedWork<Work = string> {
  readonly #sinceMs = new Map<Work, number>()

  /** Passes the outcome of a begin on, and notes the work when it is unknown. */
  async watch<Outcome>(work: Work, begin: Promise<Outcome>, nowMs: number): Promise<Outcome> {
    try {
      return await begin
    } catch (error) {
      if (isError(error, 'store_outcome_unknown')) this.#sinceMs.set(work, nowMs)
      throw error
    }
  }

  /**
   * Forgets earlier work with the same identity, because new work has begun: the earlier one did not begin, or has ended.
   */
  forget(work: Work): void {
    this.#sinceMs.delete(work)
  }

  /** The work noted in the last 5 minutes. */
  recent(nowMs: number): ReadonlySet<Work> {
    for (const [work, sinceMs] of this.#sinceMs) {
      if (Math.abs(nowMs - sinceMs) > KEPT_MS) this.#sinceMs.delete(work)
    }
    return new Set(this.#sinceMs.keys())
  }
}

/** Settles work that may have begun although the answer to the commit was lost. */
export interface SettlesUnconfirmed {
  /** Rolls this work back, or completes it. May be repeated. */
  settleUnconfirmed(): Promise<void>
}
