import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { codeOf } from '../../base/index.js'

/** What a request of ours is to the HTTP client; also tells which connection the client has chosen for it. */
export class Order implements Dispatcher.DispatchOptions {
  readonly origin: string
  readonly path: string
  readonly method: string
  readonly headers: string[]
  readonly body: Uint8Array | null
  /** `undefined` before one is chosen, and where connections are not reused. */
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

/** How a connection says that the other side is gone. */
const CLOSED_BY_PEER = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET'])

/** One client is one connection at a time with one request at a time; this one knows whether that was used before. */
class ReusedConnection extends Client {
  #socket: Socket | undefined
  /** Requests that were sent on the present connection. */
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
    if (options instanceof Order) options.connection = this
    return super.dispatch(options, handler)
  }

  /** To be called when a request begins to be sent. */
  beginRequest(): void {
    this.#requests++
    this.#bytesBefore = this.#socket?.bytesRead ?? 0
  }

  /**
   * Whether a request has failed only because the destination closed a connection that it had kept from an earlier
   * request: nothing of an answer has come. Of a request that was still waiting for the connection, nothing can have.
   */
  wasClosedWhileKept(error: Error, hasBegun: boolean): boolean {
    if (!CLOSED_BY_PEER.has(codeOf(error))) return false
    if (!hasBegun) return this.#requests > 0
    return this.#requests > 1 && this.#socket?.bytesRead === this.#bytesBefore
  }
}

/** Makes pools of connections to one origin each, as an `Agent` asks for them. */
export function reusableConnections(connect: buildConnector.connector) {
  return (origin: string | URL, options: object): Dispatcher =>
    new Pool(origin, { ...options, factory: (where, own) => new ReusedConnection(where, own, connect) })
}
