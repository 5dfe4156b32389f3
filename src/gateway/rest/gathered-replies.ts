import type { HomeportError } from '../../contract/errors/errors.js'
import { kept } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { joinInTurns } from './in-turns.js'
import type { LargeSink, RepliesReader } from './send-commands.js'

/** From this length on a bulk string is answered while it comes, bytes. */
const LARGE_REPLY_BYTES = 1024 * 1024
/** Where more than this stands before a large one, bytes, it is gathered too: all of that would have to be read at once. */
const MOST_BEFORE_BYTES = 1024 * 1024
/** More than this is put together in slices, bytes. */
const JOINED_AT_ONCE_BYTES = 4 * 1024 * 1024
const LF = 10
const LINE_END_BYTES = 2

/** A large bulk string on its way to who takes it. */
interface Large {
  readonly sink: LargeSink
  /** Bytes of it that have not come. */
  leftBytes: number
}

/** Replies of a request that come in several pieces: gathered, but for bulk strings so large that they should not be held. */
export class GatheredReplies {
  readonly #reader: RepliesReader
  #framer = new ReplyFramer()
  #parts: Buffer[] = []
  /** Of all parts. */
  #bytes = 0
  /** Replies that stand whole in `#parts`. */
  #count = 0
  #large: Large | undefined
  /** Bytes of the line end behind a large one that have not come. */
  #skippedBytes = 0
  /** Nobody wants what still comes. */
  #isGivenUp = false

  constructor(reader: RepliesReader) {
    this.#reader = reader
  }

  /** Takes the next bytes, which may be lent. */
  take(part: Buffer): void {
    const behind = this.#skip(this.#passOn(part))
    if (behind.length === 0 || this.#isGivenUp || this.#beginsLarge(behind)) return
    const refusal = this.#reader.onHeld?.(behind.length)
    if (refusal) this.#giveUp(refusal)
    else this.#gather(kept(behind))
  }

  /** Everything has come. */
  end(): void {
    if (this.#isGivenUp) return
    const parts = this.#parts.splice(0)
    const [only] = parts
    if (only && parts.length === 1) this.#reader.onReplies(only)
    else if (this.#bytes <= JOINED_AT_ONCE_BYTES) this.#reader.onReplies(Buffer.concat(parts))
    else {
      joinInTurns(parts)
        .then((replies) => this.#reader.onReplies(replies))
        .catch((error: unknown) => this.#reader.onLost(error))
    }
  }

  #gather(part: Buffer): void {
    this.#parts.push(part)
    this.#bytes += part.length
  }

  /** The rest will never come. */
  fail(error: HomeportError): void {
    if (this.#isGivenUp) return
    if (this.#large) {
      this.#parts = []
      this.#large.sink.breakOff()
    } else this.#giveUp(error)
  }

  #giveUp(error: HomeportError): void {
    this.#isGivenUp = true
    this.#parts = []
    this.#reader.onLost(error)
  }

  /** @returns what is behind the large one. */
  #passOn(part: Buffer): Buffer {
    const large = this.#large
    if (!large) return part
    const taken = Math.min(part.length, large.leftBytes)
    large.leftBytes -= taken
    large.sink.take(part.subarray(0, taken))
    if (large.leftBytes > 0) return part.subarray(taken)
    large.sink.end()
    this.#large = undefined
    this.#skippedBytes = LINE_END_BYTES
    return part.subarray(taken)
  }

  #skip(part: Buffer): Buffer {
    const skipped = Math.min(part.length, this.#skippedBytes)
    this.#skippedBytes -= skipped
    return part.subarray(skipped)
  }

  /** Whether `part` ends in a large one that somebody takes. One whose head is spread over two pieces is gathered. */
  #beginsLarge(part: Buffer): boolean {
    const framer = this.#framer
    let isBegun = !framer.midReply
    for (let at = 0; at < part.length; ) {
      at = framer.scan(part, at, Number.POSITIVE_INFINITY)
      this.#count += framer.completed
      if (framer.completed > 0) isBegun = true
    }
    const { bulkBytes, midReply, replyStart } = framer
    if (!isBegun || !midReply || bulkBytes < LARGE_REPLY_BYTES || this.#bytes > MOST_BEFORE_BYTES) return false
    const before = (): Buffer => Buffer.concat([...this.#parts, part.subarray(0, replyStart)])
    const sink = this.#reader.onLarge?.(before, this.#count, bulkBytes)
    if (!sink) return false
    this.#parts = []
    this.#bytes = 0
    this.#count = 0
    this.#framer = new ReplyFramer()
    this.#large = { sink, leftBytes: bulkBytes }
    this.take(part.subarray(part.indexOf(LF, replyStart) + 1))
    return true
  }
}
