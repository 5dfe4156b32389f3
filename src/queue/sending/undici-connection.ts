import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { codeOf } from '../../base/index.js'
import { isClosedByPeer, OutgoingRequest, type ReusableConnection } from './outgoing-request.js'

/**
 * An undici client: one connection with one request at a time. It knows whether its connection was used before. undici's
 * pool passes a request to the client that it chose, which sets itself as `connection` of the request.
 */
class UndiciConnection extends Client implements ReusableConnection {
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

  beginRequest(): void {
    this.#requests++
    this.#bytesBefore = this.#socket?.bytesRead ?? 0
  }

  /** A request that was still waiting for the connection cannot have received any byte. */
  wasClosedWhileReused(error: Error, hasBegun: boolean): boolean {
    if (!isClosedByPeer(codeOf(error))) return false
    if (!hasBegun) return this.#requests > 0
    return this.#requests > 1 && this.#socket?.bytesRead === this.#bytesBefore
  }
}

/** Builds the connection pool of one origin, as undici's `Agent` asks for it. */
export function reusableConnections(connect: buildConnector.connector) {
  return (origin: string | URL, options: object): Dispatcher =>
    new Pool(origin, { ...options, factory: (where, own) => new UndiciConnection(where, own, connect) })
}
