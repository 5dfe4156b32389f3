import { yieldToEventLoop } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import type { KeptBytes, LentBytes } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { joinInSlices } from './join-in-slices.js'
import { isPrepared, type Slot } from './slots.js'

/** The encoding of strings in an answer (reference redis 4.4). */
export type ReplyEncoding = 'plain' | 'base64'

/** A reply in an answer: JSON text of its value, or the text of an error. */
export type RestReply = { readonly json: string } | { readonly error: string }

/** Recursive JSON parsers run out of stack at a few thousand levels, some at a thousand. */
const MOST_LEVELS = 1_000

const CR = 13
const LINE_END_BYTES = 2
const PLUS = 0x2b
const MINUS = 0x2d
const COLON = 0x3a
const DOLLAR = 0x24
const STAR = 0x2a

/**
 * Converts whole RESP2 replies to JSON. Numbers are copied digit by digit, so none is rounded. It may pause between any
 * two elements of an array, and needs no stack for nested arrays.
 */
export class ReplyReader {
  readonly #bytes: Buffer
  readonly #encoding: ReplyEncoding
  #at = 0
  /** Elements that each enclosing array still lacks, the innermost last. */
  readonly #open: number[] = []
  /** JSON of the current array: the pieces of this call, and one text for each call before. */
  #parts: string[] = []
  #slices: string[] = []
  #isFirst = true
  #isTooDeep = false

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
    return this.readSome(Number.POSITIVE_INFINITY) ?? this.#end()
  }

  /** Reads on for about `bytes` bytes. @returns the reply, if that was the rest of it */
  readSome(bytes: number): RestReply | undefined {
    if (this.#open.length === 0) {
      const type = this.#bytes[this.#at]
      if (type === MINUS) return { error: this.#line() }
      if (type === PLUS) return this.#status()
      if (type !== STAR) return { json: this.#scalar() }
      this.#array()
    }
    const until = this.#at + bytes
    while (this.#open.length > 0) {
      if (this.#at >= until) return this.#pause()
      this.#element()
    }
    return this.#end()
  }

  /** Reads the next reply if that is a bulk string of at least `bytes` bytes. @returns its bytes */
  takeBulk(bytes: number): KeptBytes | undefined {
    const start = this.#at
    if (this.#open.length > 0 || this.#bytes[start] !== DOLLAR) return undefined
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

  /** A plain OK is not encoded, but only here: inside an array clients decode it. */
  #status(): RestReply {
    const text = this.#line()
    return { json: text === 'OK' ? '"OK"' : this.#text(text) }
  }

  #end(): RestReply {
    if (this.#slices.length > 0) this.#pause()
    const json = (this.#slices.length > 0 ? this.#slices : this.#parts).join('')
    const isTooDeep = this.#isTooDeep
    this.#parts = []
    this.#slices = []
    this.#isFirst = true
    this.#isTooDeep = false
    return isTooDeep ? { error: errorText(new HomeportError('reply_too_deep', { limit: MOST_LEVELS })) } : { json }
  }

  /** Joins the pieces so far, so that the end of a long reply is no more work than the rest of it. */
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
    if (this.#open.length > MOST_LEVELS) {
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
        return this.#text(this.#line())
    }
  }

  #bulk(): string {
    const length = Number(this.#line())
    if (length < 0) return 'null'
    const start = this.#at
    const end = start + length
    this.#at = end + LINE_END_BYTES
    if (this.#encoding === 'base64') return `"${this.#bytes.toString('base64', start, end)}"`
    return JSON.stringify(this.#bytes.toString('utf8', start, end))
  }

  #text(text: string): string {
    return JSON.stringify(this.#encoding === 'base64' ? Buffer.from(text).toString('base64') : text)
  }

  /** The text behind the type byte, up to the end of the line. */
  #line(): string {
    const start = this.#at + 1
    let end = start
    while (this.#bytes[end] !== CR && end < this.#bytes.length) end++
    this.#at = end + LINE_END_BYTES
    return this.#bytes.toString('utf8', start, end)
  }
}

/** Replies up to this length are read at once, bytes. */
export const READ_AT_ONCE_BYTES = 262_144
/** Reads any number of replies in slices, between which other requests run. */
export class SlicedReader {
  readonly #reader: ReplyReader
  /** The position that this turn of the event loop may read up to. */
  #until: number

  constructor(reader: ReplyReader) {
    this.#reader = reader
    this.#until = reader.position + READ_AT_ONCE_BYTES
  }

  /** Reads one reply. */
  async next(): Promise<RestReply> {
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
    this.#until = this.#reader.position + READ_AT_ONCE_BYTES
  }
}

/** Reads the replies of a pipeline, each into its slot. */
export function readReplies(slots: readonly Slot[], replies: LentBytes, encoding: ReplyEncoding): readonly RestReply[] {
  const reader = new ReplyReader(replies, encoding)
  return slots.map((slot) => (isPrepared(slot) ? reader.next() : { error: errorText(slot) }))
}

/** The same for any number of replies, in slices between which other requests run. The bytes of a long string are not read. */
export async function* readRepliesInSlices(
  slots: readonly Slot[],
  replies: KeptBytes,
  encoding: ReplyEncoding,
): AsyncGenerator<RestReply | { readonly long: KeptBytes }> {
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

/** The same for any number of replies, in slices between which other requests run. */
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
