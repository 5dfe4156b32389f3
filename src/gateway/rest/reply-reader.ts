import { yieldToEventLoop } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import { joinInSlices } from '../resp/join-in-slices.js'
import type { KeptBytes, LentBytes } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { isPrepared, type Slot } from './slots.js'
import { type ReplyEncoding, type StringPieces, stringPieces } from './string-pieces.js'

/** A reply in an answer: JSON text of its value, or the text of an error. */
export type RestReply = { readonly json: string } | { readonly error: string }

/** A reply that was read in slices: the JSON text in pieces, each short enough to be written at once, or an error. */
export type SlicedReply = { readonly pieces: readonly string[] } | { readonly error: string }

/** A string that is too long for a slice. */
interface LongString {
  readonly pieces: StringPieces
  readonly end: number
}

/** Recursive JSON parsers run out of stack at a few thousand levels, some at a thousand. */
const MAX_LEVELS = 1_000

const CR = 13
const LINE_END_BYTES = 2
const OK = 'OK'
const PLUS = 0x2b
const MINUS = 0x2d
const COLON = 0x3a
const DOLLAR = 0x24
const STAR = 0x2a

/** A line with a number is shorter than this, bytes. The end of a longer line is found with `indexOf`. */
const SHORT_LINE_BYTES = 32
/** Errors are cut at this length, bytes. */
const MAX_ERROR_BYTES = 65_536

/**
 * Converts whole RESP2 replies to JSON. Numbers are copied digit by digit, so none is rounded. The reader can pause between
 * any two elements of an array and within a string, and needs no stack for nested arrays.
 */
export class ReplyReader {
  readonly #bytes: Buffer
  readonly #encoding: ReplyEncoding
  #at = 0
  /** End of this slice. */
  #until = 0
  /** The string that an earlier slice has begun. */
  #string: LongString | undefined
  /** Number of elements that each enclosing array still lacks, the innermost last. */
  readonly #open: number[] = []
  /** JSON of the current array: the pieces of this call, and one text for each earlier call. */
  #parts: string[] = []
  #slices: string[] = []
  #isFirst = true
  #isTooDeep = false

  constructor(bytes: Buffer, encoding: ReplyEncoding) {
    this.#bytes = bytes
    this.#encoding = encoding
  }

  /** Position of the next reply. */
  get position(): number {
    return this.#at
  }

  /** Reads one reply. */
  next(): RestReply {
    const reply = this.readSome(Number.POSITIVE_INFINITY) ?? this.#end()
    return 'pieces' in reply ? { json: reply.pieces.join('') } : reply
  }

  /** Reads about `bytes` more bytes. @returns the reply, if it ended in them */
  readSome(bytes: number): SlicedReply | undefined {
    this.#until = this.#at + bytes
    if (!this.#isOpen) {
      const type = this.#bytes[this.#at]
      if (type === MINUS) return { error: this.#error() }
      if (type === STAR) this.#array()
      else this.#write(type === PLUS ? this.#status() : this.#scalar())
    }
    while (this.#isOpen) {
      if (this.#at >= this.#until) return this.#pause()
      if (this.#string) this.#readString(this.#string)
      else this.#element()
    }
    return this.#end()
  }

  get #isOpen(): boolean {
    return this.#open.length > 0 || this.#string !== undefined
  }

  /** Reads the next reply if that is a bulk string of at least `bytes` bytes. @returns its bytes */
  takeBulk(bytes: number): KeptBytes | undefined {
    const start = this.#at
    if (this.#isOpen || this.#bytes[start] !== DOLLAR) return undefined
    const length = Number(this.#line())
    if (length < bytes) {
      this.#at = start
      return undefined
    }
    const value = this.#bytes.subarray(this.#at, this.#at + length)
    this.#at += length + LINE_END_BYTES
    return value
  }

  /** Reads the head of an array. @returns how many replies follow, or undefined when the next reply is no array */
  arrayLength(): number | undefined {
    if (this.#bytes[this.#at] !== STAR) return undefined
    return Number(this.#line())
  }

  #error(): string {
    const start = this.#at + 1
    const end = this.#lineEnd()
    this.#at = end + LINE_END_BYTES
    return this.#bytes.toString('utf8', start, Math.min(end, start + MAX_ERROR_BYTES))
  }

  /** Reads a simple string. `OK` is not encoded in base64, except inside an array, where clients decode it. */
  #status(): string {
    const start = this.#at + 1
    const end = this.#lineEnd()
    if (end - start !== OK.length || this.#bytes.toString('latin1', start, end) !== OK) return this.#text(start, end)
    this.#at = end + LINE_END_BYTES
    return `"${OK}"`
  }

  #end(): SlicedReply {
    this.#pause()
    const pieces = this.#slices
    const isTooDeep = this.#isTooDeep
    this.#slices = []
    this.#isFirst = true
    this.#isTooDeep = false
    return isTooDeep ? { error: errorText(new HomeportError('reply_too_deep', { limit: MAX_LEVELS })) } : { pieces }
  }

  /** Joins the pieces so far: a piece for each element would cost more than its text. */
  #pause(): undefined {
    this.#slices.push(this.#parts.join(''))
    this.#parts = []
  }

  /** Reads the next element of the innermost array, or its end. */
  #element(): void {
    const innermost = this.#open.length - 1
    const left = this.#open[innermost] ?? 0
    if (left === 0) {
      this.#open.pop()
      this.#write(']')
      this.#isFirst = false
      return
    }
    this.#open[innermost] = left - 1
    if (!this.#isFirst) this.#write(',')
    this.#isFirst = false
    if (this.#bytes[this.#at] === STAR) this.#array()
    else this.#write(this.#scalar())
  }

  #array(): void {
    const length = Number(this.#line())
    if (length < 0) {
      this.#write('null')
      return
    }
    this.#write('[')
    this.#isFirst = true
    this.#open.push(length)
    if (this.#open.length > MAX_LEVELS) {
      this.#isTooDeep = true
      this.#parts = []
      this.#slices = []
    }
  }

  #write(json: string): void {
    if (!this.#isTooDeep) this.#parts.push(json)
  }

  #scalar(): string {
    switch (this.#bytes[this.#at]) {
      case COLON:
        return this.#line()
      case DOLLAR:
        return this.#bulk()
      default:
        return this.#text(this.#at + 1, this.#lineEnd())
    }
  }

  #bulk(): string {
    const length = Number(this.#line())
    return length < 0 ? 'null' : this.#text(this.#at, this.#at + length)
  }

  /** JSON of the string in [start, end), or its opening quote if it is too long for this slice. */
  #text(start: number, end: number): string {
    if (end > this.#until) {
      this.#at = start
      this.#string = { pieces: stringPieces(this.#encoding), end }
      return '"'
    }
    this.#at = end + LINE_END_BYTES
    if (this.#encoding === 'base64') return `"${this.#bytes.toString('base64', start, end)}"`
    return JSON.stringify(this.#bytes.toString('utf8', start, end))
  }

  /** Reads as much of a long string as fits into this slice. */
  #readString({ pieces, end }: LongString): void {
    const to = Math.min(end, this.#until)
    this.#write(pieces.piece(this.#bytes.subarray(this.#at, to)))
    this.#at = to
    if (to < end) return
    this.#write(`${pieces.rest()}"`)
    this.#at += LINE_END_BYTES
    this.#string = undefined
  }

  /** The text behind the type byte, up to the end of the line. */
  #line(): string {
    const start = this.#at + 1
    const end = this.#lineEnd()
    this.#at = end + LINE_END_BYTES
    return this.#bytes.toString('utf8', start, end)
  }

  #lineEnd(): number {
    const start = this.#at + 1
    for (let end = start; end < start + SHORT_LINE_BYTES; end++) if (this.#bytes[end] === CR) return end
    const end = this.#bytes.indexOf(CR, start)
    return end < 0 ? this.#bytes.length : end
  }
}

/** Replies up to this length are read at once, bytes. */
export const READ_AT_ONCE_BYTES = 262_144
/** Bytes of longer replies that are read in one turn of the event loop. */
const SLICE_BYTES = 65_536

/** Reads any number of replies in slices that yield to the event loop. */
export class SlicedReader {
  readonly #reader: ReplyReader
  /** The position that this turn of the event loop may read up to. */
  #until: number

  constructor(reader: ReplyReader) {
    this.#reader = reader
    this.#until = reader.position + SLICE_BYTES
  }

  /** Reads one reply. */
  async next(): Promise<SlicedReply> {
    for (;;) {
      if (this.#reader.position >= this.#until) await this.#yieldToEventLoop()
      const reply = this.#reader.readSome(this.#until - this.#reader.position)
      if (reply) return reply
    }
  }

  /** See `ReplyReader.takeBulk`: a string that would take too long to read in one turn. */
  takeLong(): KeptBytes | undefined {
    return this.#reader.takeBulk(READ_AT_ONCE_BYTES)
  }

  async #yieldToEventLoop(): Promise<void> {
    await yieldToEventLoop()
    this.#until = this.#reader.position + SLICE_BYTES
  }
}

/** Reads the replies of a pipeline, each into its slot. */
export function readReplies(slots: readonly Slot[], replies: LentBytes, encoding: ReplyEncoding): readonly RestReply[] {
  const reader = new ReplyReader(replies, encoding)
  return slots.map((slot) => (isPrepared(slot) ? reader.next() : { error: errorText(slot) }))
}

/** Like `readReplies`, for any number of replies, in slices that yield to the event loop. Long strings stay bytes. */
export async function* readRepliesInSlices(
  slots: readonly Slot[],
  replies: KeptBytes,
  encoding: ReplyEncoding,
): AsyncGenerator<SlicedReply | { readonly long: KeptBytes }> {
  const reader = new SlicedReader(new ReplyReader(replies, encoding))
  for (const slot of slots) {
    const long = isPrepared(slot) ? reader.takeLong() : undefined
    if (long) yield { long }
    else yield isPrepared(slot) ? await reader.next() : { error: errorText(slot) }
  }
}

/** The bytes of the replies of a pipeline, one for each slot. */
export function replyBytes(slots: readonly Slot[], replies: LentBytes): LentBytes {
  return slots.every(isPrepared) ? replies : Buffer.concat([...encodedReplies(slots, replies)])
}

/** Like `replyBytes`, for any number of replies, in slices that yield to the event loop. */
export async function replyBytesInSlices(slots: readonly Slot[], replies: KeptBytes): Promise<Buffer> {
  if (slots.every(isPrepared)) return replies
  const parts: KeptBytes[] = []
  let readBytes = 0
  for (const part of encodedReplies(slots, replies)) {
    parts.push(part)
    readBytes += part.length
    if (readBytes < READ_AT_ONCE_BYTES) continue
    readBytes = 0
    await yieldToEventLoop()
  }
  return joinInSlices(parts)
}

function* encodedReplies(slots: readonly Slot[], replies: Buffer): Generator<Buffer> {
  const framer = new ReplyFramer()
  let at = 0
  for (const slot of slots) {
    if (slot instanceof HomeportError) {
      yield encodeError(errorText(slot))
      continue
    }
    const end = framer.scan(replies, at, 1)
    yield replies.subarray(at, end)
    at = end
  }
}
