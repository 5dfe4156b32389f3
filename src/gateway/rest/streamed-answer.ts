import { StringDecoder } from 'node:string_decoder'
import { kept } from '../resp/lent-memory.js'
import { type ReplyForm, replyJson } from './http-answers.js'
import { READ_AT_ONCE_BYTES, readReplies, readRepliesInTurns, replyBytes, replyBytesInTurns } from './reply-reader.js'
import type { LargeSink } from './send-commands.js'
import { isPrepared, type Slot } from './slots.js'

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

/** Characters of the answer that are gathered before they are written. */
const WRITTEN_AT_ONCE = 65_536

/** The answer to a pipeline among whose replies there are large ones, which is written while they come. */
export class StreamedPipeline {
  readonly #body: AnswerBody
  readonly #form: ReplyForm
  /** Slots that are not yet answered. */
  #slots: readonly Slot[]
  /** What stands before the next reply in JSON. */
  #separator = '['

  /** The head of the answer has been written. */
  constructor(body: AnswerBody, form: ReplyForm, slots: readonly Slot[]) {
    this.#body = body
    this.#form = form
    this.#slots = slots
  }

  /** Writes the `count` replies that stand in `replies`, and begins a large one behind them. */
  large(replies: Buffer, count: number, bytes: number): LargeSink {
    this.#write(this.#take(count), replies)
    this.#separate()
    this.#slots = this.#slots.slice(1)
    return new LargeReply(this.#body, this.#form, bytes, () => {}).begin()
  }

  /** Writes the replies to all that is left. */
  end(replies: Buffer): void {
    this.#write(this.#slots, replies)
    if (this.#form.format === 'json') this.#body.write(']')
    this.#body.end()
  }

  /** The same of any number of replies, which are not lent; others, and a client that reads slowly, are waited for. */
  async endInTurns(replies: Buffer): Promise<void> {
    if (replies.length <= READ_AT_ONCE_BYTES) {
      this.end(replies)
      return
    }
    if (this.#form.format === 'resp2') {
      this.#body.write(await replyBytesInTurns(this.#slots, replies))
      this.#body.end()
      return
    }
    let text = ''
    for await (const reply of readRepliesInTurns(this.#slots, replies, this.#form.encoding)) {
      text += this.#separator + replyJson(reply)
      this.#separator = ','
      if (text.length < WRITTEN_AT_ONCE) continue
      this.#body.write(text)
      text = ''
      await this.#body.whenRead()
    }
    this.#body.write(`${text}]`)
    this.#body.end()
  }

  breakOff(): void {
    this.#body.breakOff()
  }

  /** The next slots: those of `count` commands, and the errors before the command behind them. */
  #take(count: number): readonly Slot[] {
    let left = count
    const end = this.#slots.findIndex((slot) => isPrepared(slot) && left-- === 0)
    const taken = this.#slots.slice(0, end < 0 ? this.#slots.length : end)
    this.#slots = this.#slots.slice(taken.length)
    return taken
  }

  #write(slots: readonly Slot[], replies: Buffer): void {
    if (this.#form.format === 'resp2') {
      this.#body.write(replyBytes(slots, replies))
      return
    }
    for (const reply of readReplies(slots, replies, this.#form.encoding)) {
      this.#separate()
      this.#body.write(replyJson(reply))
    }
  }

  #separate(): void {
    if (this.#form.format === 'json') this.#body.write(this.#separator)
    this.#separator = ','
  }
}
