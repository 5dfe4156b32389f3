import { randomBytes } from 'node:crypto'
import { encodeTextCommand } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'

/** A command that no engine knows. Its reply is an error with our nonce in it, in every state of a connection. */
const MARK = 'HOMEPORT.MARK'

/** Makes an engine answer with an error, and an open transaction of its connection fail as a whole. */
export const POISON = encodeTextCommand([MARK])

/** In the lines of MONITOR, the path of the socket that a command came through. */
const MONITOR_SOURCE = /^(\+\d+\.\d+ \[\d+ )unix:[^\]]*\]/

/** What may be done to whole frames on their way to the client. */
export type FrameFilter = (frame: Buffer) => Buffer

/** Replaces the engine's socket path in a line of MONITOR, which is nobody's business. */
export const hideMonitorSource: FrameFilter = (frame) =>
  frame[0] === 0x2b ? Buffer.from(frame.toString('latin1').replace(MONITOR_SOURCE, '$10.0.0.0:0]'), 'latin1') : frame

/** Where the frames go and where marks are sent. */
export interface PinnedEnds {
  readonly toClient: (bytes: Buffer) => void
  readonly toEngine: (bytes: Buffer) => void
}

interface Mark {
  readonly nonce: string
  readonly reply: Buffer
}

/**
 * Everything that an engine sends on a connection where it speaks on its own accord. Messages and replies cannot be
 * told apart by counting there, so our own replies keep their place by a mark: a command that no engine knows, sent in
 * the client's place, whose error is replaced by our reply when it comes back.
 *
 * Frames are only gathered whole while a mark is awaited or a filter is set; otherwise bytes pass as they come.
 */
export class PinnedStream {
  #filter: FrameFilter | undefined
  readonly #ends: PinnedEnds
  readonly #framer = new ReplyFramer()
  #marks: Mark[] = []
  #held: Buffer[] = []
  /** The beginning of the present frame has been passed on already, so its rest is too. */
  #passing = false

  constructor(ends: PinnedEnds) {
    this.#ends = ends
  }

  /** From the next frame on, every frame goes through `filter`. */
  filterWith(filter: FrameFilter): void {
    this.#filter = filter
  }

  /** Puts a reply of ours behind the replies of everything sent so far. */
  insert(reply: Buffer): void {
    const nonce = randomBytes(12).toString('hex')
    this.#marks.push({ nonce, reply })
    this.#ends.toEngine(Buffer.from(encodeTextCommand([MARK, nonce])))
  }

  /** Takes what the engine sent. @throws ReplyFormatError */
  push(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length) {
      const end = this.#framer.scan(chunk, from, 1)
      this.#take(chunk.subarray(from, end), this.#framer.completed === 1)
      from = end
    }
  }

  #take(piece: Buffer, ends: boolean): void {
    const inspects = this.#filter !== undefined || this.#marks.length > 0
    if (this.#passing || (!inspects && this.#held.length === 0)) {
      this.#passing = !ends
      this.#ends.toClient(piece)
      return
    }
    this.#held.push(piece)
    if (ends) this.#emit(Buffer.concat(this.#held.splice(0)))
  }

  #emit(frame: Buffer): void {
    const mark = this.#marks[0]
    if (mark && frame[0] === 0x2d && frame.includes(mark.nonce)) {
      this.#marks.shift()
      this.#ends.toClient(mark.reply)
    } else {
      this.#ends.toClient(this.#filter ? this.#filter(frame) : frame)
    }
  }
}
