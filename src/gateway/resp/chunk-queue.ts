import { copied } from './lent-memory.js'

const EMPTY = Buffer.alloc(0)

/** Bytes of a client in the pieces that they came in, which wait for those before them. */
export class ChunkQueue {
  #chunks: Buffer[] = []
  /** Those before it are used up. */
  #first = 0
  #bytes = 0

  /** Bytes of all chunks. */
  get bytes(): number {
    return this.#bytes
  }

  /** The chunk that is next. */
  get first(): Buffer {
    return this.#chunks[this.#first] ?? EMPTY
  }

  /** Adds a chunk behind the others; only the last one may be lent. */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** Removes so many bytes of the first chunk, at most all of it. */
  take(bytes: number): void {
    const { first } = this
    this.#bytes -= bytes
    if (bytes < first.length) this.#chunks[this.#first] = first.subarray(bytes)
    else this.#dropFirst()
  }

  /** Copies what is lent. */
  own(): void {
    const last = this.#chunks.length - 1
    if (last >= 0) this.#chunks[last] = copied(this.#chunks[last] ?? EMPTY)
  }

  /** Forgets everything. */
  clear(): void {
    this.#chunks = []
    this.#first = 0
    this.#bytes = 0
  }

  #dropFirst(): void {
    if (++this.#first < this.#chunks.length) this.#chunks[this.#first - 1] = EMPTY
    else this.clear()
  }
}
