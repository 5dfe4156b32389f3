import { errors } from 'undici'
import { codeOf, unreachable } from '../../base/index.js'
import { type BodyReader, readerOf } from './body-reader.js'
import { ContinuedResponse } from './continued-response.js'
import {
  isClosedByPeer,
  type OutgoingRequest,
  type RequestController,
  type ResponseHandler,
  type ReusableConnection,
} from './outgoing-request.js'
import { bytesOf } from './plain-request.js'
import { MAX_PLAIN_RESPONSE_HEAD_BYTES, type PlainResponseHead, type PlainResponseHeads } from './plain-response.js'
import type { Wire, WireEvents } from './wire.js'

/** A request on its connection. */
class Exchange implements RequestController {
  readonly request: OutgoingRequest
  readonly handler: ResponseHandler
  readonly #onAbort: (exchange: Exchange, reason: Error) => void

  constructor(
    request: OutgoingRequest,
    handler: ResponseHandler,
    onAbort: (exchange: Exchange, reason: Error) => void,
  ) {
    this.request = request
    this.handler = handler
    this.#onAbort = onAbort
  }

  abort(reason: Error): void {
    this.#onAbort(this, reason)
  }
}

/**
 * The states of a connection.
 *
 * ```
 *   connecting ──▶ asking ──plain head──▶ receiving ──end of the response──▶ waiting
 *                    │ ▲                                                        │
 *                    │ └──────────────────────next request──────────────────────┘
 *                    └──any other head──▶ with undici
 *   any ──the connection ends──▶ closed
 * ```
 *
 * - connecting: for its first request.
 * - asking: the request was written. `begun` holds the bytes of an incomplete response head, which came in `pieces` pieces.
 * - receiving: reads the body of a plain response.
 * - waiting: for the next request, for `sweeps` more sweeps. Sweeps are counted so
 *   that setting the clock ends no connection.
 * - with undici: undici reads the rest of the response.
 */
type State =
  | { readonly kind: 'connecting'; readonly exchange: Exchange }
  | { readonly kind: 'asking'; readonly exchange: Exchange; readonly begun: Buffer; readonly pieces: number }
  | { readonly kind: 'receiving'; readonly exchange: Exchange; readonly body: BodyReader; readonly keepSeconds: number }
  | { readonly kind: 'waiting'; readonly sweeps: number }
  | { readonly kind: 'with undici'; readonly response: ContinuedResponse }
  | { readonly kind: 'closed' }

const CLOSED: State = { kind: 'closed' }
const NOTHING = Buffer.alloc(0)
/** With each piece, a head is parsed again from its start. undici, which parses byte by byte, reads heads of more pieces. */
const MAX_PIECES = 8

/** What a connection is built from. */
export interface PlainConnectionDeps {
  readonly host: string
  readonly heads: PlainResponseHeads
  /** Begins to connect. */
  readonly open: (events: WireEvents) => Wire
  /** Called when the connection waits for a request. */
  readonly onFree: (connection: PlainConnection) => void
  /** Called when the destination has sent a response that is not plain. */
  readonly onOdd: () => void
  /** Called when the connection is closed, perhaps twice. */
  readonly onClosed: (connection: PlainConnection) => void
}

/** A connection that carries plain requests, one after the other. */
export class PlainConnection implements ReusableConnection {
  readonly #deps: PlainConnectionDeps
  readonly #wire: Wire
  #state: State
  #requests = 0
  /** Whether a byte of a response to the current request has come. */
  #isAnswered = false

  /** Connects, and sends a request. */
  constructor(request: OutgoingRequest, handler: ResponseHandler, deps: PlainConnectionDeps) {
    this.#deps = deps
    this.#state = { kind: 'connecting', exchange: new Exchange(request, handler, this.#abort) }
    this.#wire = deps.open({
      onOpen: () => this.#opened(),
      onBytes: (bytes) => this.#take(bytes),
      onClose: (error) => this.#closed(error),
    })
  }

  /** Whether it can take a request. */
  get isFree(): boolean {
    return this.#state.kind === 'waiting' && this.#wire.isUsable
  }

  /** Aborts the request that the connection is being opened for. */
  get opening(): RequestController | undefined {
    return this.#state.kind === 'connecting' ? this.#state.exchange : undefined
  }

  /** waiting → asking. Only while it is free. */
  send(request: OutgoingRequest, handler: ResponseHandler): void {
    this.#ask(new Exchange(request, handler, this.#abort))
  }

  beginRequest(): void {
    this.#requests++
    this.#isAnswered = false
  }

  wasClosedWhileReused(error: Error): boolean {
    return this.#requests > 1 && !this.#isAnswered && isClosedByPeer(codeOf(error))
  }

  /** Counts a sweep, and ends a connection that has waited long enough. */
  sweep(): void {
    const state = this.#state
    if (state.kind !== 'waiting') return
    if (state.sweeps > 1) this.#state = { kind: 'waiting', sweeps: state.sweeps - 1 }
    else this.#end()
  }

  /** Ends the connection if it waits. */
  endWaiting(): void {
    if (this.#state.kind === 'waiting') this.#end()
  }

  /** Ends the connection; its request fails with this error. */
  destroy(error: Error): void {
    this.#wire.destroy(error)
  }

  #opened(): void {
    if (this.#state.kind === 'connecting') this.#ask(this.#state.exchange)
  }

  /** connecting or waiting → asking. */
  #ask(exchange: Exchange): void {
    const { request, handler } = exchange
    const state: State = { kind: 'asking', exchange, begun: NOTHING, pieces: 0 }
    this.#state = state
    request.connection = this
    handler.onRequestStart(exchange)
    // The handler may have ended the request.
    if (this.#state === state) this.#wire.write(bytesOf(request, this.#deps.host))
  }

  #take(bytes: Buffer): void {
    const state = this.#state
    switch (state.kind) {
      case 'asking':
        this.#isAnswered = true
        this.#takeHead(state, state.begun.length > 0 ? Buffer.concat([state.begun, bytes]) : bytes)
        return
      case 'receiving':
        this.#takeBody(state, bytes)
        return
      case 'with undici':
        state.response.take(bytes)
        return
      case 'waiting':
        // The destination sent bytes without a request.
        this.#end()
        return
      case 'connecting':
      case 'closed':
        return
      default:
        unreachable(state)
    }
  }

  /** asking → asking, → receiving, or → with undici. */
  #takeHead({ exchange, pieces }: State & { kind: 'asking' }, bytes: Buffer): void {
    const text = bytes.toString('latin1', 0, Math.min(bytes.length, MAX_PLAIN_RESPONSE_HEAD_BYTES))
    const head = this.#deps.heads.read(text)
    const mayFollow = head === 'incomplete' && pieces + 1 < MAX_PIECES
    if (mayFollow) this.#state = { kind: 'asking', exchange, begun: Buffer.from(bytes), pieces: pieces + 1 }
    else if (head && head !== 'incomplete') this.#receive(exchange, head, bytes)
    else this.#continue(exchange, Buffer.from(bytes))
  }

  /** asking → receiving. */
  #receive(
    exchange: Exchange,
    { status, headers, headBytes, body, keepSeconds }: PlainResponseHead,
    bytes: Buffer,
  ): void {
    const state: State = { kind: 'receiving', exchange, body: readerOf(body), keepSeconds }
    this.#state = state
    exchange.handler.onResponseStart(exchange, status, headers)
    this.#takeBody(state, bytes.subarray(headBytes))
  }

  /** receiving → receiving, or → waiting. */
  #takeBody(state: State & { kind: 'receiving' }, bytes: Buffer): void {
    const { exchange, body } = state
    const end = body.read(bytes, (part) => {
      if (this.#state === state) exchange.handler.onResponseData(exchange, Buffer.from(part))
    })
    if (this.#state !== state || end === 'more') return
    if (end === 'malformed') this.#wire.destroy(new errors.HTTPParserError('the chunks of its body are malformed'))
    else this.#finish(state, bytes.length - end)
  }

  /** receiving → waiting, or closed. @param extra number of unrequested bytes after the response */
  #finish({ exchange, keepSeconds }: State & { kind: 'receiving' }, extra: number): void {
    if (keepSeconds > 0 && extra === 0 && !this.#wire.isSending) {
      this.#state = { kind: 'waiting', sweeps: keepSeconds }
      this.#deps.onFree(this)
    } else this.#end()
    exchange.handler.onResponseEnd()
  }

  /** asking → with undici. */
  #continue({ request, handler }: Exchange, bytes: Buffer): void {
    this.#deps.onOdd()
    request.connection = undefined
    this.#state = { kind: 'with undici', response: new ContinuedResponse(request, handler, this.#wire, bytes) }
  }

  /** connecting, asking or receiving → closed. */
  readonly #abort = (exchange: Exchange, reason: Error): void => {
    const state = this.#state
    if (!('exchange' in state) || state.exchange !== exchange) return
    this.#end()
    exchange.handler.onResponseError(exchange, reason)
  }

  /** any → closed, on our side, without an event to the handler. */
  #end(): void {
    this.#state = CLOSED
    this.#wire.destroy()
    this.#deps.onClosed(this)
  }

  /** any → closed, because the connection has ended. */
  #closed(error: Error | undefined): void {
    const state = this.#state
    this.#state = CLOSED
    this.#deps.onClosed(this)
    switch (state.kind) {
      case 'connecting':
      case 'asking':
      case 'receiving': {
        const { handler } = state.exchange
        handler.onResponseError(state.exchange, error ?? new errors.SocketError('other side closed'))
        return
      }
      case 'with undici':
        state.response.end(error)
        return
      case 'waiting':
      case 'closed':
        return
      default:
        unreachable(state)
    }
  }
}
