import { othersFirst } from '../base/index.js'
import { operations } from '../store/index.js'

const { ascending } = operations.bulkSelect

/** Numbers of runs that lie so near to each other are sorted together: some ten thousand take a few milliseconds. */
const RANGE = 16_384

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

  /** All of them in their order, each once, as many at a time as are sorted in some milliseconds. */
  async *sorted(): AsyncGenerator<number[]> {
    let together: number[] = []
    for (const range of ascending([...this.#ranges.keys()])) {
      const seqs = ascending(this.#ranges.get(range) ?? [])
      for (let index = 0; index < seqs.length; index++) {
        const seq = seqs[index]
        if (seq !== undefined && seq !== seqs[index - 1]) together.push(seq)
      }
      if (together.length < RANGE) continue
      yield together
      together = []
      await othersFirst()
    }
    yield together
  }
}
