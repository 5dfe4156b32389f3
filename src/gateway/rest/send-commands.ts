import type { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { Awaited, ReplySink } from '../engine/reply-sink.js'
import { kept } from '../resp/lent-memory.js'
import { GatheredReplies } from './gathered-replies.js'

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
