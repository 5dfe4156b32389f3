/** Looked at in one read, and deleted in one transaction; other traffic goes on between two. */
const READ_CHUNK = 2_000
const DELETE_CHUNK = 500

/** How a budget sees and deletes what it holds. */
export interface ByteBudgetDeps {
  /** Of what has finished the newest is kept, up to this much. */
  readonly keepBytes: number
  /** Sizes of the next older items before a number, newest first; 0 for what has not finished. */
  readonly sizes: (step: { before: number; limit: number }) => Promise<readonly { seq: number; bytes: number }[]>
  /** Deletes what has finished among the next items after a number, up to another; answers where to go on. */
  readonly trim: (step: { after: number; upTo: number; limit: number }) => Promise<number | undefined>
}

/** Deletes the oldest of what has finished as long as there is more of it than fits a budget. */
export class ByteBudget {
  readonly #deps: ByteBudgetDeps

  constructor(deps: ByteBudgetDeps) {
    this.#deps = deps
  }

  /** Looks and deletes, in small steps, as long as `goesOn` says so. */
  async enforce(goesOn: () => boolean): Promise<void> {
    const upTo = await this.#firstBeyond(goesOn)
    if (upTo === undefined) return
    let after: number | undefined = 0
    while (after !== undefined && goesOn()) after = await this.#deps.trim({ after, upTo, limit: DELETE_CHUNK })
  }

  /** The newest item that does not fit any more. */
  async #firstBeyond(goesOn: () => boolean): Promise<number | undefined> {
    let left = this.#deps.keepBytes
    let before = Number.MAX_SAFE_INTEGER
    while (goesOn()) {
      const items = await this.#deps.sizes({ before, limit: READ_CHUNK })
      for (const { seq, bytes } of items) {
        left -= bytes
        if (left < 0) return seq
        before = seq
      }
      if (items.length < READ_CHUNK) return undefined
    }
    return undefined
  }
}
