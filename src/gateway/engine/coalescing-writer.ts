import type { Socket } from 'node:net'
import { isKept, type KeptBytes, type LentBytes } from '../resp/lent-memory.js'

const BLOCK_BYTES = 65_536
/** Blocks that are kept for reuse: recently used memory is still in the processor's cache. */
const MAX_SPARE_BLOCKS = 64
/** From this size on, passing on a view costs less than copying. */
const COPY_LIMIT_BYTES = 16_384

/**
 * Combines the writes of many senders in one turn of the event loop into few system calls. It copies short ones into a
 * block and passes long ones on as views.
 */
export class CoalescingWriter {
  #block: Buffer = EMPTY
  /** First byte of the block that is not yet in `#queue`. */
  #from = 0
  #to = 0
  #queue: KeptBytes[] = []
  /** Full blocks whose last bytes are in `#queue`. */
  #full: Buffer[] = []
  #bytes = 0

  /** Bytes that wait for `flush`. */
  get pendingBytes(): number {
    return this.#bytes
  }

  /** Adds the bytes [start, end). Bytes that are not lent must not change until they are sent. */
  append(bytes: LentBytes, start: number, end: number): void {
    const length = end - start
    this.#bytes += length
    if (length >= COPY_LIMIT_BYTES && isKept(bytes)) {
      this.#endView()
      this.#queue.push(bytes.subarray(start, end))
      return
    }
    for (let at = start; at < end; ) at = this.#copy(bytes, at, end)
  }

  /** Adds text in UTF-8. */
  appendText(text: string): void {
    const maxBytes = text.length * 3
    if (maxBytes >= COPY_LIMIT_BYTES) {
      const bytes = Buffer.from(text)
      this.append(bytes, 0, bytes.length)
      return
    }
    this.#reserve(maxBytes)
    const length = this.#block.write(text, this.#to)
    this.#to += length
    this.#bytes += length
  }

  /** Writes everything to the socket. */
  flush(socket: Socket): void {
    this.#endView()
    const queue = this.#queue
    const last = queue.pop()
    if (!last) return
    const full = this.#full
    this.#queue = []
    this.#full = []
    this.#bytes = 0
    if (queue.length > 0) socket.cork()
    for (const bytes of queue) socket.write(bytes)
    socket.write(last, full.length > 0 ? (error) => error || keepForReuse(full) : undefined)
    if (queue.length > 0) socket.uncork()
    if (socket.writableLength === 0) this.#reuseBlock()
  }

  /** Drops everything that was not flushed. */
  clear(): void {
    this.#queue = []
    this.#full = []
    this.#from = this.#to
    this.#bytes = 0
  }

  /** Copies what fits into the block. @returns where the rest begins */
  #copy(bytes: LentBytes, from: number, end: number): number {
    if (this.#to === this.#block.length) this.#reserve(1)
    const to = Math.min(end, from + this.#block.length - this.#to)
    bytes.copy(this.#block, this.#to, from, to)
    this.#to += to - from
    return to
  }

  #reserve(length: number): void {
    if (this.#block.length - this.#to >= length) return
    this.#endView()
    if (this.#block.length > 0) this.#full.push(this.#block)
    this.#block = spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#from = 0
    this.#to = 0
  }

  #endView(): void {
    if (this.#to > this.#from) this.#queue.push(this.#block.subarray(this.#from, this.#to))
    this.#from = this.#to
  }

  /** Reuses the block. The operating system has copied all of it. */
  #reuseBlock(): void {
    this.#from = 0
    this.#to = 0
  }
}

const EMPTY = Buffer.alloc(0)
const spareBlocks: Buffer[] = []

/** Keeps blocks for reuse. The operating system has copied all of them. */
function keepForReuse(blocks: readonly Buffer[]): void {
  for (const block of blocks) if (spareBlocks.length < MAX_SPARE_BLOCKS) spareBlocks.push(block)
}
