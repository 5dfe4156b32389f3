import { Fifo, Heap } from './collections.js'
import type { Entry } from './entry.js'

/**
 * A line of due messages: first in, first out, except that a priority gives a message an earlier or later place
 * (`priority.ts`). A line without priorities costs no more than a list.
 */
export class Line {
  readonly #plain = new Fifo<Entry>()
  #ranked: Heap<Entry> | undefined

  /** Number of messages, including those that will be skipped because their state has changed. */
  get size(): number {
    return this.#plain.size + (this.#ranked?.size ?? 0)
  }

  push(entry: Entry): void {
    if (entry.message.config.priority === undefined) this.#plain.push(entry)
    else {
      this.#ranked ??= new Heap(goesBefore)
      this.#ranked.push(entry)
    }
  }

  /** Removes and returns the first message that is still in this state. */
  shiftAlive(state: Entry['state']): Entry | undefined {
    const ranked = this.#firstRanked(state)
    if (!ranked) return this.#plain.shiftAlive(state)
    const plain = this.#plain.peekAlive(state)
    if (plain && !goesBefore(ranked, plain)) return this.#plain.shiftAlive(state)
    return this.#ranked?.pop()
  }

  /** Whether a message is still in this state. */
  hasAlive(state: Entry['state']): boolean {
    return this.#firstRanked(state) !== undefined || this.#plain.peekAlive(state) !== undefined
  }

  #firstRanked(state: Entry['state']): Entry | undefined {
    for (let first = this.#ranked?.peek(); first; first = this.#ranked?.peek()) {
      if (first.state === state) return first
      this.#ranked?.pop()
    }
    return undefined
  }
}

const goesBefore = (a: Entry, b: Entry): boolean => a.rank < b.rank || (a.rank === b.rank && a.seq < b.seq)
