import { unreachable } from '../../base/index.js'
import type { PlainBody } from './plain-response.js'

/** Finds the body of a response in the bytes that follow its head. */
export interface BodyReader {
  /**
   * Reads the next bytes.
   * @param onData receives the parts of the body, which are views of the bytes.
   * @returns how many of the bytes belong to the response when it ends there; `more` when it goes on.
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
 * Where a body in chunks is (RFC 9112, section 7.1). All but `data` are lines.
 *
 * ```
 *   size ──▶ data ──▶ data end ──▶ size
 *     └─ 0 ──▶ trailers ──empty line──▶ (end)
 * ```
 */
type Place =
  | { readonly kind: 'size' }
  | { readonly kind: 'data'; readonly leftBytes: number }
  | { readonly kind: 'data end' }
  | { readonly kind: 'trailers'; readonly bytes: number }
  | { readonly kind: 'end' }

const SIZE: Place = { kind: 'size' }
const DATA_END: Place = { kind: 'data end' }
const END: Place = { kind: 'end' }

const LINE_FEED = 10
const SIZE_LINE = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t -~]*)?\r\n$/
const TRAILER_LINE = /^[!-9;-~]+:[\t -~]*\r\n$/
const EMPTY_LINE = '\r\n'
/** Bytes of a line, and of all trailers. */
const LONGEST_LINE = 4_096
const LONGEST_TRAILERS = 16_384

/** Reads a body in chunks. Extensions of chunks and trailers say nothing that is used. */
class ChunkReader implements BodyReader {
  #place: Place = SIZE
  /** The beginning of a line. */
  #begun = ''

  read(bytes: Buffer, onData: (part: Buffer) => void): number | 'more' | 'malformed' {
    let at = 0
    while (at < bytes.length) {
      const place = this.#place
      if (place.kind === 'data') at += this.#takeData(place.leftBytes, bytes.subarray(at), onData)
      else {
        const lineEnd = bytes.indexOf(LINE_FEED, at)
        const end = lineEnd < 0 ? bytes.length : lineEnd + 1
        this.#begun += bytes.toString('latin1', at, Math.min(end, at + LONGEST_LINE))
        if (this.#begun.length >= LONGEST_LINE) return 'malformed'
        at = end
        if (lineEnd >= 0 && !this.#takeLine(place)) return 'malformed'
      }
      if (this.#place.kind === 'end') return at
    }
    return 'more'
  }

  /** data → data, or → data end. @returns how many bytes it took */
  #takeData(leftBytes: number, bytes: Buffer, onData: (part: Buffer) => void): number {
    const taken = Math.min(leftBytes, bytes.length)
    this.#place = taken === leftBytes ? DATA_END : { kind: 'data', leftBytes: leftBytes - taken }
    onData(bytes.subarray(0, taken))
    return taken
  }

  /** @returns false for a line that must not be there */
  #takeLine(place: Exclude<Place, { kind: 'data' }>): boolean {
    const line = this.#begun
    this.#begun = ''
    const next = placeBehind(place, line)
    if (next) this.#place = next
    return next !== undefined
  }
}

function placeBehind(place: Exclude<Place, { kind: 'data' }>, line: string): Place | undefined {
  switch (place.kind) {
    case 'size': {
      const [, digits] = SIZE_LINE.exec(line) ?? []
      if (digits === undefined) return undefined
      const leftBytes = Number.parseInt(digits, 16)
      return leftBytes === 0 ? { kind: 'trailers', bytes: 0 } : { kind: 'data', leftBytes }
    }
    case 'data end':
      return line === EMPTY_LINE ? SIZE : undefined
    case 'trailers': {
      if (line === EMPTY_LINE) return END
      const bytes = place.bytes + line.length
      return TRAILER_LINE.test(line) && bytes <= LONGEST_TRAILERS ? { kind: 'trailers', bytes } : undefined
    }
    case 'end':
      return undefined
    default:
      return unreachable(place)
  }
}
