/** So many are kept in mind; each is asked for within moments, when its delivery is answered. */
const MOST = 1_000

/** A run as callers name it. */
export interface RunName {
  readonly accountId: string
  readonly runId: string
}

/**
 * Runs whose programs have returned more than one request may bring. An SDK passes the refusal on as a failure like any
 * other, and the same return would be refused after each retry: so the delivery that it came from is not tried again.
 * Kept in memory: after a restart the return comes once more.
 */
export class RefusedReturns {
  /** When the return was refused, Unix milliseconds; the oldest first. */
  readonly #refusedAt = new Map<string, number>()

  /** The return of a run was refused. */
  add(run: RunName, at: number): void {
    this.#refusedAt.delete(keyOf(run))
    this.#refusedAt.set(keyOf(run), at)
    const [oldest] = this.#refusedAt.size > MOST ? this.#refusedAt.keys() : []
    if (oldest !== undefined) this.#refusedAt.delete(oldest)
  }

  /** Whether there is any, so that nobody else has to be asked which run is meant. */
  get isEmpty(): boolean {
    return this.#refusedAt.size === 0
  }

  /** Whether the return of a run was refused while an attempt was under way that began at this time. */
  hasSince(run: RunName, startedAt: number): boolean {
    return (this.#refusedAt.get(keyOf(run)) ?? Number.NEGATIVE_INFINITY) >= startedAt
  }
}

const keyOf = ({ accountId, runId }: RunName): string => `${accountId} ${runId}`
