import { replyJson } from './http-answers.js'
import { READ_AT_ONCE_BYTES } from './in-turns.js'
import { type AnswerBody, LargeReply } from './large-reply.js'
import { readReplies, readRepliesInTurns, replyBytes, replyBytesInTurns } from './read-replies.js'
import type { ReplyForm } from './reply-form.js'
import type { LargeSink } from './send-commands.js'
import { isPrepared, type Slot } from './slots.js'

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
