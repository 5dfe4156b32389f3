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
  async untilReleased(databaseId: string, signal?: AbortSignal): Promise<void> {
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
