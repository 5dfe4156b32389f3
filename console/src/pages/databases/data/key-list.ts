/** A search for keys: repeats SCAN on demand, collects the results in a tree, and notifies listeners of changes. */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { ScanStep } from '../../../../../src/contract/databases/keys/key-store.js'
import { KeyTree } from './key-tree.js'

/** COUNT of one SCAN: for some more keys, and for all keys. */
const NEXT_COUNT = 1_000
const ALL_COUNT = 5_000
/** `more` ends once it has found this many keys, */
const ENOUGH_FOUND = 200
/** or has searched this many: a mistyped pattern must not search for minutes. */
const ENOUGH_SEARCHED = 50_000
/** The most names in memory; a narrower pattern finds the others. */
const MAX_LISTED = 1_000_000
/** How often listeners are notified while a search runs, milliseconds. */
const NOTIFY_EVERY_MS = 300

/** Longest time that grouping blocks the page at a stretch, milliseconds. */
const SLICE_MS = 12

/** The state of a search. `full`: it holds the maximum number of keys, and there may be more. */
export type SearchState = 'searching' | 'paused' | 'done' | 'full' | 'failed'

/** One step of SCAN from a cursor. */
export type ScanFrom = (cursor: string, count: number) => Promise<ScanStep>

/** A search with its results. */
export class KeyList {
  readonly #scan: ScanFrom
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  #tree: KeyTree
  #grouping: KeyTree | undefined
  /** Number of changes to the tree by callers, not by the search. */
  #changes = 0
  #cursor: string | undefined = '0'
  #state: SearchState = 'paused'
  #searched = 0
  #error: Error | undefined
  #version = 0
  #notifiedAt = 0
  #isStopped = false

  /** @param now the time in milliseconds, for the intervals of notifications and pauses. */
  constructor(scan: ScanFrom, separator: string, now: () => number = () => performance.now()) {
    this.#scan = scan
    this.#now = now
    this.#tree = new KeyTree(separator)
  }

  get tree(): KeyTree {
    return this.#tree
  }

  get state(): SearchState {
    return this.#state
  }

  /** Approximate number of searched keys. */
  get searched(): number {
    return this.#searched
  }

  /** Why the last search failed. The next one continues at the same place. */
  get error(): Error | undefined {
    return this.#error
  }

  /** Changes with every change; for `useSyncExternalStore`. */
  readonly version = (): number => this.#version

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Searches until it has found some more keys, or has searched many. */
  more(): Promise<void> {
    const found = this.#tree.count + ENOUGH_FOUND
    const searched = this.#searched + ENOUGH_SEARCHED
    return this.#search(NEXT_COUNT, () => this.#tree.count >= found || this.#searched >= searched)
  }

  /** Searches until all keys are found, or until `stop`. */
  all(): Promise<void> {
    return this.#search(ALL_COUNT, () => false)
  }

  /** Ends the search after its present SCAN. */
  stop(): void {
    this.#isStopped = true
  }

  /**
   * Groups the keys by another separator; selected keys stay selected. The page stays usable meanwhile, and shows the old
   * groups until the new ones are complete. A later call ends an earlier one.
   */
  async regroup(separator: string): Promise<void> {
    const from = this.#tree
    const to = new KeyTree(separator)
    this.#grouping = from.separator === separator ? undefined : to
    this.#notify()
    if (!this.#grouping) return
    const changes = this.#changes
    let pausedAt = this.#now()
    // Names that the search adds meanwhile come last in this loop.
    for (const name of from.names) {
      to.add([name])
      if (from.isSelected(name)) to.selectNames([name], true)
      if (this.#now() - pausedAt < SLICE_MS) continue
      await new Promise((resolve) => setTimeout(resolve))
      pausedAt = this.#now()
      if (this.#grouping !== to) return
    }
    if (this.#changes !== changes) adopt(to, from)
    this.#tree = to
    this.#grouping = undefined
    this.#notify()
  }

  /** Whether the keys are being grouped by another separator. */
  get isGrouping(): boolean {
    return this.#grouping !== undefined
  }

  add(name: KeyName): void {
    this.change((tree) => tree.add([name]))
  }

  remove(names: Iterable<KeyName>): void {
    this.change((tree) => tree.remove(names))
  }

  /** Changes the tree, such as its selection. */
  change(work: (tree: KeyTree) => void): void {
    work(this.#tree)
    this.#changes++
    this.#notify()
  }

  async #search(count: number, isEnough: () => boolean): Promise<void> {
    if (this.#state === 'searching') return
    this.#isStopped = false
    this.#error = undefined
    this.#become('searching')
    try {
      while (this.#cursor !== undefined && !this.#isStopped && !this.#isFull) {
        const { cursor, names } = await this.#scan(this.#cursor, count)
        this.#cursor = cursor
        this.#searched += count
        this.#tree.add(names)
        if (isEnough()) break
        if (this.#now() - this.#notifiedAt >= NOTIFY_EVERY_MS) this.#notify()
      }
      this.#become(this.#cursor === undefined ? 'done' : this.#isFull ? 'full' : 'paused')
    } catch (error) {
      this.#error = error instanceof Error ? error : new Error(String(error))
      this.#become('failed')
    }
  }

  get #isFull(): boolean {
    return this.#tree.count >= MAX_LISTED
  }

  #become(state: SearchState): void {
    this.#state = state
    this.#notify()
  }

  #notify(): void {
    this.#version++
    this.#notifiedAt = this.#now()
    for (const listener of this.#listeners) listener()
  }
}

/** Makes a tree have the keys and the selection of another. */
function adopt(to: KeyTree, from: KeyTree): void {
  to.remove([...to.names].filter((name) => !from.has(name)))
  to.selectNames(
    [...to.selected].filter((name) => !from.isSelected(name)),
    false,
  )
  to.selectNames(
    [...from.selected].filter((name) => !to.isSelected(name)),
    true,
  )
}
