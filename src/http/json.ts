import { yieldToEventLoop } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

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

/**
 * What the JSON of a request may hold. Reading as much takes some ten milliseconds of processor time, most of it in
 * slices; 10,000 messages of a batch with 20 headers each, or 100,000 ids, stay within.
 */
const JSON_LIMITS: JsonLimits = { levels: 64, values: 250_000, members: 20_000, text: 1_048_576 }
/** For operations that take bodies of messages, which may be as long as the request. */
const WITH_LONG_TEXTS: JsonLimits = { ...JSON_LIMITS, text: Number.POSITIVE_INFINITY }

const WHAT: Readonly<Record<Crossed, string>> = {
  levels: 'nests lists and objects too deep',
  values: 'holds too much',
  members: 'has too many members in its objects, or in those of one element of its list',
  text: 'has a text that is longer than any here',
}
const UNITS: Readonly<Record<Crossed, string>> = {
  levels: 'levels',
  values: 'JSON values',
  members: 'members',
  text: 'bytes',
}

/** Bodies up to this size are read at a stretch, in a few milliseconds. */
const SMALL_BYTES = 262_144
/** So much of a larger one is decoded in one slice. */
const SLICE_BYTES = 1_048_576

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads the JSON of a request body; a long one in slices, between which everybody else has a turn.
 * @param texts `long`: one text in it may be as long as the body.
 * @throws HomeportError `invalid_json`; `body_too_complex` when more stands in it than any request needs.
 */
export function parseJson(bytes: Uint8Array, texts: 'short' | 'long' = 'short'): unknown {
  const scan = new JsonScan(bytes, texts === 'long' ? WITH_LONG_TEXTS : JSON_LIMITS)
  if (bytes.length > SMALL_BYTES) return parseLong(bytes, scan)
  refuseCrossed(scan.advance(bytes.length))
  return parsed(() => decoder.decode(bytes))
}

async function parseLong(bytes: Uint8Array, scan: JsonScan): Promise<unknown> {
  while (!scan.isAtEnd) {
    refuseCrossed(scan.advance(SMALL_BYTES))
    await yieldToEventLoop()
  }
  if (scan.isList) return parseList(bytes, scan.cuts)
  const text = await decoded(bytes)
  return parsed(() => text)
}

/** Parses a list in pieces: a text that is cut at commas of its outermost list is as valid as its pieces are. */
async function parseList(bytes: Uint8Array, cuts: readonly number[]): Promise<unknown[]> {
  const start = bytes.indexOf(0x5b) + 1
  const end = bytes.lastIndexOf(0x5d)
  const list: unknown[] = []
  let from = start
  for (const to of [...cuts, end]) {
    const text = await decoded(bytes.subarray(from, to))
    const elements = parsed(() => `[${text}]`)
    if (!Array.isArray(elements) || elements.length === 0) throw invalid('an element of the list is missing')
    for (const element of elements) list.push(element)
    from = to + 1
    await yieldToEventLoop()
  }
  return list
}

/** Decodes what may be megabytes. */
async function decoded(bytes: Uint8Array): Promise<string> {
  if (bytes.length <= SLICE_BYTES) return utf8(() => decoder.decode(bytes))
  const streaming = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    text += utf8(() => streaming.decode(bytes.subarray(at, at + SLICE_BYTES), { stream: true }))
    await yieldToEventLoop()
  }
  return text + utf8(() => streaming.decode())
}

function utf8(decode: () => string): string {
  try {
    return decode()
  } catch {
    throw invalid('it is not valid UTF-8')
  }
}

function parsed(text: () => string): unknown {
  try {
    return JSON.parse(text())
  } catch (error) {
    throw error instanceof HomeportError ? error : invalid(error instanceof Error ? error.message : 'it cannot be read')
  }
}

const invalid = (reason: string) => new HomeportError('invalid_json', { reason })

function refuseCrossed(crossed: Crossed | undefined): void {
  if (!crossed) return
  const limit = JSON_LIMITS[crossed].toLocaleString('en-US')
  throw new HomeportError('body_too_complex', { what: WHAT[crossed], limit: `${limit} ${UNITS[crossed]}` })
}
