import type { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { Awaited, ReplySink } from '../engine/reply-sink.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { joinInSlices } from './reply-reader.js'

/** An encoded command. */
export interface EncodedCommand {
  readonly wire: string | Buffer
}

/** Receives a large bulk string while it arrives. */
export interface LargeReplySink {
  /** The next bytes. */
  take(bytes: LentBytes): void
  /** All of it has arrived. */
  end(): void
  /** The rest will never arrive. */
  breakOff(): void
}

/** Receives the replies to the commands of a request. */
export interface RepliesReader {
  /** Why the replies may take long; undefined for ordinary commands. */
  readonly awaits?: Awaited | undefined
  /**
   * A large bulk string of `bytes` bytes has begun, behind `count` replies, which `before` joins. Returns its sink, and the
   * reader gets none of these replies again. Undefined: it is gathered like any other reply, as are those before it.
   */
  onLarge?(before: () => Buffer, count: number, bytes: number): LargeReplySink | undefined
  /** The bytes of all replies, or of those behind the last large one. */
  onReplies(replies: LentBytes): void
  /** `bytes` more bytes have to be held until all replies have arrived. @returns why they must not; `onLost` gets it too */
  onRepliesHeld?(bytes: number): HomeportError | undefined
  /** The replies will never arrive: the engine is lost, or the gateway has a defect. */
  onLost(error: unknown): void
}

/** Sends commands, at least one. `reader` gets their replies together. */
export function sendCommands(link: EngineLink, commands: readonly EncodedCommand[], reader: RepliesReader): void {
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

/** The same as a promise. */
export function sentCommands(
  link: EngineLink,
  commands: readonly EncodedCommand[],
  reader: Pick<RepliesReader, 'onRepliesHeld' | 'awaits'>,
): Promise<KeptBytes> {
  if (commands.length === 0) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    sendCommands(link, commands, {
      onReplies: (replies) => resolve(keep(replies)),
      awaits: reader.awaits,
      onRepliesHeld: (bytes) => reader.onRepliesHeld?.(bytes),
      onLost: reject,
    })
  })
}

function hasText(command: EncodedCommand): command is { readonly wire: string } {
  return typeof command.wire === 'string'
}

/** Replies nearly always arrive in one chunk, which is passed on as it is. */
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

  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    const replies = chunk.subarray(start, end)
    this.#left -= completed
    if (this.#left === 0 && this.#gathering === undefined) {
      this.#reader.onReplies(replies)
      return
    }
    this.#gathering ??= new GatheredReplies(this.#reader)
    this.#gathering.take(replies)
    if (this.#left === 0) this.#gathering.end()
  }

  fail(_count: number, error: HomeportError): void {
    if (this.#gathering) this.#gathering.fail(error)
    else this.#reader.onLost(error)
  }
}

/** A bulk string of this length or more is passed on while it arrives, bytes. */
const LARGE_REPLY_BYTES = 1024 * 1024
/** With more replies than this before it, bytes, a large one is gathered too: they would have to be read at once. */
const MOST_BEFORE_BYTES = 1024 * 1024
/** More bytes than this are joined in slices. */
const JOINED_AT_ONCE_BYTES = 4 * 1024 * 1024
const LF = 10
const LINE_END_BYTES = 2

/** A large bulk string that is being passed on. */
interface Large {
  readonly sink: LargeReplySink
  /** Bytes that have not arrived. */
  leftBytes: number
}

/** Gathers the replies of a request that arrive in several chunks. Passes large bulk strings on instead of holding them. */
class GatheredReplies {
  readonly #reader: RepliesReader
  #framer = new ReplyFramer()
  #chunks: KeptBytes[] = []
  /** Length of all chunks. */
  #bytes = 0
  /** Whole replies in `#chunks`. */
  #count = 0
  #large: Large | undefined
  /** Bytes of the line end behind a large reply that have not arrived. */
  #skippedBytes = 0
  /** Whatever still arrives is dropped. */
  #isGivenUp = false

  constructor(reader: RepliesReader) {
    this.#reader = reader
  }

  /** Takes the next bytes. */
  take(chunk: LentBytes): void {
    const behind = this.#skip(this.#passOn(chunk))
    if (behind.length === 0 || this.#isGivenUp || this.#beginsLarge(behind)) return
    const refusal = this.#reader.onRepliesHeld?.(behind.length)
    if (refusal) this.#giveUp(refusal)
    else this.#gather(keep(behind))
  }

  /** All replies have arrived. */
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

  /** The rest will never arrive. */
  fail(error: HomeportError): void {
    if (this.#isGivenUp) return
    if (this.#large) {
      this.#chunks = []
      this.#large.sink.breakOff()
    } else this.#giveUp(error)
  }

  #giveUp(error: HomeportError): void {
    this.#isGivenUp = true
    this.#chunks = []
    this.#reader.onLost(error)
  }

  /** @returns what stands behind the large reply */
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

  /** Whether `chunk` ends in a large reply that is passed on. One whose head is spread over two chunks is gathered. */
  #beginsLarge(chunk: LentBytes): boolean {
    const framer = this.#framer
    let isBegun = !framer.midReply
    for (let at = 0; at < chunk.length; ) {
      at = framer.scan(chunk, at, Number.POSITIVE_INFINITY)
      this.#count += framer.completed
      if (framer.completed > 0) isBegun = true
    }
    const { bulkBytes, midReply, replyStart } = framer
    if (!isBegun || !midReply || bulkBytes < LARGE_REPLY_BYTES || this.#bytes > MOST_BEFORE_BYTES) return false
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
