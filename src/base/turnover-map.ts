/** So many entries go, and four times as many as are left, before the map is made anew. */
const GONE_AT_LEAST = 32
const GONE_PER_ENTRY = 4

/**
 * A map whose entries come and go all the time, as requests in flight do.
 *
 * When a `Map` of V8 has no room left for changes, it goes on in a new table, and the old one points to that. An old
 * table that a full collection has moved among the long-lived objects therefore keeps the next one alive although nobody
 * uses it, that one the one after it, and each of them what was in the map when it was left: everything that passes
 * through such a map outlives all young collections, which then take twenty times as long. A copy of the map ends the
 * chain.
 */
export class TurnoverMap<Key, Value> {
  #entries = new Map<Key, Value>()
  #gone = 0

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

  /** Answers whether there was such an entry. */
  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false
    if (++this.#gone > GONE_AT_LEAST + GONE_PER_ENTRY * this.#entries.size) this.#renew()
    return true
  }

  /** In the order in which they were set; what is set or deleted meanwhile may be met or not. */
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
    this.#gone = 0
  }

  #renew(): void {
    this.#entries = new Map(this.#entries)
    this.#gone = 0
  }
}
