import { StringDecoder } from 'node:string_decoder'
import { kept } from '../resp/lent-memory.js'
import type { ReplyForm } from './reply-form.js'
import type { LargeSink } from './send-commands.js'

/** Where the body of an answer is written piece by piece. */
export interface AnswerBody {
  write(piece: string | Buffer): void
  /** Resolves when more may be written: the client has read what was, or is gone. */
  whenRead(): Promise<void>
  /** Nothing follows. */
  end(): void
  /** The rest will never come. The client has to notice it, and cannot be told. */
  breakOff(): void
}

const JSON_BEGIN = '{"result":"'
const JSON_END = '"}'
const BASE64_GROUP_BYTES = 3

/** Writes a large bulk string into the form that the client asked for, piece by piece. */
interface PieceWriter {
  /** Length of the whole body, bytes; undefined where it depends on what comes. */
  readonly bodyBytes: number | undefined
  readonly begin: string
  readonly end: string
  piece(bytes: Buffer): string | Buffer
  rest(): string
}

function writerOf({ format, encoding }: ReplyForm, bytes: number): PieceWriter {
  if (format === 'resp2') return new RawPieces(bytes)
  return encoding === 'base64' ? new Base64Pieces(bytes) : new TextPieces()
}

/** The bytes as they are, as a reply of RESP2. */
class RawPieces implements PieceWriter {
  readonly bodyBytes: number
  readonly begin: string
  readonly end = '\r\n'

  constructor(bytes: number) {
    this.begin = `$${bytes}\r\n`
    this.bodyBytes = this.begin.length + bytes + this.end.length
  }

  piece(bytes: Buffer): Buffer {
    return kept(bytes)
  }

  rest(): string {
    return ''
  }
}

/** Base64 in JSON: three bytes are four characters, whatever the pieces are. */
class Base64Pieces implements PieceWriter {
  readonly bodyBytes: number
  readonly begin = JSON_BEGIN
  readonly end = JSON_END
  #left = Buffer.alloc(0)

  constructor(bytes: number) {
    this.bodyBytes = JSON_BEGIN.length + 4 * Math.ceil(bytes / BASE64_GROUP_BYTES) + JSON_END.length
  }

  piece(bytes: Buffer): string {
    const all = this.#left.length === 0 ? bytes : Buffer.concat([this.#left, bytes])
    const whole = all.length - (all.length % BASE64_GROUP_BYTES)
    this.#left = Buffer.from(all.subarray(whole))
    return all.toString('base64', 0, whole)
  }

  rest(): string {
    return this.#left.toString('base64')
  }
}

/** UTF-8 in JSON; a character may be spread over two pieces. */
class TextPieces implements PieceWriter {
  readonly bodyBytes = undefined
  readonly begin = JSON_BEGIN
  readonly end = JSON_END
  readonly #decoder = new StringDecoder('utf8')

  piece(bytes: Buffer): string {
    return escaped(this.#decoder.write(bytes))
  }

  rest(): string {
    return escaped(this.#decoder.end())
  }
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/**
 * Writes a large bulk string into an answer while it comes from the engine, so that it is never held as a whole, let alone
 * twice.
 */
export class LargeReply implements LargeSink {
  readonly #body: AnswerBody
  readonly #writer: PieceWriter
  readonly #ended: () => void

  /** `ended` is called when all of it has been written. */
  constructor(body: AnswerBody, form: ReplyForm, bytes: number, ended: () => void) {
    this.#body = body
    this.#writer = writerOf(form, bytes)
    this.#ended = ended
  }

  /** Length of what is written, bytes; undefined where it is not known beforehand. */
  get writtenBytes(): number | undefined {
    return this.#writer.bodyBytes
  }

  /** What stands before it has been written. */
  begin(): this {
    this.#body.write(this.#writer.begin)
    return this
  }

  take(bytes: Buffer): void {
    if (bytes.length > 0) this.#body.write(this.#writer.piece(bytes))
  }

  end(): void {
    this.#body.write(this.#writer.rest() + this.#writer.end)
    this.#ended()
  }

  breakOff(): void {
    this.#body.breakOff()
  }
}
