import { StringDecoder } from 'node:string_decoder'
import { yieldToEventLoop } from '../../base/index.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { type ReplyForm, replyJson } from './http-answers.js'
import type { LargeReplySink } from './replies-reader.js'
import { READ_AT_ONCE_BYTES, readReplies, readRepliesInSlices, replyBytes, replyBytesInSlices } from './reply-reader.js'
import { isPrepared, type Slot } from './slots.js'

/** The body of an answer that is written piece by piece. */
export interface AnswerBody {
  write(piece: string | Buffer): void
  /** Resolves when more may be written: the client has read enough, or is gone. */
  whenRead(): Promise<void>
  /** Ends the answer. */
  end(): void
  /** The rest will never arrive. Closes the connection: the head is sent, so nothing else can report the error. */
  breakOff(): void
}

const JSON_BEGIN = '{"result":"'
const JSON_END = '"}'
const BASE64_GROUP_BYTES = 3

/** Encodes a large bulk string piece by piece, in the form that the client asked for. */
interface PieceWriter {
  /** Length of the whole body, bytes; undefined when it depends on the content. */
  readonly bodyBytes: number | undefined
  readonly begin: string
  readonly end: string
  piece(bytes: LentBytes): string | Buffer
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

  piece(bytes: LentBytes): KeptBytes {
    return keep(bytes)
  }

  rest(): string {
    return ''
  }
}

/** Base64 in JSON: three bytes become four characters, so up to two bytes wait for the next piece. */
class Base64Pieces implements PieceWriter {
  readonly bodyBytes: number
  readonly begin = JSON_BEGIN
  readonly end = JSON_END
  #left = Buffer.alloc(0)

  constructor(bytes: number) {
    this.bodyBytes = JSON_BEGIN.length + 4 * Math.ceil(bytes / BASE64_GROUP_BYTES) + JSON_END.length
  }

  piece(bytes: LentBytes): string {
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

  piece(bytes: LentBytes): string {
    return escaped(this.#decoder.write(bytes))
  }

  rest(): string {
    return escaped(this.#decoder.end())
  }
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/**
 * Writes a large bulk string into an answer while it arrives from the engine, so that it is never held as a whole.
 */
export class LargeReply implements LargeReplySink {
  readonly #body: AnswerBody
  readonly #writer: PieceWriter
  readonly #ended: () => void

  /** `ended` is called when all of it has been written. */
  constructor(body: AnswerBody, form: ReplyForm, bytes: number, ended: () => void) {
    this.#body = body
    this.#writer = writerOf(form, bytes)
    this.#ended = ended
  }

  /** Length of the whole body, bytes; undefined when it is not known beforehand. */
  get writtenBytes(): number | undefined {
    return this.#writer.bodyBytes
  }

  /** Writes what stands before the string. */
  begin(): this {
    this.#body.write(this.#writer.begin)
    return this
  }

  take(bytes: LentBytes): void {
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

/** Characters of an answer that are gathered before they are written. */
const WRITTEN_AT_ONCE = 65_536

/** The answer to a pipeline with large replies, or many, which is written while they arrive or are read. */
export class StreamedPipeline {
  readonly #body: AnswerBody
  readonly #form: ReplyForm
  /** Slots that are not yet answered. */
  #slots: readonly Slot[]
  /** The JSON punctuation before the next reply. */
  #separator = '['

  /** `body` is an answer whose head has been written. */
  constructor(body: AnswerBody, form: ReplyForm, slots: readonly Slot[]) {
    this.#body = body
    this.#form = form
    this.#slots = slots
  }

  /** Writes the `count` replies in `replies`, and begins a large one of `bytes` bytes behind them. */
  large(replies: LentBytes, count: number, bytes: number): LargeReplySink {
    this.#write(this.#take(count), replies)
    this.#separate()
    this.#slots = this.#slots.slice(1)
    return new LargeReply(this.#body, this.#form, bytes, () => {}).begin()
  }

  /** Writes the replies to the commands that are left, and ends the answer. */
  end(replies: LentBytes): void {
    this.#write(this.#slots, replies)
    if (this.#form.format === 'json') this.#body.write(']')
    this.#body.end()
  }

  /** The same for any number of replies: lets other requests run, and waits for a client that reads slowly. */
  async endInSlices(replies: KeptBytes): Promise<void> {
    if (replies.length <= READ_AT_ONCE_BYTES) {
      this.end(replies)
      return
    }
    if (this.#form.format === 'resp2') {
      this.#body.write(await replyBytesInSlices(this.#slots, replies))
      this.#body.end()
      return
    }
    let text = ''
    for await (const reply of readRepliesInSlices(this.#slots, replies, this.#form.encoding)) {
      text += this.#separator
      this.#separator = ','
      if ('long' in reply) {
        this.#body.write(text)
        text = ''
        await this.#writeLong(reply.long)
        continue
      }
      text += replyJson(reply)
      if (text.length < WRITTEN_AT_ONCE) continue
      this.#body.write(text)
      text = ''
      await this.#body.whenRead()
    }
    this.#body.write(`${text}]`)
    this.#body.end()
  }

  async #writeLong(bytes: KeptBytes): Promise<void> {
    const sink = new LargeReply(this.#body, this.#form, bytes.length, () => {}).begin()
    for (let at = 0; at < bytes.length; at += READ_AT_ONCE_BYTES) {
      sink.take(bytes.subarray(at, at + READ_AT_ONCE_BYTES))
      await this.#body.whenRead()
      await yieldToEventLoop()
    }
    sink.end()
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

  #write(slots: readonly Slot[], replies: LentBytes): void {
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
