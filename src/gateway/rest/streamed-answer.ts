import { yieldToEventLoop } from '../../base/index.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { type ReplyForm, replyJson } from './http-answers.js'
import type { LargeReplySink } from './replies-reader.js'
import { READ_AT_ONCE_BYTES, readReplies, readRepliesInSlices, replyBytes, replyBytesInSlices } from './reply-reader.js'
import { isPrepared, type Slot } from './slots.js'
import { base64Length, type StringPieces, stringPieces } from './string-pieces.js'

/** The body of an answer that is written piece by piece. */
export interface AnswerBody {
  write(piece: string | Buffer): void
  /** Resolves when more may be written: the client has read enough, or has disconnected. */
  whenRead(): Promise<void>
  /** Ends the answer. */
  end(): void
  /** Closes the connection, because the rest will never arrive. The head is sent, so nothing else can report the error. */
  abort(): void
}

const RESULT_BEGIN = '{"result":'
const STRING_BEGIN = `${RESULT_BEGIN}"`
const STRING_END = '"}'

/** The parts of an answer with a large bulk string, in the form that the client asked for. */
interface LargeForm {
  /** Length of the whole body, bytes; undefined when it depends on the content. */
  readonly bodyBytes: number | undefined
  readonly begin: string
  readonly pieces: StringPieces | typeof UNCHANGED
  readonly end: string
}

/** Passes the bytes of a RESP2 reply on unchanged. */
const UNCHANGED = { piece: keep, rest: () => '' }

function largeForm({ format, encoding }: ReplyForm, bytes: number): LargeForm {
  if (format === 'resp2') {
    const [begin, end] = [`$${bytes}\r\n`, '\r\n']
    return { bodyBytes: begin.length + bytes + end.length, begin, pieces: UNCHANGED, end }
  }
  const bodyBytes = STRING_BEGIN.length + base64Length(bytes) + STRING_END.length
  return {
    bodyBytes: encoding === 'base64' ? bodyBytes : undefined,
    begin: STRING_BEGIN,
    pieces: stringPieces(encoding),
    end: STRING_END,
  }
}

/**
 * Writes a large bulk string into an answer while it arrives from the engine, so that it is never held as a whole.
 */
export class LargeReply implements LargeReplySink {
  readonly #body: AnswerBody
  readonly #form: LargeForm
  readonly #ended: () => void

  /** `ended` is called when the whole string has been written. */
  constructor(body: AnswerBody, form: ReplyForm, bytes: number, ended: () => void) {
    this.#body = body
    this.#form = largeForm(form, bytes)
    this.#ended = ended
  }

  /** Length of the whole body, bytes; undefined if it depends on the content. */
  get writtenBytes(): number | undefined {
    return this.#form.bodyBytes
  }

  /** Writes the text before the string. */
  begin(): this {
    this.#body.write(this.#form.begin)
    return this
  }

  take(bytes: LentBytes): void {
    if (bytes.length > 0) this.#body.write(this.#form.pieces.piece(bytes))
  }

  end(): void {
    this.#body.write(this.#form.pieces.rest() + this.#form.end)
    this.#ended()
  }

  abort(): void {
    this.#body.abort()
  }
}

/** Characters of an answer that are gathered before they are written. */
const WRITTEN_AT_ONCE = 65_536

/** Writes a large answer in pieces: yields to the event loop, and waits for a client that reads slowly. */
class SlicedBody {
  readonly #body: AnswerBody
  #text = ''

  constructor(body: AnswerBody) {
    this.#body = body
  }

  /** Writes more of the answer. */
  async write(text: string): Promise<void> {
    this.#text += text
    if (this.#text.length >= WRITTEN_AT_ONCE) await this.flush()
  }

  /** Writes `{"result":…}`. */
  async writeResult(pieces: readonly string[]): Promise<void> {
    await this.write(RESULT_BEGIN)
    for (const piece of pieces) await this.write(piece)
    await this.write('}')
  }

  /** Writes the gathered text. */
  async flush(): Promise<void> {
    this.#body.write(this.#text)
    this.#text = ''
    await this.#body.whenRead()
    await yieldToEventLoop()
  }
}

/** Writes a large result, and ends the answer. `body` is an answer whose head has been written. */
export async function writeLargeResult(body: AnswerBody, pieces: readonly string[]): Promise<void> {
  const sliced = new SlicedBody(body)
  await sliced.writeResult(pieces)
  await sliced.flush()
  body.end()
}

/** The answer to a pipeline with large or many replies. It is written while the replies arrive or are read. */
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

  /** Like `end`, for any number of replies: yields to the event loop, and waits for a client that reads slowly. */
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
    const sliced = new SlicedBody(this.#body)
    for await (const reply of readRepliesInSlices(this.#slots, replies, this.#form.encoding)) {
      await sliced.write(this.#separator)
      this.#separator = ','
      if ('pieces' in reply) await sliced.writeResult(reply.pieces)
      else if ('error' in reply) await sliced.write(replyJson(reply))
      else {
        await sliced.flush()
        await this.#writeLong(reply.long)
      }
    }
    await sliced.write(']')
    await sliced.flush()
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

  abort(): void {
    this.#body.abort()
  }

  /** Takes the next slots: those of `count` commands, and the errors before the next command after them. */
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
