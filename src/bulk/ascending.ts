import { othersFirst } from '../base/index.js'
import { operations } from '../store/index.js'

const { ascending } = operations.bulkSelect

const WORD_BITS = 32
/** Numbers of runs that lie so near to each other share a piece of memory, a bit for each: half a KiB. */
const RANGE = 4_096
const WORDS = RANGE / WORD_BITS

/**
 * Numbers that come in any order, and more than once. They are held as bits, which have an order by themselves, and are
 * so few objects that the collector of garbage has next to nothing to move.
 */
export class Ascending {
  readonly #ranges = new Map<number, Uint32Array>()

  add(seqs: ArrayLike<number>): void {
    for (let index = 0; index < seqs.length; index++) this.#note(seqs[index] ?? 0)
  }

  #note(seq: number): void {
    const range = Math.floor(seq / RANGE)
    const known = this.#ranges.get(range)
    const words = known ?? new Uint32Array(WORDS)
    if (!known) this.#ranges.set(range, words)
    const bit = seq - range * RANGE
    const word = Math.floor(bit / WORD_BITS)
    words[word] = (words[word] ?? 0) | (1 << (bit % WORD_BITS))
  }

  get isEmpty(): boolean {
    return this.#ranges.size === 0
  }

  /** All of them in their order, each once, as many at a time as are read in a fraction of a millisecond. */
  async *sorted(): AsyncGenerator<number[]> {
    let together: number[] = []
    for (const range of ascending([...this.#ranges.keys()])) {
      readBits(this.#ranges.get(range) ?? new Uint32Array(), range * RANGE, together)
      if (together.length < RANGE) continue
      yield together
      together = []
      await othersFirst()
    }
    yield together
  }
}

/** Appends the number of each bit that is set, counted from `first`. */
function readBits(words: Uint32Array, first: number, into: number[]): void {
  for (let word = 0; word < words.length; word++) {
    for (let rest = words[word] ?? 0; rest !== 0; rest &= rest - 1) {
      into.push(first + word * WORD_BITS + WORD_BITS - 1 - Math.clz32(rest & -rest))
    }
  }
}
