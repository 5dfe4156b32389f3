import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'

/** Chunks to look up at once. */
const CHUNKS_PER_LOOKUP = 64
/** A rate-limited action runs this many batches per second. */
const BATCHES_PER_SECOND = 10

/** A batch: items `from` (inclusive) to `to` (exclusive) of one chunk. */
export interface Batch {
  readonly chunk: number
  readonly from: number
  readonly to: number
}

/** Callbacks of a caller that waits for the end of an action. */
export interface Waiter {
  readonly resolve: (action: bulkAction.BulkActionRow) => void
  readonly reject: (error: Error) => void
}

/** A running action in memory: its next batches, its rate limit, and the callers that wait for its end. */
export class Job {
  readonly #store: Store
  #action: bulkAction.BulkActionRow
  #batches: Batch[] = []
  #inFlight = 0
  #nextChunk = 0
  #waiters: Waiter[] = []
  #readyAt = 0
  /** When its last batch started, Unix milliseconds. */
  #startedAt = 0
  #ended: bulkAction.BulkActionRow | undefined

  constructor(store: Store, action: bulkAction.BulkActionRow) {
    this.#store = store
    this.#action = action
  }

  /** The newest known row of the action. */
  get action(): bulkAction.BulkActionRow {
    return this.#action
  }

  /** Stores a newer row of the action. Older rows are ignored, because batches commit out of order. */
  update(action: bulkAction.BulkActionRow): void {
    const isNewer = bulkAction.decidedItems(action) >= bulkAction.decidedItems(this.#action)
    if (action.rate_per_second !== this.#action.rate_per_second) this.#readyAt = 0
    if (isNewer) this.#action = action
  }

  /** How long the next batch must wait for the rate limit. A clock that is set back ends the wait. */
  waitMs(now: number): number {
    return now < this.#startedAt ? 0 : Math.max(0, this.#readyAt - now)
  }

  /** Number of batches in flight. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Counts a batch that starts, and charges its items to the rate limit. */
  started(batch: Batch, now: number): void {
    this.#inFlight++
    const { rate_per_second: rate } = this.#action
    const readyAt = now + this.waitMs(now)
    this.#startedAt = now
    if (rate !== null) this.#readyAt = readyAt + ((batch.to - batch.from) * 1_000) / rate
  }

  /** Counts a batch that was decided or put back. */
  settled(): void {
    this.#inFlight--
    this.#answerIfOver()
  }

  /**
   * Ends the job of an action that is no longer running. Its waiters get the action when no batch is in flight: a batch may
   * have cancelled runs that other nodes deliver until they have dropped them.
   */
  end(action: bulkAction.BulkActionRow): void {
    this.#ended = action
    this.#answerIfOver()
  }

  #answerIfOver(): void {
    const ended = this.#ended
    if (ended && this.#inFlight === 0) this.settleWaiters((waiter) => waiter.resolve(ended))
  }

  /**
   * The next batch, of at most `most` items; `undefined` when every chunk has been handed out. Chunks are cut into
   * equal batches: a small remainder would cost a commit of its own. The rest of a chunk comes after a batch of the next
   * chunk, because two batches of one chunk cannot run side by side.
   */
  async next(most: number): Promise<Batch | undefined> {
    if (this.#batches.length === 0) await this.#loadChunks()
    const batch = this.#batches.shift()
    if (!batch) return undefined
    const { rate_per_second: rate } = this.#action
    const items = rate === null ? most : Math.min(most, Math.ceil(rate / BATCHES_PER_SECOND))
    const pieces = Math.ceil((batch.to - batch.from) / items)
    if (pieces <= 1) return batch
    const cut = batch.from + Math.ceil((batch.to - batch.from) / pieces)
    this.#batches.splice(rate === null ? 1 : 0, 0, { ...batch, from: cut })
    return { ...batch, to: cut }
  }

  async #loadChunks(): Promise<void> {
    const args = { actionSeq: this.#action.seq, from: this.#nextChunk, limit: CHUNKS_PER_LOOKUP }
    const chunks = await this.#store.run(bulkRead.openChunks, args)
    // Behind batches that were put back during the lookup.
    this.#batches.push(...chunks.map(({ chunk, items }) => ({ chunk, from: 0, to: items })))
    const last = chunks.at(-1)
    if (last) this.#nextChunk = last.chunk + 1
  }

  /**
   * Hands out again every chunk that is undecided in the store. Called when no batch is left although the action still runs:
   * the store has lost the commit of a batch. @returns the error to back off with.
   */
  startOver(): Error {
    this.#nextChunk = 0
    return new Error(`bulk action ${this.#action.action_id} has no batch left`)
  }

  /** Puts batches back at the front. */
  putBack(...batches: readonly Batch[]): void {
    this.#batches.unshift(...batches)
  }

  /** Resolves with the action when it is no longer running. */
  whenEnded(): Promise<bulkAction.BulkActionRow> {
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  /** Rejects the waiters with an error that says why the action is not finished now. */
  interrupt(reason: string): void {
    const { action_id: actionId } = this.#action
    this.settleWaiters((waiter) => waiter.reject(new HomeportError('bulk_action_interrupted', { actionId, reason })))
  }

  /** Settles every waiter once. */
  settleWaiters(how: (waiter: Waiter) => void): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) how(waiter)
  }
}

/** Why an action does not continue now, for its waiters. */
export const reasonOf = (error: unknown): string =>
  error instanceof HomeportError ? error.message : 'The server had an internal error.'

type BulkActionRow = bulkAction.BulkActionRow

/** Called with the action after each of its steps; with `undefined` when the worker stops. */
export type Watcher = (action: BulkActionRow | undefined) => void

/** Watchers by action. */
export class Watchers {
  readonly #byAction = new Map<number, Set<Watcher>>()

  /** Calls `watcher` after each step of this action until the returned function is called. */
  watch(seq: number, watcher: Watcher): () => void {
    const watchers = this.#byAction.get(seq) ?? new Set()
    this.#byAction.set(seq, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0) this.#byAction.delete(seq)
    }
  }

  /** Notifies the watchers of an action. */
  notify(action: BulkActionRow): void {
    for (const watcher of [...(this.#byAction.get(action.seq) ?? [])]) watcher(action)
  }

  /** Notifies all watchers that the worker stops. */
  stop(): void {
    for (const watchers of this.#byAction.values()) for (const watcher of [...watchers]) watcher(undefined)
  }
}
