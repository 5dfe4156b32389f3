import { operations, type Store } from '../store/index.js'

/** How many open chunks are looked up at once. */
const CHUNKS_AHEAD = 64

/** Items of one chunk that are worked on together. */
export interface Part {
  readonly chunk: number
  readonly from: number
  readonly to: number
}

/** What a waiting caller is told. */
export interface Waiter {
  readonly resolve: (action: operations.bulk.BulkActionRow) => void
  readonly reject: (error: Error) => void
}

/** A running action as the worker holds it: which parts come next, and who waits for its end. */
export class Job {
  readonly seq: number
  readonly actionId: string
  readonly #store: Store
  #parts: Part[] = []
  #nextChunk = 0
  #waiters: Waiter[] = []

  constructor(store: Store, action: operations.bulk.BulkActionRow) {
    this.#store = store
    this.seq = action.seq
    this.actionId = action.action_id
  }

  /** The next part; `undefined` when every chunk has been handed out. */
  async next(): Promise<Part | undefined> {
    if (this.#parts.length === 0) await this.#lookAhead()
    return this.#parts.shift()
  }

  async #lookAhead(): Promise<void> {
    const args = { actionSeq: this.seq, from: this.#nextChunk, limit: CHUNKS_AHEAD }
    const chunks = await this.#store.run(operations.bulkRead.openChunks, args)
    this.#parts = chunks.map(({ chunk, items }) => ({ chunk, from: 0, to: items }))
    const last = chunks.at(-1)
    if (last) this.#nextChunk = last.chunk + 1
  }

  /** Puts parts back in front: they are what comes next. */
  putBack(...parts: readonly Part[]): void {
    this.#parts.unshift(...parts)
  }

  /** Resolves with the finished action. */
  finished(): Promise<operations.bulk.BulkActionRow> {
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  /** Answers everybody who waits; they do not wait any longer. */
  answer(how: (waiter: Waiter) => void): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) how(waiter)
  }
}
