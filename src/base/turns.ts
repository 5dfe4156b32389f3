/** A queue of work for each key, such as a database: one task after the other, in the order of the calls. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs the work after all earlier work on the same key. If it fails, only its own caller gets the error. */
  take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const turn = before.then(work)
    const settled = turn.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(key, settled)
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    })
    return turn
  }

  /** Waits for all work that was queued before this call. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}
