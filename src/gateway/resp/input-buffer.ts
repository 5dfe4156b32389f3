import { GatherMemory } from './gather-memory.js'
import { ChunkQueue, isLent, keep, type LentBytes } from './lent-memory.js'

/** Memory for an announced argument is limited to this multiple of the bytes that have arrived. */
const MAX_FORESEEN = 8
const SPARE_BYTES = 64

/**
 * Input of a client that the parser still needs: the current command, in the bytes [begin, end) of one buffer, and the
 * chunks behind it.
 *
 * A command that lies whole in one chunk stays there. One that is spread over chunks is gathered in a buffer that grows with
 * it. Bytes before `begin` are not overwritten before `release`, nor afterwards unless they are lent.
 */
export class InputBuffer {
  bytes: LentBytes = EMPTY
  /** First byte of the current command. Set it to a later byte to drop the bytes before. */
  begin = 0
  end = 0
  /** End of the part of `bytes` that may be written to. */
  #capacity = 0
  readonly #memory = new GatherMemory()
  readonly #chunks = new ChunkQueue()

  /** Number of held bytes. */
  get heldBytes(): number {
    return this.end - this.begin + this.#chunks.bytes
  }

  /** Whether there are chunks behind the current command. */
  get hasMore(): boolean {
    return this.#chunks.bytes > 0
  }

  /** Appends `length` bytes. */
  push(memory: LentBytes, length: number): void {
    if (this.heldBytes === 0) this.#replace(memory, length)
    else this.#chunks.push(memory.subarray(0, length))
  }

  /**
   * Continues with the next chunk, or takes as many bytes of it as the current command needs (`neededBytes`). `isRest`: the
   * command then ends.
   */
  takeChunk(neededBytes: number, isRest: boolean): void {
    const chunk = this.#chunks.first
    const taken = this.begin === this.end ? chunk.length : Math.min(chunk.length, neededBytes)
    if (this.begin === this.end) this.#replace(chunk, chunk.length)
    else {
      if (this.end + taken > this.#capacity) this.#grow(taken, neededBytes, isRest)
      chunk.copy(this.bytes, this.end, 0, taken)
      this.end += taken
    }
    this.#chunks.take(taken)
  }

  /** Drops everything. */
  clear(): void {
    this.#chunks.clear()
    this.#replace(EMPTY, 0)
  }

  /** Copies the held bytes if the memory of the last chunk will be read into again. */
  keep(neededBytes: number, isRest: boolean): void {
    this.#chunks.keepLast()
    if (!this.#isBorrowed) return
    if (this.begin === this.end) this.#replace(EMPTY, 0)
    else this.#grow(0, neededBytes, isRest)
  }

  /** Like `keep`, for the bytes from `start` on, which is before `begin`. @returns how far the bytes have moved left */
  keepFrom(start: number): number {
    this.#chunks.keepLast()
    if (!this.#isBorrowed) return 0
    this.bytes = keep(this.bytes.subarray(start, this.end))
    this.begin -= start
    this.end -= start
    this.#capacity = this.end
    return start
  }

  /** Lets other clients use memory that was left, because no frame in it is needed any more. */
  giveBack(): void {
    this.#memory.giveBack()
  }

  get #isBorrowed(): boolean {
    return !this.#memory.isCurrent(this.bytes) && isLent(this.bytes)
  }

  #replace(memory: LentBytes, length: number): void {
    this.#memory.leave()
    this.bytes = memory
    this.begin = 0
    this.end = length
    this.#capacity = length
  }

  /** Moves the current command to a buffer with space for `bytes` bytes more. */
  #grow(bytes: number, neededBytes: number, isRest: boolean): void {
    const grown = this.#memory.take(this.#space(bytes, neededBytes, isRest))
    this.bytes.copy(grown, 0, this.begin, this.end)
    this.bytes = grown
    this.#capacity = grown.length
    this.end -= this.begin
    this.begin = 0
  }

  /**
   * Size of the new buffer: twice the bytes that are held, so that the work stays linear. If the length of the rest of the
   * command is known, exactly that, up to `MAX_FORESEEN` times the bytes that have arrived.
   */
  #space(bytes: number, neededBytes: number, isRest: boolean): number {
    const arrived = this.end - this.begin + bytes
    if (!isRest) return 2 * arrived + SPARE_BYTES
    const known = this.end - this.begin + Math.max(bytes, neededBytes)
    return Math.min(known, MAX_FORESEEN * arrived) + SPARE_BYTES
  }
}

const EMPTY = Buffer.alloc(0)
