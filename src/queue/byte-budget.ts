import type { BudgetPart, BudgetStep } from './transactions/budget.js'

/** Looked at in one read, and deleted in one transaction; other traffic goes on between two. */
const READ_CHUNK = 2_000
const DELETE_CHUNK = 500

/** How a budget sees and deletes what it holds. */
export interface ByteBudgetDeps {
  /** Of what has finished the newest is kept, up to this much. */
  readonly keepBytes: number
  /** Measures the next older items before a number; what has not finished takes nothing. */
  readonly measure: (step: BudgetStep) => Promise<BudgetPart>
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
    let step: BudgetStep = { before: Number.MAX_SAFE_INTEGER, leftBytes: this.#deps.keepBytes, limit: READ_CHUNK }
    while (goesOn()) {
      const part = await this.#deps.measure(step)
      if (part.kind === 'beyond') return part.seq
      if (part.kind === 'fits') return undefined
      step = { before: part.before, leftBytes: part.leftBytes, limit: READ_CHUNK }
    }
    return undefined
  }
}
