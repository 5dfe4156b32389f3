import { StringDecoder } from 'node:string_decoder'
import type { LentBytes } from '../resp/lent-memory.js'

/** The encoding of strings in an answer (reference redis 4.4). */
export type ReplyEncoding = 'plain' | 'base64'

/** Encodes the bytes of a long string piece by piece, as the inside of a JSON string. */
export interface StringPieces {
  /** The text of these bytes, except for a rest that depends on the next bytes. */
  piece(bytes: LentBytes): string
  /** The text of the rest, after the last bytes. */
  rest(): string
}

/** Makes the encoder for a string. */
export function stringPieces(encoding: ReplyEncoding): StringPieces {
  return encoding === 'base64' ? new Base64Pieces() : new TextPieces()
}

const BASE64_GROUP_BYTES = 3

/** Length of `bytes` bytes in base64, characters. */
export const base64Length = (bytes: number): number => 4 * Math.ceil(bytes / BASE64_GROUP_BYTES)

/** Encodes base64: three bytes become four characters, so up to two bytes wait for the next piece. */
class Base64Pieces implements StringPieces {
  #left = Buffer.alloc(0)

  piece(bytes: LentBytes): string {
    const all = this.#left.length === 0 ? bytes : Buffer.concat([this.#left, bytes])
    const whole = all.length - (all.length % BASE64_GROUP_BYTES)
    this.#left = Buffer.from(all.subarray(whole))
    return all.toString('base64', 0, whole)
  }

  rest(): string {
    return this.#left.toString('base64')
  }
}

/** Encodes UTF-8 text. The bytes of a character may be spread over two pieces. */
class TextPieces implements StringPieces {
  readonly #decoder = new StringDecoder('utf8')

  piece(bytes: LentBytes): string {
    return escaped(this.#decoder.write(bytes))
  }

  rest(): string {
    return escaped(this.#decoder.end())
  }
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
