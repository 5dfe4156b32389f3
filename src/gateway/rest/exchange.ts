import { constants } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type ClientMemoryBudget,
  type Clock,
  codeOf,
  type MemoryConsumer,
  MIN_REPORTED_BYTES,
} from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type ClientAddresses, onResponseOver, requestIdOf } from '../../http/index.js'
import type { TraceHeaders } from '../../telemetry/index.js'
import type { GatewayLogger } from '../deps.js'
import { errorText } from '../error-text.js'
import type { SyncTokens } from '../replicas/sync-token.js'
import type { ReplyForm } from './http-answers.js'
import { type HttpAnswers, SYNC_TOKEN_HEADER } from './http-answers.js'
import type { RepliesClient } from './replies-reader.js'
import type { Slot } from './slots.js'
import { type AnswerBody, LargeReply, StreamedPipeline, writeLargeResult } from './streamed-answer.js'

/** The collaborators that the exchanges of a listener share. */
export interface ExchangeDeps {
  readonly answers: HttpAnswers
  readonly tokens: SyncTokens
  readonly addresses: ClientAddresses
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** The memory that all clients together may use. */
  readonly memory: ClientMemoryBudget
}

/** The replies of one request may use this share of the memory for all clients. */
const SHARE_OF_REQUEST = 1 / 4

/** V8's error message for a string that becomes too long. */
const TOO_LONG = /^Invalid string length$/

/** One HTTP request and its answer. */
export class Exchange implements MemoryConsumer, AnswerBody, RepliesClient {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly deps: ExchangeDeps
  /** Whether `100 Continue` has been sent. */
  #hasContinued = false
  /** The id of the database whose token the request carries. Set before any memory is held for the request. */
  owner = ''
  /** The longest reply that one command may have, bytes. */
  maxReplyBytes = 0
  /** Call it when another node answers: begins the span of a traced request. @returns the trace context for that node. */
  traceForNode: () => TraceHeaders | undefined = () => undefined
  #bodyBytes = 0
  #replyBytes = 0
  #isCounted = false
  #isEvicted = false
  #requestId: string | undefined

  constructor(request: IncomingMessage, response: ServerResponse, deps: ExchangeDeps) {
    this.request = request
    this.response = response
    this.deps = deps
  }

  /** The client's address; undefined when its connection is closed. */
  get address(): string | undefined {
    return this.deps.addresses.of(this.request)
  }

  /** The client's id of the request, or one that is made when first needed: for an error or a line of the log. */
  get requestId(): string {
    this.#requestId ??= requestIdOf(this.request.headers)
    return this.#requestId
  }

  /** The moment of the database that the client has seen, according to its sync token. */
  get moment(): number {
    return this.deps.tokens.momentOf(this.request.headers[SYNC_TOKEN_HEADER]?.toString())
  }

  /** Whether an answer has begun. */
  get isAnswered(): boolean {
    return this.response.headersSent
  }

  /** Bytes of the body and of the replies that have arrived, and of the answer that the client has not read. */
  get heldBytes(): number {
    const { response } = this
    return response.destroyed ? 0 : this.#bodyBytes + this.#replyBytes + response.writableLength
  }

  evict(): void {
    this.#isEvicted = true
    this.#bodyBytes = this.#replyBytes = 0
    this.#warn('gateway_rest_over_memory')
    if (this.isAnswered) this.abort()
    else this.fail(new HomeportError('memory_short', {}))
  }

  /** Counts `bytes` more bytes of the body that are held. @returns whether the rest should be read */
  holdBody(bytes: number): boolean {
    this.#bodyBytes += bytes
    this.#grew(bytes)
    return !this.#isEvicted
  }

  holdReplies(bytes: number): HomeportError | undefined {
    this.#replyBytes += bytes
    this.#grew(bytes)
    const limitBytes = this.maxUnreadBytes
    if (this.#replyBytes > limitBytes) return new HomeportError('replies_too_large', { limitBytes })
    return this.#isOver ? new HomeportError('memory_short', {}) : undefined
  }

  async whenWanted(): Promise<void> {
    await this.whenRead()
    if (this.#isOver) throw new HomeportError('memory_short', {})
  }

  /** Whether the client no longer gets the rest of the answer. */
  get #isOver(): boolean {
    return this.#isEvicted || this.response.destroyed
  }

  /** Writes a piece of an answer that has begun; disconnects a client that leaves too much unread. */
  write(piece: string | Buffer): void {
    const { response } = this
    if (response.destroyed) return
    // Text that waits would stay in the heap, with an unknown size; the size of a buffer is its length.
    response.write(typeof piece === 'string' && response.writableLength > 0 ? Buffer.from(piece) : piece)
    this.countUnread(piece.length)
    if (response.writableLength <= this.maxUnreadBytes) return
    this.#warn('gateway_rest_not_reading')
    this.abort()
  }

  whenRead(): Promise<void> {
    const { response } = this
    if (response.destroyed || !response.writableNeedDrain) return Promise.resolve()
    return new Promise((resolve) => {
      const proceed = (): void => {
        response.off('drain', proceed).off('close', proceed)
        resolve()
      }
      response.on('drain', proceed).on('close', proceed)
    })
  }

  end(): void {
    this.response.end()
  }

  abort(): void {
    this.response.destroy()
  }

  /** Counts `bytes` bytes that have been written and that the client may leave unread. */
  countUnread(bytes: number): void {
    if (this.response.writableLength > MIN_REPORTED_BYTES) this.#grew(bytes)
  }

  #grew(bytes: number): void {
    const { memory } = this.deps
    // No event would follow that removes a disconnected client from the budget.
    if (this.response.destroyed || this.request.socket.destroyed) return
    if (!this.#isCounted) onResponseOver(this.request, this.response, () => memory.remove(this))
    this.#isCounted = true
    memory.grow(this, bytes)
  }

  /** Bytes of replies that may be held for the client. */
  get maxUnreadBytes(): number {
    return Math.max(this.maxReplyBytes, this.deps.memory.limitBytes * SHARE_OF_REQUEST)
  }

  #warn(event: 'gateway_rest_over_memory' | 'gateway_rest_not_reading'): void {
    const { requestId, owner: databaseId, address } = this
    this.deps.logger.warn(event, { requestId, databaseId, address })
  }

  /** Answers with JSON text. `moment` is the moment that the client has seen with this answer. */
  answer(json: string, moment: number | undefined): void {
    this.deps.answers.ok(this.request, this.response, json, moment)
    this.#written(json.length)
  }

  /** Answers with a large result. */
  async answerLarge(pieces: readonly string[], moment: number | undefined): Promise<void> {
    this.deps.answers.begin(this.request, this.response, 'json', undefined, moment)
    await writeLargeResult(this, pieces)
  }

  /** Answers with the bytes of replies. */
  answerBytes(bytes: Buffer, moment: number | undefined): void {
    this.deps.answers.bytes(this.request, this.response, bytes, moment)
    this.#written(bytes.length)
  }

  /** Begins to answer with a bulk string of `bytes` bytes, which are still to arrive. */
  beginLarge(form: ReplyForm, bytes: number): LargeReply {
    const reply = new LargeReply(this, form, bytes, () => this.end())
    this.deps.answers.begin(this.request, this.response, form.format, reply.writtenBytes)
    return reply.begin()
  }

  /** Begins to answer a pipeline before all of its replies have arrived or were read. */
  beginPipeline(form: ReplyForm, slots: readonly Slot[], moment?: number): StreamedPipeline {
    this.deps.answers.begin(this.request, this.response, form.format, undefined, moment)
    return new StreamedPipeline(this, form, slots)
  }

  /** Call it when the whole answer has been written: body and replies are no longer held. */
  #written(bytes: number): void {
    this.#bodyBytes = this.#replyBytes = 0
    if (bytes > MIN_REPORTED_BYTES) this.countUnread(bytes)
  }

  /** Sends `100 Continue` to a client that waits for it and has no answer yet. */
  sendContinue(): void {
    if (this.request.headers.expect === undefined || this.#hasContinued || this.response.headersSent) return
    this.#hasContinued = true
    this.response.writeContinue()
  }

  /** Answers with an error of the engine. */
  answerError(status: number, text: string): void {
    if (!this.request.complete) this.#answerEarly()
    this.deps.answers.error(this.request, this.response, status, text, this.requestId)
  }

  /** Answers with an error, unless an answer has begun. */
  fail(error: unknown): void {
    if (this.response.headersSent || this.request.socket.destroyed) return
    const shown = error instanceof HomeportError ? error : (tooLongAnswer(error) ?? this.#internal(error))
    this.answerError(shown.status, errorText(shown))
  }

  /**
   * Prepares an answer before the whole body has arrived. A client that waits for `100 Continue` may or may not send its
   * body, so no request can follow on the connection.
   */
  #answerEarly(): void {
    if (this.request.headers.expect !== undefined && !this.#hasContinued) this.response.shouldKeepAlive = false
    else discardAfterAnswer(this.request, this.response)
  }

  #internal(error: unknown): HomeportError {
    const reference = Math.floor(this.deps.clock.now()).toString(36)
    this.deps.logger.error('gateway_rest_failed', { error, reference, requestId: this.requestId })
    return new HomeportError('internal', { reference })
  }
}

/** The error for an answer that is longer than a string can be. JSON escapes some bytes with six characters. */
function tooLongAnswer(error: unknown): HomeportError | undefined {
  const isTooLong =
    codeOf(error) === 'ERR_STRING_TOO_LONG' || (error instanceof RangeError && TOO_LONG.test(error.message))
  return isTooLong ? new HomeportError('answer_too_long', { limitBytes: constants.MAX_STRING_LENGTH }) : undefined
}

/** Bytes of a body that are read and dropped after the answer. A client that sends more is disconnected. */
const MAX_BYTES = 2 ** 30

/**
 * Keeps reading after a request was answered before its body had arrived. Most clients read the answer only once they have
 * sent everything. A connection that is closed while bytes arrive is reset, and the answer is lost with it. So the rest of
 * the body is read and dropped, within the time limit of every request, and the connection can serve the next request.
 */
function discardAfterAnswer(request: IncomingMessage, response: ServerResponse): void {
  // The listener is added on `finish`: after the answer Node drops the body and removes earlier listeners.
  response.on('finish', () => {
    let left = MAX_BYTES
    request.on('data', (piece: Buffer) => {
      left -= piece.length
      if (left < 0) request.socket.destroy()
    })
  })
}
