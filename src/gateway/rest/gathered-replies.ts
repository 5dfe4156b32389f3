import { JOINED_AT_ONCE_BYTES, joinInSlices } from '../resp/join-in-slices.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import type { LargeReplySink, RepliesClient, RepliesReader } from './replies-reader.js'

/** A bulk string of this length or more is passed on while it arrives, bytes. */
const LARGE_REPLY_BYTES = 1024 * 1024
/** With more bytes of replies before it than this, a large reply is gathered too: the others would be read in one go. */
const MAX_BEFORE_BYTES = 1024 * 1024
const LF = 10
const LINE_END_BYTES = 2

/** A large bulk string that is being passed on. */
interface Large {
  readonly sink: LargeReplySink
  /** Bytes that have not arrived. */
  leftBytes: number
}

/** Gathers replies of a request that arrive in several chunks. Passes large bulk strings on instead of holding them. */
export class GatheredReplies {
  readonly #client: RepliesClient
  readonly #reader: RepliesReader
  #framer = new ReplyFramer()
  #chunks: KeptBytes[] = []
  /** Length of all chunks. */
  #bytes = 0
  /** Number of whole replies in `#chunks`. */
  #count = 0
  #large: Large | undefined
  /** Number of bytes of the line end behind a large reply that have not arrived. */
  #skippedBytes = 0
  /** Whether all further bytes are dropped. */
  #isGivenUp = false

  constructor(client: RepliesClient, reader: RepliesReader) {
    this.#client = client
    this.#reader = reader
  }

  /** Whether further replies are dropped. */
  get isGivenUp(): boolean {
    return this.#isGivenUp
  }

  /** Takes the next bytes. */
  take(chunk: LentBytes): void {
    const behind = this.#skip(this.#passOn(chunk))
    if (behind.length === 0 || this.#isGivenUp || this.#beginsLarge(behind)) return
    this.#hold(behind)
  }

  /** Takes one whole reply that is not a large bulk string, without a search for its end. */
  takeHeld(pieces: readonly LentBytes[]): void {
    for (const piece of pieces) if (!this.#isGivenUp) this.#hold(piece)
    this.#count++
  }

  #hold(replies: LentBytes): void {
    const refusal = this.#client.holdReplies(replies.length)
    if (refusal) this.giveUp(refusal)
    else this.#gather(keep(replies))
  }

  /** Call it when all replies have arrived. */
  end(): void {
    if (this.#isGivenUp) return
    const chunks = this.#chunks.splice(0)
    const [only] = chunks
    if (only && chunks.length === 1) this.#reader.onReplies(only)
    else if (this.#bytes <= JOINED_AT_ONCE_BYTES) this.#reader.onReplies(Buffer.concat(chunks))
    else {
      joinInSlices(chunks)
        .then((replies) => this.#reader.onReplies(replies))
        .catch((error: unknown) => this.#reader.onLost(error))
    }
  }

  #gather(chunk: KeptBytes): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** Drops everything: the rest will never arrive, or is not needed. */
  giveUp(error: unknown): void {
    if (this.#isGivenUp) return
    this.#isGivenUp = true
    this.#chunks = []
    this.#large?.sink.abort()
    this.#reader.onLost(error)
  }

  /** @returns the bytes behind the large reply */
  #passOn(chunk: LentBytes): LentBytes {
    const large = this.#large
    if (!large) return chunk
    const taken = Math.min(chunk.length, large.leftBytes)
    large.leftBytes -= taken
    large.sink.take(chunk.subarray(0, taken))
    if (large.leftBytes > 0) return chunk.subarray(taken)
    large.sink.end()
    this.#large = undefined
    this.#skippedBytes = LINE_END_BYTES
    return chunk.subarray(taken)
  }

  #skip(chunk: LentBytes): LentBytes {
    const skipped = Math.min(chunk.length, this.#skippedBytes)
    this.#skippedBytes -= skipped
    return chunk.subarray(skipped)
  }

  /** Whether `chunk` ends in a large reply that is passed on. A reply whose head is spread over two chunks is gathered. */
  #beginsLarge(chunk: LentBytes): boolean {
    const framer = this.#framer
    let isBegun = !framer.midReply
    for (let at = 0; at < chunk.length; ) {
      at = framer.scan(chunk, at, Number.POSITIVE_INFINITY)
      this.#count += framer.completed
      if (framer.completed > 0) isBegun = true
    }
    const { bulkBytes, midReply, replyStart } = framer
    if (!isBegun || !midReply || bulkBytes < LARGE_REPLY_BYTES || this.#bytes > MAX_BEFORE_BYTES) return false
    const before = (): Buffer => Buffer.concat([...this.#chunks, chunk.subarray(0, replyStart)])
    const sink = this.#reader.onLarge?.(before, this.#count, bulkBytes)
    if (!sink) return false
    this.#chunks = []
    this.#bytes = 0
    this.#count = 0
    this.#framer = new ReplyFramer()
    this.#large = { sink, leftBytes: bulkBytes }
    this.take(chunk.subarray(chunk.indexOf(LF, replyStart) + 1))
    return true
  }
}
