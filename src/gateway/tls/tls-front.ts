import { constants } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls'
import type { CertificateSource } from '../../certificates/index.js'
import type { ClientAddress, GatewayLogger } from '../deps.js'

/** The collaborators of a front. */
export interface TlsFrontOptions {
  readonly certificates: Pick<CertificateSource, 'current' | 'onChange'>
  readonly logger: GatewayLogger
  /** Called for every client after its handshake. */
  readonly onClient: (socket: TLSSocket) => void
}

const HANDSHAKE_TIMEOUT_MS = 10_000

/**
 * Turns plain connections into TLS connections. The memory that TLS needs is allocated for the first client, since most
 * databases have no TLS clients most of the time.
 *
 * A new certificate, and a new authority of the clients, apply to later handshakes; existing connections stay.
 */
export class TlsFront {
  readonly #options: TlsFrontOptions
  readonly #unsubscribe: () => void
  #server: Server | undefined
  #clientAuthority: string | undefined

  constructor(options: TlsFrontOptions) {
    this.#options = options
    this.#unsubscribe = options.certificates.onChange(() => this.#server?.setSecureContext(this.#context()))
  }

  /** The authority (PEM) that must have signed the clients' certificates; undefined: clients need none. */
  set clientAuthority(authority: string | undefined) {
    if (authority === this.#clientAuthority) return
    this.#clientAuthority = authority
    this.#server = undefined
  }

  /** Takes over a connection whose first bytes are unread, or were put back. */
  accept(connection: Duplex): void {
    this.#server ??= this.#newServer(this.#options.onClient)
    this.#server.emit('connection', connection)
  }

  /** Like `accept`, for a connection over another node, which itself does not have the address of the client. */
  acceptFor(client: ClientAddress, connection: Duplex): void {
    // A server for this connection alone: a shared one would not say over which connection its client came.
    const server = this.#newServer((socket) => {
      Object.defineProperties(socket, { remoteAddress: { value: client.ip }, remotePort: { value: client.port } })
      this.#options.onClient(socket)
    })
    server.emit('connection', connection)
  }

  /** Stops following changes of the certificate. */
  close(): void {
    this.#unsubscribe()
  }

  #newServer(onClient: (socket: TLSSocket) => void): Server {
    const { logger } = this.#options
    const server = createServer({
      ...this.#context(),
      allowHalfOpen: true,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      requestCert: this.#clientAuthority !== undefined,
      rejectUnauthorized: this.#clientAuthority !== undefined,
    })
    server.on('secureConnection', onClient)
    server.on('tlsClientError', (error, socket) => {
      logger.debug('tls_handshake_failed', { error })
      socket.destroy()
    })
    return server
  }

  #context(): SecureContextOptions {
    const { certificate: cert, key } = this.#options.certificates.current
    // TLS 1.2 allows renegotiation, which costs a signature each time; Node only reports a client that repeats it.
    const secureOptions = constants.SSL_OP_NO_RENEGOTIATION
    return { cert, key, secureOptions, ...(this.#clientAuthority !== undefined && { ca: this.#clientAuthority }) }
  }
}
