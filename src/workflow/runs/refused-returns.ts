/** Few entries are enough: each one is read soon, when its delivery is answered. */
const MAX_ENTRIES = 1_000

/** Identifies a run for its callers. */
export interface RunName {
  readonly accountId: string
  readonly runId: string
}

/**
 * Runs whose program returned more than the body limit. The SDK reports the refusal as an ordinary failure, and every
 * retry would return the same, so the delivery is not retried. In memory only: after a restart one more attempt is made.
 */
export class RefusedReturns {
  /** Time of the refusal, Unix milliseconds; oldest first. */
  readonly #refusedAt = new Map<string, number>()

  /** Records that the return of a run was refused. */
  add(run: RunName, at: number): void {
    this.#refusedAt.delete(keyOf(run))
    this.#refusedAt.set(keyOf(run), at)
    const [oldest] = this.#refusedAt.size > MAX_ENTRIES ? this.#refusedAt.keys() : []
    if (oldest !== undefined) this.#refusedAt.delete(oldest)
  }

  /** Lets the caller skip a read of the store while there are no entries. */
  get isEmpty(): boolean {
    return this.#refusedAt.size === 0
  }

  /** Whether the return of a run was refused during the attempt that started at this time. */
  hasSince(run: RunName, startedAt: number): boolean {
    return (this.#refusedAt.get(keyOf(run)) ?? Number.NEGATIVE_INFINITY) >= startedAt
  }
}

const keyOf = ({ accountId, runId }: RunName): string => `${accountId} ${runId}`
