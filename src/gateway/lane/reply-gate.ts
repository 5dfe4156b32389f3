import { HomeportError } from '../../contract/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import { kept } from '../resp/lent-memory.js'
import { ReplyFormatError, ReplyFramer } from '../resp/reply-framer.js'
import type { PendingReplies } from './pending-replies.js'

/** What replies are held against. */
export interface ReplyLimits {
  /** Longest reply, bytes; a longer one is replaced by an error. */
  readonly maxReplyBytes: number
  /** The reply that the client gets in place of an error of the engine; undefined leaves the engine's own words. */
  readonly reword: (error: string) => Buffer | undefined
}

/** No limits: for connections that no client is behind. */
export const NO_REPLY_LIMITS: ReplyLimits = {
  maxReplyBytes: Number.POSITIVE_INFINITY,
  reword: () => undefined,
}

/** Where the engine's wording stands in an error that names a script before it. */
const LONGEST_ERROR_BYTES = 512
const MINUS = 0x2d
const LF = 10
const EMPTY = Buffer.alloc(0)

/**
 * Stands between the bytes of an engine and those who wait for replies, and gives each its own.
 *
 * Whole replies go by as views of the chunk they came in. Only two kinds are looked at:
 * - errors, because some have another wording here;
 * - replies that a chunk ends in the middle of, because they may be too long. A bulk string tells its length at once,
 *   so it streams on or is dropped. Of an array nobody knows the length before its end: it is held back until then,
 *   or until it is too long, so at most one limit's worth of bytes waits on a connection.
 */
export class ReplyGate {
  readonly #pending: PendingReplies
  readonly #limits: ReplyLimits
  readonly #framer = new ReplyFramer()
  /** An error whose line has not ended. */
  #tail: Buffer = EMPTY
  #held: Buffer[] = []
  /** What becomes of the reply that the last chunk ended in the middle of. */
  #middle: 'none' | 'streaming' | 'holding' | 'dropping' = 'none'
  /** Bytes of that reply so far. */
  #bytes = 0
  /** Part of that reply has been delivered. */
  #delivered = false

  constructor(pending: PendingReplies, limits: ReplyLimits) {
    this.#pending = pending
    this.#limits = limits
  }

  /** Whether a sink has the beginning of a reply whose rest has not come. */
  get midReply(): boolean {
    return this.#delivered
  }

  /** Takes what the engine sent, which may be lent. @throws ReplyFormatError */
  push(received: Buffer): void {
    const chunk = this.#tail.length === 0 ? received : Buffer.concat([this.#tail, received])
    this.#tail = EMPTY
    let start = 0
    while (start < chunk.length) {
      if (this.#pending.isEmpty) throw new ReplyFormatError('nobody expects it')
      start = this.#middle === 'none' ? this.#begin(chunk, start) : this.#goOn(chunk, start)
    }
  }

  /** At the beginning of a reply. @returns where the next piece begins. */
  #begin(chunk: Buffer, start: number): number {
    if (chunk[start] === MINUS) return this.#error(chunk, start)
    const { maxReplyBytes } = this.#limits
    const mayBeTooLong = chunk.length - start > maxReplyBytes
    const end = this.#framer.scan(chunk, start, mayBeTooLong ? 1 : this.#pending.headCount)
    const { completed, midReply, replyStart } = this.#framer
    const whole = midReply ? replyStart : end
    if (mayBeTooLong && completed === 1 && whole - start > maxReplyBytes) this.#refuse(whole - start)
    else if (completed > 0) this.#pending.deliver(chunk, start, whole, completed)
    if (midReply) this.#enterMiddle(chunk, whole, end)
    return end
  }

  #error(chunk: Buffer, start: number): number {
    const lineEnd = chunk.indexOf(LF, start)
    if (lineEnd < 0) {
      this.#tail = kept(chunk.subarray(start))
      return chunk.length
    }
    const end = lineEnd + 1
    const text = chunk.toString('latin1', start, Math.min(end, start + LONGEST_ERROR_BYTES))
    const reworded = this.#limits.reword(text)
    if (reworded) this.#substitute(reworded)
    else this.#pending.deliver(chunk, start, end, 1)
    return end
  }

  #enterMiddle(chunk: Buffer, start: number, end: number): void {
    const { maxReplyBytes } = this.#limits
    const { bulkBytes } = this.#framer
    this.#bytes = end - start
    if (bulkBytes > maxReplyBytes) this.#middle = 'dropping'
    else this.#middle = bulkBytes > 0 || maxReplyBytes === Number.POSITIVE_INFINITY ? 'streaming' : 'holding'
    this.#passOn(chunk, start, end)
  }

  /** In the middle of a reply. @returns where the next one begins. */
  #goOn(chunk: Buffer, start: number): number {
    const end = this.#framer.scan(chunk, start, 1)
    this.#bytes += end - start
    if (this.#framer.completed === 0) this.#passOn(chunk, start, end)
    else this.#finish(chunk, start, end)
    return end
  }

  #passOn(chunk: Buffer, start: number, end: number): void {
    if (this.#middle === 'streaming') {
      this.#delivered = true
      this.#pending.deliver(chunk, start, end, 0)
      return
    }
    if (this.#bytes > this.#limits.maxReplyBytes) this.#drop()
    if (this.#middle === 'holding') this.#held.push(kept(chunk.subarray(start, end)))
  }

  #drop(): void {
    this.#middle = 'dropping'
    this.#held = []
  }

  #finish(chunk: Buffer, start: number, end: number): void {
    if (this.#middle === 'holding' && this.#bytes > this.#limits.maxReplyBytes) this.#drop()
    const held = this.#held
    const isDropped = this.#middle === 'dropping'
    const actualBytes = this.#bytes
    this.#held = []
    this.#middle = 'none'
    this.#delivered = false
    if (isDropped) {
      this.#refuse(actualBytes)
      return
    }
    for (const piece of held) this.#pending.deliver(piece, 0, piece.length, 0)
    this.#pending.deliver(chunk, start, end, 1)
  }

  #refuse(actualBytes: number): void {
    const limitBytes = this.#limits.maxReplyBytes
    this.#substitute(encodeError(errorText(new HomeportError('request_too_large', { limitBytes, actualBytes }))))
  }

  #substitute(bytes: Buffer): void {
    this.#pending.deliver(bytes, 0, bytes.length, 1)
  }
}
