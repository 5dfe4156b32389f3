import type { Socket } from 'node:net'
import { isLent } from '../resp/lent-memory.js'

const BLOCK_BYTES = 65_536
/** Blocks that are kept for the next writer that needs one; memory that has just been used is in the processor's cache. */
const MOST_SPARE_BLOCKS = 64
/** From this size on, passing a view on costs less than copying. */
const COPY_LIMIT_BYTES = 16_384

/**
 * Gathers what many senders write in one turn of the event loop into few system calls: small pieces are copied into
 * one block, large ones go by as views.
 */
export class CoalescingWriter {
  #block: Buffer = EMPTY
  /** First byte of the block that is not yet among `#parts`. */
  #from = 0
  #to = 0
  #parts: Buffer[] = []
  /** Blocks without room whose last part is among `#parts`. */
  #full: Buffer[] = []
  #bytes = 0

  /** Bytes that wait for `flush`. */
  get pendingBytes(): number {
    return this.#bytes
  }

  /** Adds the bytes [start, end); unless they are lent, they must not change until they are sent. */
  append(bytes: Buffer, start: number, end: number): void {
    const length = end - start
    this.#bytes += length
    if (length >= COPY_LIMIT_BYTES && !isLent(bytes)) {
      this.#closePart()
      this.#parts.push(bytes.subarray(start, end))
      return
    }
    for (let at = start; at < end; ) at = this.#copy(bytes, at, end)
  }

  /** Adds text in UTF-8. */
  appendText(text: string): void {
    const mostBytes = text.length * 3
    if (mostBytes >= COPY_LIMIT_BYTES) {
      const bytes = Buffer.from(text)
      this.append(bytes, 0, bytes.length)
      return
    }
    this.#reserve(mostBytes)
    const length = this.#block.write(text, this.#to)
    this.#to += length
    this.#bytes += length
  }

  /** Hands everything to the socket. */
  flush(socket: Socket): void {
    this.#closePart()
    const parts = this.#parts
    const last = parts.pop()
    if (!last) return
    const full = this.#full
    this.#parts = []
    this.#full = []
    this.#bytes = 0
    if (parts.length > 0) socket.cork()
    for (const part of parts) socket.write(part)
    socket.write(last, full.length > 0 ? (error) => error || spare(full) : undefined)
    if (parts.length > 0) socket.uncork()
    if (socket.writableLength === 0) this.#reuseBlock()
  }

  /** Forgets everything that was not flushed. */
  clear(): void {
    this.#parts = []
    this.#full = []
    this.#from = this.#to
    this.#bytes = 0
  }

  /** @returns how far the block had room. */
  #copy(bytes: Buffer, from: number, end: number): number {
    if (this.#to === this.#block.length) this.#reserve(1)
    const to = Math.min(end, from + this.#block.length - this.#to)
    bytes.copy(this.#block, this.#to, from, to)
    this.#to += to - from
    return to
  }

  #reserve(length: number): void {
    if (this.#block.length - this.#to >= length) return
    this.#closePart()
    if (this.#block.length > 0) this.#full.push(this.#block)
    this.#block = spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#from = 0
    this.#to = 0
  }

  #closePart(): void {
    if (this.#to > this.#from) this.#parts.push(this.#block.subarray(this.#from, this.#to))
    this.#from = this.#to
  }

  /** The operating system has taken a copy of all of it. */
  #reuseBlock(): void {
    this.#from = 0
    this.#to = 0
  }
}

const EMPTY = Buffer.alloc(0)
const spareBlocks: Buffer[] = []

/** The operating system has taken a copy of everything in these blocks. */
function spare(blocks: readonly Buffer[]): void {
  for (const block of blocks) if (spareBlocks.length < MOST_SPARE_BLOCKS) spareBlocks.push(block)
}
