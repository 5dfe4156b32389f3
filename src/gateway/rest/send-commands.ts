import type { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { Awaited, ReplySink } from '../engine/reply-sink.js'
import { kept } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { joinInTurns } from './reply-reader.js'

/** A command as it is sent. */
export interface Wire {
  readonly wire: string | Buffer
}

/** Who takes a large bulk string while it comes. */
export interface LargeSink {
  /** The next bytes, which may be lent. */
  take(bytes: Buffer): void
  /** It has come whole. */
  end(): void
  /** The rest will never come. */
  breakOff(): void
}

/** Who waits for the replies of a request. */
export interface RepliesReader {
  /** What they are awaited from, where that is no ordinary command. */
  readonly awaits?: Awaited | undefined
  /**
   * A large bulk string has begun, of so many bytes, behind `count` replies that stand in what `before` puts together. Who
   * takes it; of what was said so far nothing is said again. Undefined: it is gathered like any other, and so are those
   * before it.
   */
  onLarge?(before: () => Buffer, count: number, bytes: number): LargeSink | undefined
  /** The bytes of all replies, or of those behind the last large one. They may be lent: what is needed later is copied. */
  onReplies(replies: Buffer): void
  /** So much more has to be held until all replies have come. @returns why not, which `onLost` is told then */
  onHeld?(bytes: number): HomeportError | undefined
  /** The replies will never come: the engine is lost, or a fault of ours stands in the way. */
  onLost(error: unknown): void
}

/** Sends commands; `reader` gets their replies together. There has to be at least one. */
export function sendCommands(link: EngineLink, commands: readonly Wire[], reader: RepliesReader): void {
  const sink = new WholeReplies(commands.length, reader)
  if (commands.every(hasText)) {
    link.sendText(sink, commands.map(({ wire }) => wire).join(''), commands.length)
    return
  }
  const parts = commands.map(({ wire }) => (typeof wire === 'string' ? Buffer.from(wire) : wire))
  const [only] = parts
  const bytes = only && parts.length === 1 ? only : Buffer.concat(parts)
  link.send(sink, bytes, 0, bytes.length, commands.length)
}

/** The same as a promise, of bytes that stay. */
export function sentCommands(
  link: EngineLink,
  commands: readonly Wire[],
  ends: Pick<RepliesReader, 'onHeld' | 'awaits'>,
): Promise<Buffer> {
  if (commands.length === 0) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    sendCommands(link, commands, {
      onReplies: (replies) => resolve(kept(replies)),
      awaits: ends.awaits,
      onHeld: (bytes) => ends.onHeld?.(bytes),
      onLost: reject,
    })
  })
}

function hasText(command: Wire): command is { readonly wire: string } {
  return typeof command.wire === 'string'
}

/** Replies nearly always come in one piece, which is passed on as it is. */
class WholeReplies implements ReplySink {
  readonly awaits: Awaited | undefined
  readonly #reader: RepliesReader
  #left: number
  #gathering: GatheredReplies | undefined

  constructor(count: number, reader: RepliesReader) {
    this.awaits = reader.awaits
    this.#left = count
    this.#reader = reader
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    const part = chunk.subarray(start, end)
    this.#left -= completed
    if (this.#left === 0 && this.#gathering === undefined) {
      this.#reader.onReplies(part)
      return
    }
    this.#gathering ??= new GatheredReplies(this.#reader)
    this.#gathering.take(part)
    if (this.#left === 0) this.#gathering.end()
  }

  fail(_count: number, error: HomeportError): void {
    if (this.#gathering) this.#gathering.fail(error)
    else this.#reader.onLost(error)
  }
}

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
class GatheredReplies {
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
