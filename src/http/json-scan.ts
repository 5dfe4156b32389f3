/** What a JSON text may ask of whoever reads it. */
export interface JsonLimits {
  /** Lists and objects in each other: the parser takes any depth, but whatever walks the value afterwards does not. */
  readonly levels: number
  /** Values of all kinds, counting each element of a list and each member of an object. */
  readonly values: number
  /** Members of objects in one element of the outermost list, or in the whole text when that is no list. */
  readonly members: number
  /** Bytes of one text: parsed at a stretch, whatever is done with the rest. */
  readonly text: number
}

/** Which limit a JSON text crosses. */
export type Crossed = keyof JsonLimits

/** Elements of an outermost list are parsed together up to so many values and so many bytes: about a millisecond's work. */
const PIECE_VALUES = 4_000
const PIECE_BYTES = 131_072

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
 * Counts what stands in a JSON text, byte by byte and without parsing it, so that what would be too much work is refused
 * before the work begins. The JSON need not be valid: a parser
 * would make at most twice as many values of it as are counted.
 */
export class JsonScan {
  readonly #json: Uint8Array
  readonly #limits: JsonLimits
  /** Commas of the outermost list behind which a new piece begins. */
  readonly cuts: number[] = []
  #at = 0
  #inText = false
  #textStart = 0
  #levels = 0
  #values = 0
  #members = 0
  /** What had been counted at the last comma of the outermost list, and at the last cut. */
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

  /** Whether the text is one list, whose elements may be parsed apart from each other. */
  get isList(): boolean {
    return this.#outermost === 'over' && this.#levels === 0 && this.cuts.length > 0
  }

  /** Looks at the next bytes. @returns the limit that the text crosses in them. */
  advance(bytes: number): Crossed | undefined {
    const end = Math.min(this.#json.length, this.#at + bytes)
    while (this.#at < end) {
      if (this.#inText) {
        this.#passText(end)
        if (this.#at - this.#textStart > this.#limits.text) return 'text'
      } else {
        const crossed = this.#take(this.#json[this.#at] ?? 0)
        this.#at++
        if (crossed) return crossed
      }
    }
    return undefined
  }

  #passText(end: number): void {
    const json = this.#json
    let at = this.#at
    while (at < end) {
      const byte = json[at]
      if (byte === QUOTE) {
        this.#inText = false
        at++
        break
      }
      // The byte behind a backslash ends no text, whatever it is.
      at += byte === BACKSLASH ? 2 : 1
    }
    this.#at = at
  }

  #take(byte: number): Crossed | undefined {
    if (byte <= LAST_SPACE) return undefined
    // Something behind the end of the outermost value: no valid JSON, and nothing to be parsed in pieces.
    if (this.#outermost === 'over') this.#outermost = 'other'
    if (this.#outermost === 'none') this.#outermost = byte === LIST ? 'list' : 'other'
    switch (byte) {
      case QUOTE:
        this.#inText = true
        this.#textStart = this.#at
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

  #value(): Crossed | undefined {
    this.#values++
    return this.#values > this.#limits.values ? 'values' : undefined
  }

  #comma(): Crossed | undefined {
    if (this.#levels === 1 && this.#outermost === 'list') {
      this.#membersBefore = this.#members
      const from = this.cuts.at(-1) ?? 0
      if (this.#values - this.#valuesAtCut >= PIECE_VALUES || this.#at - from >= PIECE_BYTES) {
        this.cuts.push(this.#at)
        this.#valuesAtCut = this.#values
      }
    }
    return this.#value()
  }
}
