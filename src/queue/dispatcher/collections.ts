/**
 * First in, first out, without moving the remaining items. Skips items whose state has changed, because they were
 * dropped or have ended.
 */
export class Fifo<Item extends { readonly state: string }> {
  #items: (Item | undefined)[] = []
  #head = 0

  /** Number of items, including those that will be skipped. */
  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: Item): void {
    this.#items.push(item)
  }

  /** Removes and returns the first item that is still in this state. */
  shiftAlive(state: Item['state']): Item | undefined {
    const item = this.peekAlive(state)
    if (item) this.#shift()
    return item
  }

  /** Returns the first item that is still in this state. */
  peekAlive(state: Item['state']): Item | undefined {
    for (; this.size > 0; this.#shift()) {
      const item = this.#items[this.#head]
      if (item?.state === state) return item
    }
    return undefined
  }

  #shift(): void {
    this.#items[this.#head++] = undefined
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
  }
}

/** A binary heap: `peek` is the first item in a given order. */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #items: T[] = []

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  /** Number of items. */
  get size(): number {
    return this.#items.length
  }

  /** The first item; it stays in the heap. */
  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as T
      if (!this.#isBefore(item, above)) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  /** Removes and returns the first item. */
  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (items.length > 0 && last !== undefined) this.#sink(last)
    return first
  }

  /** Moves `item` down from the top to its position. */
  #sink(item: T): void {
    const items = this.#items
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && this.#isBefore(items[child + 1] as T, items[child] as T)) child++
      if (!this.#isBefore(items[child] as T, item)) break
      items[at] = items[child] as T
      at = child
    }
    items[at] = item
  }
}
