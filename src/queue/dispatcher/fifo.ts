/**
 * First in, first out, without moving what remains. Items whose state has changed meanwhile, because they were dropped
 * or have ended, are passed over.
 */
export class Fifo<Item extends { readonly state: string }> {
  #items: (Item | undefined)[] = []
  #head = 0

  /** How many items there are, those counted that will be passed over. */
  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: Item): void {
    this.#items.push(item)
  }

  /** Takes the first item that is still in this state. */
  shiftAlive(state: Item['state']): Item | undefined {
    const item = this.peekAlive(state)
    if (item) this.#shift()
    return item
  }

  /** The first item that is still in this state, left where it is. */
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
