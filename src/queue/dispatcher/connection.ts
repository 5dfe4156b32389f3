import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { codeOf } from '../../base/index.js'

/** The request as undici takes it. undici's pool passes it to the connection it chose, which records itself here. */
export class OutgoingRequest implements Dispatcher.DispatchOptions {
  readonly origin: string
  readonly path: string
  readonly method: string
  readonly headers: string[]
  readonly body: Uint8Array | null
  /** Set when a connection is chosen. Stays `undefined` where connections are not reused. */
  connection: ReusedConnection | undefined

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

/** An undici client: one connection with one request at a time. It knows whether that connection was used before. */
class ReusedConnection extends Client {
  #socket: Socket | undefined
  /** Requests sent on the current connection. */
  #requests = 0
  #bytesBefore = 0

  constructor(origin: URL, options: object, connect: buildConnector.connector) {
    super(origin, {
      ...options,
      connect: (where, done) =>
        connect(where, (...made) => {
          this.#socket = made[1] ?? undefined
          this.#requests = 0
          done(...made)
        }),
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (options instanceof OutgoingRequest) options.connection = this
    return super.dispatch(options, handler)
  }

  /** Call it when a request begins to be sent. */
  beginRequest(): void {
    this.#requests++
    this.#bytesBefore = this.#socket?.bytesRead ?? 0
  }

  /**
   * Whether a request failed only because the destination closed a reused connection before any byte of a response
   * came. A request that was still waiting for the connection cannot have received any.
   */
  wasClosedWhileReused(error: Error, hasBegun: boolean): boolean {
    if (!CLOSED_BY_PEER.has(codeOf(error))) return false
    if (!hasBegun) return this.#requests > 0
    return this.#requests > 1 && this.#socket?.bytesRead === this.#bytesBefore
  }
}

/** Builds the connection pool of one origin, as undici's `Agent` asks for it. */
export function reusableConnections(connect: buildConnector.connector) {
  return (origin: string | URL, options: object): Dispatcher =>
    new Pool(origin, { ...options, factory: (where, own) => new ReusedConnection(where, own, connect) })
}
