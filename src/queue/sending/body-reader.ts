import { unreachable } from '../../base/index.js'
import type { PlainBody } from './plain-response.js'

/** Finds the body of a response in the bytes that follow its head. */
export interface BodyReader {
  /**
   * Reads the next bytes.
   * @param bytes may be changed by the call
   * @param onData receives the next part of the body, once at most: a view of the bytes
   * @returns how many of the bytes belong to the response if it ends within them; `more` if it continues.
   */
  read(bytes: Buffer, onData: (part: Buffer) => void): number | 'more' | 'malformed'
}

/** A reader of a body with this frame. */
export function readerOf(body: PlainBody): BodyReader {
  switch (body.kind) {
    case 'length':
      return new LengthReader(body.bytes)
    case 'chunked':
      return new ChunkReader()
    default:
      return unreachable(body)
  }
}

class LengthReader implements BodyReader {
  #leftBytes: number

  constructor(bytes: number) {
    this.#leftBytes = bytes
  }

  read(bytes: Buffer, onData: (part: Buffer) => void): number | 'more' {
    const taken = Math.min(this.#leftBytes, bytes.length)
    this.#leftBytes -= taken
    if (taken > 0) onData(taken === bytes.length ? bytes : bytes.subarray(0, taken))
    return this.#leftBytes === 0 ? taken : 'more'
  }
}

/**
 * Position of the next byte within a chunked body (RFC 9112, section 7.1).
 *
 * ```
 *   size ─▶ (extension) ─▶ size end ─▶ data ─▶ data end ─▶ data feed ─▶ size
 *                              └─ 0 ─▶ line ─▶ (trailer) ─▶ trailer feed ─▶ line ─▶ last feed ─▶ end
 * ```
 *
 * - `size`, `extension`: up to the CR of their line.
 * - `size end`, `data feed`, `trailer feed`, `last feed`: the LF after a CR.
 * - `data`: bytes of the body. `data end`: the CR after them.
 * - `line`: the first byte of a trailer, or the CR of the last line.
 */
type Place =
  | 'size'
  | 'extension'
  | 'size end'
  | 'data'
  | 'data end'
  | 'data feed'
  | 'line'
  | 'trailer'
  | 'trailer feed'
  | 'last feed'
  | 'end'

const CR = 13
const LF = 10
const TAB = 9
const SPACE = 32
const SEMICOLON = 59
const DELETE = 127
/** Most digits of a chunk size, which may have leading zeros. */
const MAX_DIGITS = 1_024
/** Bytes of all trailers of a response together. */
const MAX_TRAILER_BYTES = 16_384

/**
 * Reads a chunked body and ignores chunk extensions and trailers. It moves the data of all chunks in a buffer together, in
 * place, and passes it on in one call. So a response of tiny chunks costs no more calls than one of large chunks.
 */
class ChunkReader implements BodyReader {
  #place: Place = 'size'
  /** Bytes left of the current chunk; while its size is read, the size so far. */
  #leftBytes = 0
  #digits = 0
  #trailerBytes = 0

  read(bytes: Buffer, onData: (part: Buffer) => void): number | 'more' | 'malformed' {
    let at = 0
    let dataEnd = 0
    let isMalformed = false
    while (at < bytes.length && this.#place !== 'end' && !isMalformed) {
      if (this.#place === 'data') {
        const taken = Math.min(this.#leftBytes, bytes.length - at)
        move(bytes, at, dataEnd, taken)
        dataEnd += taken
        at += taken
        this.#leftBytes -= taken
        if (this.#leftBytes === 0) this.#place = 'data end'
      } else isMalformed = !this.#take(bytes[at++] ?? 0)
    }
    if (isMalformed) return 'malformed'
    if (dataEnd > 0) onData(bytes.subarray(0, dataEnd))
    return this.#place === 'end' ? at : 'more'
  }

  /** Reads a byte outside of the data. @returns false if the byte is not allowed there */
  #take(byte: number): boolean {
    switch (this.#place) {
      case 'size':
        return this.#takeSize(byte)
      case 'extension':
        if (byte === CR) return this.#goTo('size end')
        // Of any length, as for undici and curl: a proxy that signs each chunk adds up to more than any small limit.
        return isOfText(byte)
      case 'size end':
        return byte === LF && this.#goTo(this.#leftBytes > 0 ? 'data' : 'line')
      case 'data end':
        return byte === CR && this.#goTo('data feed')
      case 'data feed':
        this.#digits = 0
        return byte === LF && this.#goTo('size')
      case 'line':
        return this.#goTo(byte === CR ? 'last feed' : 'trailer') && (byte === CR || this.#takeTrailer(byte))
      case 'trailer':
        return byte === CR ? this.#goTo('trailer feed') : this.#takeTrailer(byte)
      case 'trailer feed':
        return byte === LF && this.#goTo('line')
      case 'last feed':
        return byte === LF && this.#goTo('end')
      case 'data':
      case 'end':
        return false
      default:
        return unreachable(this.#place)
    }
  }

  #takeSize(byte: number): boolean {
    const digit = digitOf(byte)
    if (digit >= 0) {
      this.#leftBytes = this.#digits === 0 ? digit : this.#leftBytes * 16 + digit
      return ++this.#digits <= MAX_DIGITS && this.#leftBytes <= Number.MAX_SAFE_INTEGER
    }
    if (this.#digits === 0) return false
    if (byte === CR) return this.#goTo('size end')
    return (byte === SEMICOLON || byte === SPACE || byte === TAB) && this.#goTo('extension')
  }

  #takeTrailer(byte: number): boolean {
    return isOfText(byte) && ++this.#trailerBytes <= MAX_TRAILER_BYTES
  }

  #goTo(place: Place): true {
    this.#place = place
    return true
  }
}

/** Moves bytes to the left within a buffer. For a few bytes, a loop is faster than a native call. */
function move(bytes: Buffer, from: number, to: number, length: number): void {
  if (length > 32) bytes.copyWithin(to, from, from + length)
  else for (let at = 0; at < length; at++) bytes[to + at] = bytes[from + at] ?? 0
}

const isOfText = (byte: number): boolean => (byte >= SPACE && byte !== DELETE) || byte === TAB

/** The value of a hexadecimal digit; -1 for another byte. */
function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const letter = byte | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}
