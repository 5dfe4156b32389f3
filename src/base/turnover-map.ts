/** The map is copied after this many deletions, plus four for each entry that is left. */
const MIN_DELETIONS = 32
const DELETIONS_PER_ENTRY = 4

/**
 * A map whose entries come and go all the time, such as requests in flight.
 *
 * When a V8 `Map` has no space left for changes, it moves to a new table, and the old table points to the new one. Once a
 * full collection has promoted an old table to the old generation, it keeps the next table alive although nobody uses
 * it, that one keeps its successor, and each keeps the entries it had. So everything that passes through such a map
 * outlives all young collections, which then take twenty times as long. Copying the map ends the chain.
 */
export class TurnoverMap<Key, Value> {
  #entries = new Map<Key, Value>()
  #deletions = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value)
  }

  /** Returns whether there was such an entry. */
  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false
    if (++this.#deletions > MIN_DELETIONS + DELETIONS_PER_ENTRY * this.#entries.size) this.#copy()
    return true
  }

  /** In insertion order; entries that are set or deleted meanwhile may or may not appear. */
  keys(): IterableIterator<Key> {
    return this.#entries.keys()
  }

  /** As `keys`. */
  values(): IterableIterator<Value> {
    return this.#entries.values()
  }

  /** As `keys`. */
  entries(): IterableIterator<[Key, Value]> {
    return this.#entries.entries()
  }

  clear(): void {
    this.#entries = new Map()
    this.#deletions = 0
  }

  #copy(): void {
    this.#entries = new Map(this.#entries)
    this.#deletions = 0
  }
}
