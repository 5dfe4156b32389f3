import { IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { systemClock } from '../../base/index.js'
import type { PlainHead } from './plain-head.js'

/** A plain request, whose body has arrived with its head. Node's code that reads a request as a stream can read it, too. */
export class PlainRequest extends IncomingMessage {
  /** The whole body. */
  readonly body: Buffer

  constructor(socket: Socket, head: PlainHead, body: Buffer) {
    super(socket)
    this.httpVersionMajor = 1
    this.httpVersionMinor = 1
    this.httpVersion = '1.1'
    this.method = head.method
    this.url = head.target
    this.headers = head.headers
    this.complete = true
    this.body = body
  }

  override _read(): void {
    this.push(this.body)
    this.push(null)
  }
}

/** The connection, as a response to a plain request uses it. */
export interface PlainWriter {
  /** Sends a whole answer, unless bytes of an earlier one are queued. @returns whether the answer was sent */
  sendNow(answer: Buffer): boolean
  /** Reports that the response is complete. */
  answered(response: PlainResponse): void
}

/** An answer whose head and body are complete. */
export interface WholeAnswer {
  readonly status: number
  /** Alternating names and values, including the length of the body. */
  readonly headers: readonly string[]
  readonly text: string
  /** `latin1` for ASCII, which most texts are: Node writes it faster. */
  readonly encoding: 'latin1' | 'utf8'
}

/** Longer answers, characters, go through Node's response, which counts what the client leaves unread. */
const MAX_AT_ONCE_BYTES = 16_384

/**
 * The response to a plain request: Node's response, which can also send a short answer in one call. Node takes a dozen calls
 * for the same bytes, which are more than half of the cost of an answer.
 */
export class PlainResponse extends ServerResponse {
  override headersSent = false
  override writableNeedDrain = false
  readonly #writer: PlainWriter

  constructor(request: PlainRequest, writer: PlainWriter) {
    super(request)
    this.#writer = writer
  }

  /** Every answer that Node's response sends begins here. */
  override writeHead(statusCode: number, ...rest: never[]): this {
    this.headersSent = true
    this.once('finish', () => this.#writer.answered(this))
    if (this.shouldKeepAlive) this.setHeader('Keep-Alive', `timeout=${KEEP_ALIVE_SECONDS}`)
    return super.writeHead(statusCode, ...rest)
  }

  override write(chunk: unknown, ...rest: never[]): boolean {
    const mayFollow = super.write(chunk, ...rest)
    this.writableNeedDrain = !mayFollow
    return mayFollow
  }

  /** Called when the connection can take more bytes. */
  drained(): void {
    if (!this.writableNeedDrain) return
    this.writableNeedDrain = false
    this.emit('drain')
  }

  /** Emits `close`: the connection is free for the next response. */
  over(): void {
    this.destroyed = true
    this.emit('close')
  }

  /** Answers in one call. @returns false when Node's response has to send the answer */
  sendWhole({ status, headers, text, encoding }: WholeAnswer): boolean {
    if (!this.shouldKeepAlive || text.length > MAX_AT_ONCE_BYTES || this.getHeaderNames().length > 0) return false
    let answer = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
    for (let at = 0; at < headers.length; at += 2) answer += `${headers[at]}: ${headers[at + 1]}\r\n`
    if (!this.#writer.sendNow(Buffer.from(`${answer}${lastLines()}${text}`, encoding))) return false
    this.statusCode = status
    this.headersSent = true
    this.emit('finish')
    this.#writer.answered(this)
    return true
  }
}

/** How long a connection without a request stays open. */
export const KEEP_ALIVE_SECONDS = 75

let linesOfSecond = { second: 0, lines: '' }

/** The lines that Node would add to each head, and the empty line after them. */
function lastLines(): string {
  const second = Math.floor(systemClock.now() / 1_000)
  if (second !== linesOfSecond.second) {
    const date = new Date(second * 1_000).toUTCString()
    const lines = `Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_SECONDS}\r\n\r\n`
    linesOfSecond = { second, lines }
  }
  return linesOfSecond.lines
}
