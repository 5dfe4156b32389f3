import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors.js'
import type { ClientAddresses } from '../../http/index.js'
import { errorText } from '../error-text.js'
import type { SyncTokens } from '../regions/sync-token.js'
import type { GatewayLogger } from '../seams.js'
import { type HttpAnswers, SYNC_TOKEN_HEADER } from './http-answers.js'
import { LargeReply } from './large-reply.js'
import { discardBehindAnswer } from './refused-body.js'
import type { ReplyForm } from './reply-form.js'
import type { Slot } from './slots.js'
import { StreamedPipeline } from './streamed-pipeline.js'

/** What exchanges need of the listener. */
export interface ExchangeParts {
  readonly answers: HttpAnswers
  readonly tokens: SyncTokens
  readonly addresses: ClientAddresses
  readonly clock: Clock
  readonly logger: GatewayLogger
}

/** One HTTP request and its answer. */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly parts: ExchangeParts
  /** A client that wanted to be told whether it may send the body has been told so. */
  #isWelcome = false

  constructor(request: IncomingMessage, response: ServerResponse, parts: ExchangeParts) {
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

  /** Answers with JSON text, one who has seen `moment`. */
  answer(json: string, moment: number | undefined): void {
    this.parts.answers.ok(this.request, this.response, json, moment)
  }

  /** Answers with the bytes of replies. */
  answerBytes(bytes: Buffer, moment: number | undefined): void {
    this.parts.answers.bytes(this.request, this.response, bytes, moment)
  }

  /** Begins to answer with a bulk string of so many bytes, which are still to come. */
  beginLarge(form: ReplyForm, bytes: number): LargeReply {
    const reply = new LargeReply(this.response, form, bytes, () => this.response.end())
    this.parts.answers.begin(this.request, this.response, form.format, reply.writtenBytes)
    return reply.begin()
  }

  /** Begins to answer a pipeline whose replies are still to come. */
  beginPipeline(form: ReplyForm, slots: readonly Slot[]): StreamedPipeline {
    this.parts.answers.begin(this.request, this.response, form.format, undefined)
    return new StreamedPipeline(this.response, form, slots)
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
    const shown = error instanceof HomeportError ? error : this.#internal(error)
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
