import type { ClientSocket } from '../client/client-socket.js'
import { refuseConnection } from '../client/paced-acceptor.js'
import { TlsFront, type TlsFrontOptions } from './tls-front.js'

/** Most refusals at a time: handshakes are expensive. */
const MAX_PENDING = 256

/** Sends clients that begin with a TLS handshake the reason why they are not served, over TLS. */
export class TlsRefusal {
  readonly #front: TlsFront
  /** Keyed by the client's address and port, which the TLS socket shares with the connection below it. */
  readonly #reasons = new Map<string, unknown>()

  constructor(options: Omit<TlsFrontOptions, 'onClient'>) {
    this.#front = new TlsFront({
      ...options,
      onClient: (socket) => refuseConnection(socket, this.#reasons.get(addressOf(socket))),
    })
  }

  /** Takes over a connection whose first bytes are unread, or were put back. @param reason see `refuseConnection`. */
  refuse(connection: ClientSocket, reason: unknown): void {
    // A connection that is already destroyed emits no further `close`.
    if (connection.destroyed || this.#reasons.size >= MAX_PENDING) {
      connection.destroy()
      return
    }
    const address = addressOf(connection)
    this.#reasons.set(address, reason)
    connection.once('close', () => this.#reasons.delete(address))
    this.#front.accept(connection)
  }

  /** Stops following changes of the certificate. */
  close(): void {
    this.#front.close()
  }
}

const addressOf = ({ remoteAddress, remotePort }: ClientSocket): string => `${remoteAddress} ${remotePort}`
