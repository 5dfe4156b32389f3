import type { Dispatcher } from 'undici'

/** The headers of a response by lower-case name, as undici has them. A repeated header has a list of values. */
export type IncomingHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Ends a request. */
export interface RequestController {
  /** The handler's `onResponseError` gets the reason, unless the request has ended before. */
  abort(reason: Error): void
}

/**
 * Receives the events of a request, in this order; undici calls the same methods. The last call is `onResponseEnd` or
 * `onResponseError`.
 */
export interface ResponseHandler {
  /** The request is about to be sent. */
  onRequestStart(controller: RequestController): void
  /** undici also reports interim responses, with a status below 200. */
  onResponseStart(controller: RequestController, status: number, headers: IncomingHeaders): void
  /** @param chunk may be kept: it is not overwritten. */
  onResponseData(controller: RequestController, chunk: Buffer): void
  onResponseEnd(): void
  onResponseError(controller: RequestController, error: Error): void
}

/** The connection of a request. It may have served others before. */
export interface ReusableConnection {
  /** A request begins to be sent. */
  beginRequest(): void
  /**
   * Whether a request failed only because the destination closed a reused connection before any byte of a response
   * came.
   * @param hasBegun whether the request began to be sent
   */
  wasClosedWhileReused(error: Error, hasBegun: boolean): boolean
}

/** A request as undici takes it. */
export class OutgoingRequest implements Dispatcher.DispatchOptions {
  readonly origin: string
  readonly path: string
  readonly method: string
  /** Names and values alternate. */
  readonly headers: string[]
  readonly body: Uint8Array | null
  /** The connection that was chosen. Stays `undefined` where connections are not reused. */
  connection: ReusableConnection | undefined

  constructor(origin: string, path: string, { method, headers, body }: Sendable) {
    this.origin = origin
    this.path = path
    this.method = method
    this.headers = headers
    this.body = body ?? null
  }
}

interface Sendable {
  readonly method: string
  readonly headers: string[]
  readonly body: Uint8Array | undefined
}

/** Error codes of a connection that the other side has closed. */
const CLOSED_BY_PEER = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET'])

/** Whether an error with this code says that the other side has closed the connection. */
export const isClosedByPeer = (code: string): boolean => CLOSED_BY_PEER.has(code)
