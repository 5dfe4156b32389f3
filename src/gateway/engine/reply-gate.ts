import { HomeportError } from '../../contract/errors/errors.js'
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
  /** What those are told whose replies were lost with the engine, where it is known why. */
  readonly whyLost?: () => HomeportError | undefined
}

/** No limits: for connections that no client is behind. */
export const NO_REPLY_LIMITS: ReplyLimits = {
  maxReplyBytes: Number.POSITIVE_INFINITY,
  reword: () => undefined,
}

/** Who gets the replies of an engine. */
export type ReplyTaker = Pick<PendingReplies, 'isEmpty' | 'headCount' | 'deliver'>

/** Where the engine's wording stands in an error that names a script before it. A longer one has no other wording here. */
const LONGEST_ERROR_BYTES = 512
const MINUS = 0x2d
const PUSH = 0x3e
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
  readonly #pending: ReplyTaker
  readonly #limits: ReplyLimits
  readonly #framer = new ReplyFramer()
  /** An error whose line has not ended. */
  #tail: Buffer = EMPTY
  #held: Buffer[] = []
  /** What becomes of the reply that the last chunk ended in the middle of. */
  #middle: 'none' | 'streaming' | 'holding' | 'dropping' = 'none'
  /** Bytes so far of a reply that is held or dropped. */
  #bytes = 0

  constructor(pending: ReplyTaker, limits: ReplyLimits) {
    this.#pending = pending
    this.#limits = limits
  }

  /** Whether a sink has the beginning of a reply whose rest has not come. */
  get midReply(): boolean {
    return this.#middle === 'streaming'
  }

  /** Takes what the engine sent, which may be lent. @throws ReplyFormatError */
  push(received: Buffer): void {
    const chunk = this.#tail.length === 0 ? received : Buffer.concat([this.#tail, received])
    this.#tail = EMPTY
    let start = 0
    while (start < chunk.length) {
      if (this.#pending.isEmpty) throw new ReplyFormatError('nobody expects it')
      start = this.#take(chunk, start)
    }
  }

  /** @returns where the next piece begins. */
  #take(chunk: Buffer, start: number): number {
    if (this.#middle === 'holding' || this.#middle === 'dropping') return this.#withhold(chunk, start)
    if (this.#middle === 'none' && chunk[start] === MINUS) return this.#error(chunk, start)
    return this.#pass(chunk, start)
  }

  #error(chunk: Buffer, start: number): number {
    const lineEnd = chunk.indexOf(LF, start)
    // A script can fail with a text of any length; gathered piece by piece it would be copied once for each.
    if (lineEnd < 0 && chunk.length - start >= LONGEST_ERROR_BYTES) return this.#pass(chunk, start)
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

  /**
   * At the beginning of a reply, or in the middle of one that streams. Whoever is next gets all that the chunk has for
   * it in one piece, the beginning of a further reply included: a piece costs a system call.
   */
  #pass(chunk: Buffer, start: number): number {
    const { maxReplyBytes } = this.#limits
    const mayBeTooLong = chunk.length - start > maxReplyBytes && chunk[start] !== PUSH
    const end = this.#framer.scan(chunk, start, mayBeTooLong ? 1 : this.#pending.headCount)
    const { completed, midReply, replyStart } = this.#framer
    const isTooLong = mayBeTooLong && completed === 1 && end - start > maxReplyBytes && this.#middle === 'none'
    if (completed > 0) this.#middle = 'none'
    if (midReply && this.#middle === 'none') this.#middle = this.#fateOfBegun(chunk[replyStart])
    const passedEnd = this.#middle === 'holding' || this.#middle === 'dropping' ? replyStart : end
    if (isTooLong) this.#refuse(end - start)
    else if (start < passedEnd) this.#pending.deliver(chunk, start, passedEnd, completed)
    if (passedEnd < end) this.#gather(chunk, passedEnd, end)
    return end
  }

  /** What the engine says on its own accord is no reply and may be as long as it is. */
  #fateOfBegun(type: number | undefined): 'streaming' | 'holding' | 'dropping' {
    const { maxReplyBytes } = this.#limits
    const { bulkBytes } = this.#framer
    if (type === PUSH) return 'streaming'
    if (bulkBytes > maxReplyBytes) return 'dropping'
    return bulkBytes > 0 || maxReplyBytes === Number.POSITIVE_INFINITY ? 'streaming' : 'holding'
  }

  /** In the middle of a reply that is held or dropped. */
  #withhold(chunk: Buffer, start: number): number {
    const end = this.#framer.scan(chunk, start, 1)
    if (this.#framer.completed === 0) this.#gather(chunk, start, end)
    else this.#finish(chunk, start, end)
    return end
  }

  #gather(chunk: Buffer, start: number, end: number): void {
    this.#count(end - start)
    if (this.#middle === 'holding') this.#held.push(kept(chunk.subarray(start, end)))
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= this.#limits.maxReplyBytes) return
    this.#middle = 'dropping'
    this.#held = []
  }

  #finish(chunk: Buffer, start: number, end: number): void {
    this.#count(end - start)
    const held = this.#held
    const actualBytes = this.#bytes
    const isDropped = this.#middle === 'dropping'
    this.#held = []
    this.#bytes = 0
    this.#middle = 'none'
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
