import type { ClientSocket } from '../client/client-socket.js'
import { turnAway } from '../client/doorway.js'
import { TlsFront, type TlsFrontOptions } from './tls-front.js'

/** Most refusals at a time: handshakes are expensive. */
const MOST_PENDING = 256

/** Tells clients that begin with a TLS handshake why they are not served: over TLS, since they understand nothing else. */
export class TlsRefusal {
  readonly #front: TlsFront
  /** By the address of the client: the TLS socket has the same as the connection below it. */
  readonly #reasons = new Map<string, unknown>()

  constructor(options: Omit<TlsFrontOptions, 'onClient'>) {
    this.#front = new TlsFront({
      ...options,
      onClient: (socket) => turnAway(socket, this.#reasons.get(addressOf(socket))),
    })
  }

  /** Takes over a connection whose first bytes are unread, or were put back. @param reason see `turnAway`. */
  refuse(connection: ClientSocket, reason: unknown): void {
    // One that was lost meanwhile says no more that it closes.
    if (connection.destroyed || this.#reasons.size >= MOST_PENDING) {
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
