import type { Store } from '../../store/index.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'

/** How many open chunks are looked up at once. */
const CHUNKS_AHEAD = 64
/** A limited action works in portions of this time. */
const BATCHES_PER_SECOND = 10

/** Items of one chunk that are worked on together. */
export interface Batch {
  readonly chunk: number
  readonly from: number
  readonly to: number
}

/** What a waiting caller is told. */
export interface Waiter {
  readonly resolve: (action: bulkAction.BulkActionRow) => void
  readonly reject: (error: Error) => void
}

/** A running action as the worker holds it: which batches come next, when they may, and who waits for its end. */
export class Job {
  readonly #store: Store
  #action: bulkAction.BulkActionRow
  #batches: Batch[] = []
  #inFlight = 0
  #nextChunk = 0
  #waiters: Waiter[] = []
  #readyAt = 0

  constructor(store: Store, action: bulkAction.BulkActionRow) {
    this.#store = store
    this.#action = action
  }

  /** The action as it was seen last. */
  get action(): bulkAction.BulkActionRow {
    return this.#action
  }

  /** Takes over the new state of the action. An older state does not replace a newer one. */
  saw(action: bulkAction.BulkActionRow): void {
    const isNewer = bulkAction.decidedItems(action) >= bulkAction.decidedItems(this.#action)
    if (action.rate_per_second !== this.#action.rate_per_second) this.#readyAt = 0
    if (isNewer) this.#action = action
  }

  /** When the next batch may be worked on, Unix milliseconds: an action may have a limit of items a second. */
  get readyAt(): number {
    return this.#readyAt
  }

  /** How many batches have been begun and not ended. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** A batch is worked on: the next one waits for as long as the limit allots to the items of this one. */
  begun(batch: Batch, now: number): void {
    this.#inFlight++
    const { rate_per_second: rate } = this.#action
    if (rate !== null) this.#readyAt = Math.max(this.#readyAt, now) + ((batch.to - batch.from) * 1_000) / rate
  }

  /** A batch that had been begun is decided, or was put back. */
  over(): void {
    this.#inFlight--
  }

  /**
   * The next batch, of at most that many items; `undefined` when every chunk has been handed out. Chunks are cut into
   * equal batches: a small rest would cost a commit of its own.
   */
  async next(most: number): Promise<Batch | undefined> {
    if (this.#batches.length === 0) await this.#lookAhead()
    const batch = this.#batches.shift()
    if (!batch) return undefined
    const { rate_per_second: rate } = this.#action
    const items = rate === null ? most : Math.min(most, Math.ceil(rate / BATCHES_PER_SECOND))
    const pieces = Math.ceil((batch.to - batch.from) / items)
    if (pieces <= 1) return batch
    const cut = batch.from + Math.ceil((batch.to - batch.from) / pieces)
    this.putBack({ ...batch, from: cut })
    return { ...batch, to: cut }
  }

  async #lookAhead(): Promise<void> {
    const args = { actionSeq: this.#action.seq, from: this.#nextChunk, limit: CHUNKS_AHEAD }
    const chunks = await this.#store.run(bulkRead.openChunks, args)
    // Behind those that were put back meanwhile.
    this.#batches.push(...chunks.map(({ chunk, items }) => ({ chunk, from: 0, to: items })))
    const last = chunks.at(-1)
    if (last) this.#nextChunk = last.chunk + 1
  }

  /** Puts batches back in front: they are what comes next. */
  putBack(...batches: readonly Batch[]): void {
    this.#batches.unshift(...batches)
  }

  /** Resolves with the action when it is no longer running. */
  ended(): Promise<bulkAction.BulkActionRow> {
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  /** Answers everybody who waits; they do not wait any longer. */
  answer(how: (waiter: Waiter) => void): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) how(waiter)
  }
}

type BulkActionRow = bulkAction.BulkActionRow

/** Told of an action after each of its steps; with `undefined` when the worker stops. */
export type Watcher = (action: BulkActionRow | undefined) => void

/** Callbacks to call when an action makes progress, by action. */
export class Watchers {
  readonly #byAction = new Map<number, Set<Watcher>>()

  /** Calls `watcher` after each step of the action of this number, until the returned function is called. */
  watch(seq: number, watcher: Watcher): () => void {
    const watchers = this.#byAction.get(seq) ?? new Set()
    this.#byAction.set(seq, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0) this.#byAction.delete(seq)
    }
  }

  tell(action: BulkActionRow): void {
    for (const watcher of [...(this.#byAction.get(action.seq) ?? [])]) watcher(action)
  }

  /** Tells everybody that nothing more will come for now. */
  stop(): void {
    for (const watchers of this.#byAction.values()) for (const watcher of [...watchers]) watcher(undefined)
  }
}
