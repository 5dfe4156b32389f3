import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { GatewayLogger } from '../deps.js'
import type { CertificateSource } from './certificates.js'

/** What a front is made of. */
export interface TlsFrontOptions {
  readonly certificates: Pick<CertificateSource, 'current' | 'onChange'>
  readonly logger: GatewayLogger
  /** Gets every client whose handshake is done. */
  readonly onClient: (socket: TLSSocket) => void
}

const HANDSHAKE_TIMEOUT_MS = 10_000

/**
 * Makes TLS connections of plain ones. What TLS needs in memory is made for the first client, since most databases have
 * none at most times.
 *
 * A new certificate, and a new authority of the clients, hold for handshakes from then on; connections stay.
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

  /** From now on clients need a certificate of this authority (PEM), or none where it is undefined. */
  set clientAuthority(authority: string | undefined) {
    if (authority === this.#clientAuthority) return
    this.#clientAuthority = authority
    this.#server = undefined
  }

  /** Takes over a connection of which nothing was read, or what was read was put back. */
  accept(connection: Socket): void {
    this.#server ??= this.#newServer()
    this.#server.emit('connection', connection)
  }

  /** Takes no more notice of new certificates. */
  close(): void {
    this.#unsubscribe()
  }

  #newServer(): Server {
    const { logger, onClient } = this.#options
    const server = createServer({
      ...this.#context(),
      allowHalfOpen: true,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      requestCert: this.#clientAuthority !== undefined,
      rejectUnauthorized: this.#clientAuthority !== undefined,
    })
    server.on('secureConnection', onClient)
    server.on('tlsClientError', (error, socket) => {
      logger.debug({ error }, 'a TLS handshake failed')
      socket.destroy()
    })
    return server
  }

  #context(): { cert: string; key: string; ca?: string } {
    const { certificate: cert, key } = this.#options.certificates.current
    return { cert, key, ...(this.#clientAuthority !== undefined && { ca: this.#clientAuthority }) }
  }
}
