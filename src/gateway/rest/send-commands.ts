import type { HomeportError } from '../../contract/errors.js'
import type { EngineLink } from '../lane/engine-link.js'
import type { ReplySink } from '../lane/reply-sink.js'
import { kept } from '../resp/lent-memory.js'

/** A command as it is sent. */
export interface Wire {
  readonly wire: string | Buffer
}

/** Who waits for the replies of a request. */
export interface RepliesReader {
  /** The bytes of all replies. They may be lent: what is needed after the call has to be copied. */
  onReplies(replies: Buffer): void
  /** The replies will never come. */
  onLost(error: HomeportError): void
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
export function sentCommands(link: EngineLink, commands: readonly Wire[]): Promise<Buffer> {
  if (commands.length === 0) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    sendCommands(link, commands, { onReplies: (replies) => resolve(kept(replies)), onLost: reject })
  })
}

function hasText(command: Wire): command is { readonly wire: string } {
  return typeof command.wire === 'string'
}

/** Replies nearly always come in one piece, which is passed on as it is. */
class WholeReplies implements ReplySink {
  readonly #reader: RepliesReader
  #parts: Buffer[] | undefined
  #left: number

  constructor(count: number, reader: RepliesReader) {
    this.#left = count
    this.#reader = reader
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    const part = chunk.subarray(start, end)
    this.#left -= completed
    if (this.#left === 0 && this.#parts === undefined) {
      this.#reader.onReplies(part)
      return
    }
    this.#parts ??= []
    this.#parts.push(kept(part))
    if (this.#left === 0) this.#reader.onReplies(Buffer.concat(this.#parts))
  }

  fail(_count: number, error: HomeportError): void {
    this.#parts = undefined
    this.#reader.onLost(error)
  }
}
