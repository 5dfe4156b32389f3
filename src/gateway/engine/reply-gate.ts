import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { ReplyFormatError, ReplyFramer } from '../resp/reply-framer.js'
import type { HeldMemory } from './held-memory.js'
import type { PendingReplies } from './pending-replies.js'

/** Limits of the replies on a connection, and their wording. */
export interface ReplyLimits {
  /** Longest reply, bytes. A longer one is replaced by an error. */
  readonly maxReplyBytes: number
  /** Replaces an error of the engine; undefined leaves it as it is. */
  readonly reword: (error: string) => Buffer | undefined
  /** The error for replies that were lost with the engine, when the reason is known. */
  readonly lossError?: () => HomeportError | undefined
  /** Counts the bytes that are held until a reply is whole; absent on shared lanes, which hold one reply at most. */
  readonly held?: HeldMemory | undefined
}

/** No limits: for connections that serve no client. */
export const NO_REPLY_LIMITS: ReplyLimits = {
  maxReplyBytes: Number.POSITIVE_INFINITY,
  reword: () => undefined,
}

/** The same limits, for a lane whose held bytes are counted. The limits may change at any time. */
export function countedIn(held: HeldMemory | undefined, limits: ReplyLimits): ReplyLimits {
  if (!held) return limits
  const { reword, lossError } = limits
  return {
    held,
    reword,
    ...(lossError && { lossError }),
    get maxReplyBytes() {
      return limits.maxReplyBytes
    },
  }
}

/** Distributes the replies of an engine. */
export type ReplyReceiver = Pick<PendingReplies, 'isEmpty' | 'headCount' | 'deliver' | 'deliverHeld'>

/** Length of an error up to which its wording may be replaced, bytes. An error in a script names the script first. */
const MAX_ERROR_BYTES = 512
const MINUS = 0x2d
const PUSH = 0x3e
const LF = 10
const EMPTY = Buffer.alloc(0)

/**
 * Checks the replies of an engine on their way to their sinks.
 *
 * Whole replies pass as views of the chunk they arrived in. Only two kinds are inspected:
 * - errors, because some get another wording;
 * - replies that are cut by the end of a chunk, because they may be too long. A bulk string declares its length, so it is
 *   streamed or dropped at once. The length of an array is only known at its end: it is held until then, or until it is
 *   too long, so at most one limit's worth of bytes waits on a connection.
 */
export class ReplyGate {
  readonly #receiver: ReplyReceiver
  readonly #limits: ReplyLimits
  readonly #framer = new ReplyFramer()
  /** An error whose line has not ended. */
  #tail: KeptBytes = EMPTY
  #held: KeptBytes[] = []
  /** Treatment of the reply that the end of the last chunk has cut. */
  #middle: 'none' | 'streaming' | 'holding' | 'dropping' = 'none'
  /** Length so far of a reply that is held or dropped. */
  #bytes = 0

  constructor(receiver: ReplyReceiver, limits: ReplyLimits) {
    this.#receiver = receiver
    this.#limits = limits
  }

  /** Whether a sink has the beginning of a reply whose rest has not arrived. */
  get midReply(): boolean {
    return this.#middle === 'streaming'
  }

  /** Takes the next chunk of the engine. @throws ReplyFormatError */
  push(received: LentBytes): void {
    const chunk = this.#tail.length === 0 ? received : Buffer.concat([this.#tail, received])
    this.#tail = EMPTY
    let start = 0
    while (start < chunk.length) {
      if (this.#receiver.isEmpty) throw new ReplyFormatError('nobody expects it')
      start = this.#take(chunk, start)
    }
  }

  /** @returns where the next piece begins */
  #take(chunk: LentBytes, start: number): number {
    if (this.#middle === 'holding' || this.#middle === 'dropping') return this.#continueWithheld(chunk, start)
    if (this.#middle === 'none' && chunk[start] === MINUS) return this.#error(chunk, start)
    return this.#pass(chunk, start)
  }

  #error(chunk: LentBytes, start: number): number {
    const lineEnd = chunk.indexOf(LF, start)
    // A script can fail with a text of any length. To gather it would copy the whole text again for each chunk.
    if (lineEnd < 0 && chunk.length - start >= MAX_ERROR_BYTES) return this.#pass(chunk, start)
    if (lineEnd < 0) {
      this.#tail = keep(chunk.subarray(start))
      return chunk.length
    }
    const end = lineEnd + 1
    const text = chunk.toString('latin1', start, Math.min(end, start + MAX_ERROR_BYTES))
    const reworded = this.#limits.reword(text)
    if (reworded) this.#substitute(reworded)
    else this.#receiver.deliver(chunk, start, end, 1)
    return end
  }

  /**
   * Called at the beginning of a reply, or in the middle of one that is streamed. The next sink gets all of its bytes in the
   * chunk at once, including the beginning of a further reply, because every delivery costs a system call.
   */
  #pass(chunk: LentBytes, start: number): number {
    const { maxReplyBytes } = this.#limits
    const mayBeTooLong = chunk.length - start > maxReplyBytes && chunk[start] !== PUSH
    const end = this.#framer.scan(chunk, start, mayBeTooLong ? 1 : this.#receiver.headCount)
    const { completed, midReply, replyStart } = this.#framer
    const isTooLong = mayBeTooLong && completed === 1 && end - start > maxReplyBytes && this.#middle === 'none'
    if (completed > 0) this.#middle = 'none'
    if (midReply && this.#middle === 'none') this.#middle = this.#treatmentOf(chunk[replyStart])
    const passedEnd = this.#middle === 'holding' || this.#middle === 'dropping' ? replyStart : end
    if (isTooLong) this.#refuse(end - start)
    else if (start < passedEnd) this.#receiver.deliver(chunk, start, passedEnd, completed)
    if (passedEnd < end) this.#gather(chunk, passedEnd, end)
    return end
  }

  /** A push message is no reply, so its length is not limited. */
  #treatmentOf(type: number | undefined): 'streaming' | 'holding' | 'dropping' {
    const { maxReplyBytes } = this.#limits
    const { bulkBytes } = this.#framer
    if (type === PUSH) return 'streaming'
    if (bulkBytes > maxReplyBytes) return 'dropping'
    return bulkBytes > 0 || maxReplyBytes === Number.POSITIVE_INFINITY ? 'streaming' : 'holding'
  }

  /** Called in the middle of a reply that is held or dropped. */
  #continueWithheld(chunk: LentBytes, start: number): number {
    const end = this.#framer.scan(chunk, start, 1)
    if (this.#framer.completed === 0) this.#gather(chunk, start, end)
    else this.#finish(chunk, start, end)
    return end
  }

  #gather(chunk: LentBytes, start: number, end: number): void {
    this.#count(end - start)
    if (this.#middle !== 'holding') return
    this.#held.push(keep(chunk.subarray(start, end)))
    this.#limits.held?.add(end - start)
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= this.#limits.maxReplyBytes) return
    this.#middle = 'dropping'
    this.#takeHeld()
  }

  #takeHeld(): readonly KeptBytes[] {
    const held = this.#held
    this.#held = []
    if (this.#limits.held) for (const { length } of held) this.#limits.held.add(-length)
    return held
  }

  #finish(chunk: LentBytes, start: number, end: number): void {
    this.#count(end - start)
    const held = this.#takeHeld()
    const actualBytes = this.#bytes
    const isDropped = this.#middle === 'dropping'
    this.#bytes = 0
    this.#middle = 'none'
    if (isDropped) {
      this.#refuse(actualBytes)
      return
    }
    this.#receiver.deliverHeld([...held, chunk.subarray(start, end)])
  }

  #refuse(actualBytes: number): void {
    const limitBytes = this.#limits.maxReplyBytes
    this.#substitute(encodeError(errorText(new HomeportError('request_too_large', { limitBytes, actualBytes }))))
  }

  #substitute(bytes: Buffer): void {
    this.#receiver.deliver(bytes, 0, bytes.length, 1)
  }
}
