/** What this process remembers of attempts: nothing of it is stored. */

/** Each entry is read within moments, when its delivery is answered; so few are enough. */
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

/**
 * Start times of the deliveries in flight. In memory, because the start of an attempt writes nothing. The entry of a
 * delivery that was dropped expires after the timeout of an attempt.
 */
export class InFlightDeliveries {
  readonly #since = new Map<number, number>()
  readonly #timeoutMs: number

  /** @param timeoutMs timeout of one attempt. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** An attempt of the message with this `messages.seq` begins. */
  begin(seq: number, now: number): void {
    this.#expire(now - this.#timeoutMs)
    // Delete first: the map stays ordered by start time.
    this.#since.delete(seq)
    this.#since.set(seq, now)
  }

  /** The attempt has ended. */
  end(seq: number): void {
    this.#since.delete(seq)
  }

  /** Start of the attempt in flight, Unix milliseconds; `undefined` if there is none. */
  since(seq: number): number | undefined {
    return this.#since.get(seq)
  }

  #expire(before: number): void {
    for (const [seq, since] of this.#since) {
      if (since >= before) return
      this.#since.delete(seq)
    }
  }
}
