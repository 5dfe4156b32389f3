import { constants } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type ClientMemoryBudget,
  type Clock,
  codeOf,
  type Holder,
  onceOver,
  WORTH_NOTING_BYTES,
} from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ClientAddresses } from '../../http/index.js'
import type { GatewayLogger } from '../deps.js'
import { errorText } from '../error-text.js'
import type { SyncTokens } from '../replicas/sync-token.js'
import type { ReplyForm } from './http-answers.js'
import { type HttpAnswers, SYNC_TOKEN_HEADER } from './http-answers.js'
import type { Slot } from './slots.js'
import { type AnswerBody, LargeReply, StreamedPipeline } from './streamed-answer.js'

/** What exchanges need of the listener. */
export interface ExchangeDeps {
  readonly answers: HttpAnswers
  readonly tokens: SyncTokens
  readonly addresses: ClientAddresses
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** What all clients together may make the process hold. */
  readonly memory: ClientMemoryBudget
}

/** All replies of one request together may take this part of what may be held for everybody. */
const SHARE_OF_REQUEST = 1 / 4

/** What the engine of JavaScript says when a text becomes too long. */
const TOO_LONG = /^Invalid string length$/

/** One HTTP request and its answer. */
export class Exchange implements Holder, AnswerBody {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly parts: ExchangeDeps
  /** A client that wanted to be told whether it may send the body has been told so. */
  #isWelcome = false
  /** The database whose token came with the request; nothing is held before. */
  owner = ''
  /** The longest reply that one command may have, bytes. */
  maxReplyBytes = 0
  #bodyBytes = 0
  #replyBytes = 0
  #isNoted = false
  #hasGivenWay = false

  constructor(request: IncomingMessage, response: ServerResponse, parts: ExchangeDeps) {
    this.request = request
    this.response = response
    this.parts = parts
  }

  /** Where the client is; undefined when its connection is gone. */
  get address(): string | undefined {
    return this.parts.addresses.of(this.request)
  }

  /** What the client says that it has seen, as a moment of its database. */
  get moment(): number {
    return this.parts.tokens.momentOf(this.request.headers[SYNC_TOKEN_HEADER]?.toString())
  }

  /** Whether an answer has begun. */
  get isAnswered(): boolean {
    return this.response.headersSent
  }

  /** What has come of the body and of the replies, and what of the answer was not read. */
  get heldBytes(): number {
    const { response } = this
    return response.destroyed ? 0 : this.#bodyBytes + this.#replyBytes + response.writableLength
  }

  evict(): void {
    this.#hasGivenWay = true
    this.#bodyBytes = this.#replyBytes = 0
    this.#warn(
      'a REST request was given up: too much had to be held of what its client did not send to its end, or not read',
    )
    if (this.isAnswered) this.breakOff()
    else this.fail(new HomeportError('memory_short', {}))
  }

  /** So much more of the body is held. @returns whether the rest is still wanted */
  hold(bytes: number): boolean {
    this.#bodyBytes += bytes
    this.#grew(bytes)
    return !this.#hasGivenWay
  }

  /** So much more of the replies is going to be held. @returns why it must not be, if so */
  holdReplies(bytes: number): HomeportError | undefined {
    this.#replyBytes += bytes
    this.#grew(bytes)
    const limitBytes = this.#maxUnreadBytes
    if (this.#replyBytes > limitBytes) return new HomeportError('replies_too_large', { limitBytes })
    return this.#hasGivenWay || this.response.destroyed ? new HomeportError('memory_short', {}) : undefined
  }

  /** Writes a piece of an answer that has begun. */
  write(piece: string | Buffer): void {
    const { response } = this
    if (response.destroyed) return
    // What waits is kept outside of the heap, where it is no larger than it says.
    response.write(typeof piece === 'string' && response.writableLength > 0 ? Buffer.from(piece) : piece)
    this.noteUnread(piece.length)
    if (response.writableLength <= this.#maxUnreadBytes) return
    this.#warn('a REST client that does not read its answer was disconnected')
    this.breakOff()
  }

  whenRead(): Promise<void> {
    const { response } = this
    if (response.destroyed || !response.writableNeedDrain) return Promise.resolve()
    return new Promise((resolve) => {
      const goOn = (): void => {
        response.off('drain', goOn).off('close', goOn)
        resolve()
      }
      response.on('drain', goOn).on('close', goOn)
    })
  }

  end(): void {
    this.response.end()
  }

  breakOff(): void {
    this.response.destroy()
  }

  /** So many bytes have been written that the client may not read. */
  noteUnread(bytes: number): void {
    if (this.response.writableLength > WORTH_NOTING_BYTES) this.#grew(bytes)
  }

  #grew(bytes: number): void {
    const { memory } = this.parts
    if (!this.#isNoted) onceOver(this.request, this.response, () => memory.gone(this))
    this.#isNoted = true
    memory.grew(this, bytes)
  }

  get #maxUnreadBytes(): number {
    return Math.max(this.maxReplyBytes, this.parts.memory.limitBytes * SHARE_OF_REQUEST)
  }

  #warn(message: string): void {
    this.parts.logger.warn({ databaseId: this.owner, address: this.address }, message)
  }

  /** Answers with JSON text, one who has seen `moment`. */
  answer(json: string, moment: number | undefined): void {
    this.parts.answers.ok(this.request, this.response, json, moment)
    this.#written(json.length)
  }

  /** Answers with the bytes of replies. */
  answerBytes(bytes: Buffer, moment: number | undefined): void {
    this.parts.answers.bytes(this.request, this.response, bytes, moment)
    this.#written(bytes.length)
  }

  /** Begins to answer with a bulk string of so many bytes, which are still to come. */
  beginLarge(form: ReplyForm, bytes: number): LargeReply {
    const reply = new LargeReply(this, form, bytes, () => this.end())
    this.parts.answers.begin(this.request, this.response, form.format, reply.writtenBytes)
    return reply.begin()
  }

  /** Begins to answer a pipeline whose replies are not all read, or are still to come. */
  beginPipeline(form: ReplyForm, slots: readonly Slot[], moment?: number): StreamedPipeline {
    this.parts.answers.begin(this.request, this.response, form.format, undefined, moment)
    return new StreamedPipeline(this, form, slots)
  }

  /** An answer has been written whole; its replies are no longer held. */
  #written(bytes: number): void {
    this.#bodyBytes = this.#replyBytes = 0
    if (bytes > WORTH_NOTING_BYTES) this.noteUnread(bytes)
  }

  /** The client may send the body, if it waits to be told so and has no answer yet. */
  welcomeBody(): void {
    if (this.request.headers.expect === undefined || this.response.headersSent) return
    this.#isWelcome = true
    this.response.writeContinue()
  }

  /** Answers with an error of the engine. */
  answerError(status: number, text: string): void {
    if (!this.request.complete) this.#answerEarly()
    this.parts.answers.error(this.request, this.response, status, text)
  }

  /** Answers with what went wrong, unless there is an answer already. */
  fail(error: unknown): void {
    if (this.response.headersSent || this.request.socket.destroyed) return
    const shown = error instanceof HomeportError ? error : (tooLongAnswer(error) ?? this.#internal(error))
    this.answerError(shown.status, errorText(shown))
  }

  /** A client that still waits to be told that it may send its body may do so or not, so nothing can follow. */
  #answerEarly(): void {
    if (this.request.headers.expect !== undefined && !this.#isWelcome) this.response.shouldKeepAlive = false
    else discardBehindAnswer(this.request, this.response)
  }

  #internal(error: unknown): HomeportError {
    const reference = Math.floor(this.parts.clock.now()).toString(36)
    this.parts.logger.error({ error, reference }, 'a REST request failed')
    return new HomeportError('internal', { reference })
  }
}

/** What is wrong when a text would have been longer than any can be. JSON writes some bytes as six. */
function tooLongAnswer(error: unknown): HomeportError | undefined {
  const isTooLong =
    codeOf(error) === 'ERR_STRING_TOO_LONG' || (error instanceof RangeError && TOO_LONG.test(error.message))
  return isTooLong ? new HomeportError('answer_too_long', { limitBytes: constants.MAX_STRING_LENGTH }) : undefined
}

/** So much of a body is read and thrown away behind the answer; whoever sends more is disconnected. */
const MOST_BYTES = 2 ** 30

/**
 * For a request that is answered before it has come whole: most clients read an answer only once they have sent
 * everything, and a connection that is closed while bytes arrive is reset, which takes the answer with it. So what
 * still comes is thrown away, within the time that every request has, and the next request on the connection is served.
 */
function discardBehindAnswer(request: IncomingMessage, response: ServerResponse): void {
  // Node lets the body go when it has sent the answer, and takes away whoever listened before.
  response.on('finish', () => {
    let left = MOST_BYTES
    request.on('data', (piece: Buffer) => {
      left -= piece.length
      if (left < 0) request.socket.destroy()
    })
  })
}
