/** Limits for a JSON text, so that a small request cannot cause much work. */
export interface JsonLimits {
  /** Depth of nested lists and objects: the parser accepts any depth, but code that walks the value does not. */
  readonly levels: number
  /** Values of all kinds: each element of a list and each member of an object counts. */
  readonly values: number
  /** Members of objects in one element of the outermost list, or in the whole text if that is not a list. */
  readonly members: number
  /** Bytes of one string, which is always parsed in one go. */
  readonly text: number
}

/** The limit that a JSON text exceeds. */
export type ExceededLimit = keyof JsonLimits

/** Elements of an outermost list are parsed in chunks of up to this many values or bytes, about a millisecond of work. */
const CHUNK_VALUES = 4_000
const CHUNK_BYTES = 131_072

/**
 * After this many bytes of a string without an escape, the scan searches the next quote or backslash with `indexOf`. That is
 * many times as fast as a look at each byte, but to start a search costs as much as some ten bytes.
 */
const PLAIN_BYTES = 64

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const LIST = 0x5b
const END_OF_LIST = 0x5d
const OBJECT = 0x7b
const END_OF_OBJECT = 0x7d
const LAST_SPACE = 0x20

/**
 * Counts the values in a JSON text byte by byte, without parsing it, so that a text that would cost too much is refused
 * before it is parsed. The text need not be valid JSON: a parser creates at most twice as many values as are counted.
 */
export class JsonScan {
  readonly #json: Uint8Array
  readonly #limits: JsonLimits
  /** Positions of commas in the outermost list after which a new chunk starts. */
  readonly cuts: number[] = []
  #at = 0
  #isInString = false
  #stringStart = 0
  /** Positions of the quote and the backslash that were found last. */
  #quote = -1
  #backslash = -1
  #levels = 0
  #values = 0
  #members = 0
  /** The counts at the last comma of the outermost list, and at the last cut. */
  #membersBefore = 0
  #valuesAtCut = 0
  #outermost: 'none' | 'list' | 'other' | 'over' = 'none'

  constructor(json: Uint8Array, limits: JsonLimits) {
    this.#json = json
    this.#limits = limits
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#json.length
  }

  /** Whether the text is one list, whose elements can be parsed separately. */
  get isList(): boolean {
    return this.#outermost === 'over' && this.#levels === 0 && this.cuts.length > 0
  }

  /** Scans the next bytes. @returns the limit that the text exceeds in them, if any. */
  advance(bytes: number): ExceededLimit | undefined {
    const end = Math.min(this.#json.length, this.#at + bytes)
    while (this.#at < end) {
      if (this.#isInString) {
        this.#skipString(end)
        if (this.#at - this.#stringStart > this.#limits.text) return 'text'
      } else {
        const exceeded = this.#take(this.#json[this.#at] ?? 0)
        this.#at++
        if (exceeded) return exceeded
      }
    }
    return undefined
  }

  #skipString(end: number): void {
    const json = this.#json
    let at = this.#at
    let plainFrom = at
    while (at < end) {
      const byte = json[at]
      if (byte === QUOTE) {
        this.#isInString = false
        at++
        break
      }
      if (byte === BACKSLASH) {
        // A byte after a backslash never ends the string.
        at += 2
        plainFrom = at
      } else if (++at - plainFrom === PLAIN_BYTES) at = Math.min(this.#nextSpecial(at), end)
    }
    this.#at = at
  }

  /** Position of the next quote or backslash. Each byte is searched only once for each of the two. */
  #nextSpecial(at: number): number {
    if (this.#quote < at) this.#quote = this.#indexOf(QUOTE, at)
    if (this.#backslash < at) this.#backslash = this.#indexOf(BACKSLASH, at)
    return Math.min(this.#quote, this.#backslash)
  }

  #indexOf(byte: number, at: number): number {
    const { buffer, byteOffset, byteLength } = this.#json
    const found = Buffer.from(buffer, byteOffset, byteLength).indexOf(byte, at)
    return found < 0 ? byteLength : found
  }

  #take(byte: number): ExceededLimit | undefined {
    if (byte <= LAST_SPACE) return undefined
    // Bytes after the end of the outermost value: not valid JSON, and not parsed in chunks.
    if (this.#outermost === 'over') this.#outermost = 'other'
    if (this.#outermost === 'none') this.#outermost = byte === LIST ? 'list' : 'other'
    switch (byte) {
      case QUOTE:
        this.#isInString = true
        this.#stringStart = this.#at
        return this.#levels === 0 ? this.#value() : undefined
      case LIST:
      case OBJECT:
        this.#levels++
        return this.#levels > this.#limits.levels ? 'levels' : this.#value()
      case END_OF_LIST:
      case END_OF_OBJECT:
        this.#levels--
        if (this.#levels === 0 && this.#outermost === 'list') this.#outermost = byte === END_OF_LIST ? 'over' : 'other'
        return undefined
      case COMMA:
        return this.#comma()
      case COLON:
        this.#members++
        return this.#members - this.#membersBefore > this.#limits.members ? 'members' : undefined
      default:
        return undefined
    }
  }

  #value(): ExceededLimit | undefined {
    this.#values++
    return this.#values > this.#limits.values ? 'values' : undefined
  }

  #comma(): ExceededLimit | undefined {
    if (this.#levels === 1 && this.#outermost === 'list') {
      this.#membersBefore = this.#members
      const from = this.cuts.at(-1) ?? 0
      if (this.#values - this.#valuesAtCut >= CHUNK_VALUES || this.#at - from >= CHUNK_BYTES) {
        this.cuts.push(this.#at)
        this.#valuesAtCut = this.#values
      }
    }
    return this.#value()
  }
}
