import { JOINED_AT_ONCE_BYTES } from '../resp/join-in-slices.js'
import type { HeldMemory } from './held-memory.js'

/** Lines of MONITOR are cut at this length, bytes. Engines show a value of megabytes with up to four times its bytes. */
const MAX_LINE_BYTES = 65_536
const CUT = Buffer.from('..."\r\n')
const PLUS = 0x2b

/** A frame that is too long to be joined in one turn of the event loop, in its pieces. */
export interface LongFrame {
  readonly pieces: readonly Buffer[]
  /** Length of all pieces together, bytes. */
  readonly length: number
}

/** A whole frame. */
export type Frame = Buffer | LongFrame

/** Gathers the pieces of a frame until it is whole. */
export class GatheredFrame {
  /** Counts the gathered bytes. */
  memory: HeldMemory | undefined
  /** Whether simple strings are lines of MONITOR, and are cut. */
  cutsLines = false
  #pieces: Buffer[] = []
  #bytes = 0
  #isCut = false

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /** Takes the next piece. @returns the frame, when the piece `ends` it */
  take(piece: Buffer, ends: boolean): Frame | undefined {
    const fitting = this.#fitting(piece)
    if (fitting.length < piece.length) this.#isCut = true
    if (fitting.length > 0) this.#pieces.push(fitting)
    if (ends) return this.#whole(this.#bytes + fitting.length)
    this.#bytes += fitting.length
    this.memory?.add(fitting.length)
    return undefined
  }

  #fitting(piece: Buffer): Buffer {
    const first = this.#pieces[0] ?? piece
    // More may have been gathered before the client began to monitor.
    const fits = Math.max(0, MAX_LINE_BYTES - this.#bytes)
    return this.cutsLines && first[0] === PLUS ? piece.subarray(0, fits) : piece
  }

  #whole(length: number): Frame {
    const pieces = this.#isCut ? [...this.#pieces, CUT] : this.#pieces
    this.memory?.add(-this.#bytes)
    this.#pieces = []
    this.#bytes = 0
    this.#isCut = false
    return length > JOINED_AT_ONCE_BYTES ? { pieces, length } : Buffer.concat(pieces)
  }
}
