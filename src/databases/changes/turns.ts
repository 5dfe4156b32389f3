/**
 * Turns of one database: pieces of work that go one after the other, in the order they were asked for. What the store
 * has committed is shown to the data plane and the engines in the same order, or an older state would come last.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Does the work when its turn has come. A failure is the caller's alone; the next turn comes all the same. */
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

  /** Waits for everything that has been asked for so far. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}
