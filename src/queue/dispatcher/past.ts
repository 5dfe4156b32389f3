import type { Place } from './entry.js'

/** So many attempts are kept in mind at least, and never more than twice as many. */
const GENERATION = 50_000

/**
 * Attempts that are over, of messages that came into memory by a load. Where the store answers over many connections, a
 * load may bring a message before its publisher has been answered; then it may be over by the time it is offered.
 */
export class Past {
  readonly #generation: number
  /** When the attempt was due, by the number of the message: that tells an attempt from a later one. */
  #newer = new Map<number, number>()
  #older: ReadonlyMap<number, number> = new Map()

  constructor(generation = GENERATION) {
    this.#generation = generation
  }

  add({ seq, nextAt }: Place): void {
    if (this.#newer.size >= this.#generation) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(seq, nextAt)
  }

  has({ seq, nextAt }: Place): boolean {
    return (this.#newer.get(seq) ?? this.#older.get(seq)) === nextAt
  }
}
