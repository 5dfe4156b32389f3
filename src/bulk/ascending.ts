import { operations } from '../store/index.js'

const { ascending } = operations.bulkSelect

/** Numbers of runs that lie so near to each other are sorted together: some ten thousand take a few milliseconds. */
const RANGE = 32_768

/** Lets everybody else go first. */
export function othersFirst(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Numbers that come in any order, and more than once. However many they are, nobody waits for all of them to be sorted. */
export class Ascending {
  readonly #ranges = new Map<number, number[]>()

  add(seqs: readonly number[]): void {
    for (const seq of seqs) {
      const range = Math.floor(seq / RANGE)
      const known = this.#ranges.get(range)
      if (known) known.push(seq)
      else this.#ranges.set(range, [seq])
    }
  }

  get isEmpty(): boolean {
    return this.#ranges.size === 0
  }

  /** The first of them, each once, in their order. */
  async take(most = Number.POSITIVE_INFINITY): Promise<number[]> {
    const taken: number[] = []
    let sorted = 0
    for (const range of ascending([...this.#ranges.keys()])) {
      if (taken.length >= most) break
      const seqs = ascending(this.#ranges.get(range) ?? [])
      for (const [index, seq] of seqs.entries()) if (seq !== seqs[index - 1]) taken.push(seq)
      sorted += seqs.length
      if (sorted < RANGE) continue
      sorted = 0
      await othersFirst()
    }
    return taken.slice(0, most)
  }
}
