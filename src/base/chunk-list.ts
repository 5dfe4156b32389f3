/**
 * Smaller chunks are copied into blocks. A `Buffer` of one byte takes hundreds of bytes of memory, which a limit on the data
 * would not notice.
 */
const SMALL_CHUNK_BYTES = 2_048
const MIN_BLOCK_BYTES = 512
const MAX_BLOCK_BYTES = 16_384

/** Collects bytes that arrive in chunks of any size, with memory in proportion to their number. */
export class ChunkList {
  #whole: Buffer[] = []
  /** The chunk that small ones are copied into. */
  #block: Buffer | undefined
  #usedBytes = 0
  #bytes = 0

  /** Length of all chunks together. */
  get bytes(): number {
    return this.#bytes
  }

  /** All bytes in their order, in fewer chunks than were added. */
  get chunks(): readonly Buffer[] {
    return this.#block ? [...this.#whole, this.#block.subarray(0, this.#usedBytes)] : this.#whole
  }

  /** Appends bytes, which the caller must not change afterwards. */
  add(chunk: Buffer): void {
    if (this.#bytes === 0 || chunk.length > SMALL_CHUNK_BYTES) {
      this.#closeBlock()
      this.#whole.push(chunk)
    } else {
      const block = this.#blockFor(chunk)
      this.#usedBytes += chunk.copy(block, this.#usedBytes)
    }
    this.#bytes += chunk.length
  }

  /** Drops everything. */
  clear(): void {
    this.#whole = []
    this.#block = undefined
    this.#usedBytes = 0
    this.#bytes = 0
  }

  #blockFor({ length }: Buffer): Buffer {
    const current = this.#block
    if (current && this.#usedBytes + length <= current.length) return current
    this.#closeBlock()
    const spare = Math.min(Math.max(this.#bytes, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES)
    this.#block = Buffer.allocUnsafeSlow(Math.max(spare, length))
    return this.#block
  }

  #closeBlock(): void {
    if (this.#block) this.#whole.push(this.#block.subarray(0, this.#usedBytes))
    this.#block = undefined
    this.#usedBytes = 0
  }
}
