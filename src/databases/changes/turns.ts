/**
 * A queue of work for each database: one task after the other, in the order of the calls. The data plane and the engines
 * must learn of commits in the order in which the store made them, or they would end with an older state.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs the work after all earlier work on the same database. If it fails, only its own caller gets the error. */
  take<Result>(databaseId: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(databaseId) ?? Promise.resolve()
    const turn = before.then(work)
    const settled = turn.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(databaseId, settled)
    void settled.then(() => {
      if (this.#last.get(databaseId) === settled) this.#last.delete(databaseId)
    })
    return turn
  }

  /** Waits for all work that was queued before this call. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}

/**
 * Databases whose engines clients must not reach for a moment: their passwords are being changed, or their data is being
 * replaced. Callers that ask for the engines wait until the hold is released.
 */
export class Holds {
  readonly #held = new Map<string, Promise<void>>()

  /** Holds a database until the work has settled. */
  async during<Result>(databaseId: string, work: () => Promise<Result>): Promise<Result> {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    this.#held.set(databaseId, held)
    try {
      return await work()
    } finally {
      if (this.#held.get(databaseId) === held) this.#held.delete(databaseId)
      release()
    }
  }

  /** Resolves when the database is not held; rejects with the reason of an aborted signal. */
  async released(databaseId: string, signal?: AbortSignal): Promise<void> {
    const held = this.#held.get(databaseId)
    if (held) await (signal ? Promise.race([held, aborted(signal)]) : held)
  }
}

/** Rejects when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
