import type { Entry, EntryState } from './entry.js'

/** First in, first out, without moving what remains. Entries that were dropped meanwhile are passed over. */
export class Fifo {
  #items: (Entry | undefined)[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  push(entry: Entry): void {
    this.#items.push(entry)
  }

  shift(): Entry | undefined {
    const entry = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return entry
  }

  /** The first entry that is still in this state. */
  shiftAlive(state: EntryState): Entry | undefined {
    while (this.size > 0) {
      const entry = this.shift()
      if (entry?.state === state) return entry
    }
    return undefined
  }
}
