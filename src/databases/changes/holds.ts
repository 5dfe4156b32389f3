/**
 * Databases whose engines must not be logged in to for a moment, because their passwords are being changed: whoever
 * asks where the engines are waits, and then logs in with the new ones.
 */
export class Holds {
  readonly #held = new Map<string, Promise<void>>()

  /** Holds a database back until the work has ended, well or not. */
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

  /** Resolves when the database is not held back. */
  async passed(databaseId: string): Promise<void> {
    await this.#held.get(databaseId)
  }
}
