/** How strings are written: as they are, or in base64 (reference redis 4.4). */
export type ReplyEncoding = 'plain' | 'base64'

/** A reply as the REST API tells it: JSON text of its value, or the text of an error. */
export type RestReply = { readonly json: string } | { readonly error: string }

const CR = 13
const PLUS = 0x2b
const MINUS = 0x2d
const COLON = 0x3a
const DOLLAR = 0x24
const STAR = 0x2a

/** Turns whole RESP2 replies into JSON, digit by digit, without going through numbers of JavaScript. */
export class ReplyReader {
  readonly #bytes: Buffer
  readonly #encoding: ReplyEncoding
  #at = 0

  constructor(bytes: Buffer, encoding: ReplyEncoding) {
    this.#bytes = bytes
    this.#encoding = encoding
  }

  /** Where the next reply begins. */
  get position(): number {
    return this.#at
  }

  /** Reads one reply. */
  next(): RestReply {
    const type = this.#bytes[this.#at]
    if (type === MINUS) return { error: this.#line() }
    if (type !== PLUS) return { json: this.#value() }
    const text = this.#line()
    // The plain OK is exempt from the encoding, but only here: inside of an array clients decode it.
    return { json: text === 'OK' ? '"OK"' : this.#text(text) }
  }

  /** Reads the head of an array: how many replies follow, or `undefined` when the next reply is no array. */
  arrayLength(): number | undefined {
    if (this.#bytes[this.#at] !== STAR) return undefined
    return Number(this.#line())
  }

  #value(): string {
    switch (this.#bytes[this.#at]) {
      case COLON:
        return this.#line()
      case DOLLAR:
        return this.#bulk()
      case STAR:
        return this.#array()
      default:
        return this.#text(this.#line())
    }
  }

  #array(): string {
    const length = Number(this.#line())
    if (length < 0) return 'null'
    let json = '['
    for (let i = 0; i < length; i++) json += i === 0 ? this.#value() : `,${this.#value()}`
    return `${json}]`
  }

  #bulk(): string {
    const length = Number(this.#line())
    if (length < 0) return 'null'
    const start = this.#at
    const end = start + length
    this.#at = end + 2
    if (this.#encoding === 'base64') return `"${this.#bytes.toString('base64', start, end)}"`
    return JSON.stringify(this.#bytes.toString('utf8', start, end))
  }

  #text(text: string): string {
    return JSON.stringify(this.#encoding === 'base64' ? Buffer.from(text).toString('base64') : text)
  }

  /** What follows the type byte on this line. */
  #line(): string {
    const start = this.#at + 1
    let end = start
    while (this.#bytes[end] !== CR && end < this.#bytes.length) end++
    this.#at = end + 2
    return this.#bytes.toString('utf8', start, end)
  }
}
