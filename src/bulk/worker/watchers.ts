import type * as bulkAction from '../transactions/bulk-action.js'

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
