import { createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../../base/index.js'
import type { CertificateSource } from '../../certificates/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { GatewayLogger, GatewaySettings } from '../deps.js'
import type { Opening } from '../tls/opening.js'
import { awaitOpening } from '../tls/opening.js'
import { TlsFront } from '../tls/tls-front.js'
import { type Doorway, turnAway } from './doorway.js'

/** Serves the clients of one database. */
export interface Adopter {
  /** Takes over a connection whose client wants this database and is about to start its TLS handshake. */
  adopt(connection: Socket): void
}

/** Collaborators and settings of the shared port. */
export interface DomainListenerOptions {
  readonly settings: Pick<GatewaySettings, 'host'>
  readonly port: number
  readonly certificates: CertificateSource
  readonly doorway: Doorway
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Finds the database of a server name. */
  readonly find: (serverName: string) => Adopter | undefined
}

const BACKLOG = 511
const KEEP_ALIVE_DELAY_MS = 300_000

/**
 * The port that all databases with TLS share. The server name (SNI) in the client's hello chooses the database. A client
 * that sends no name, or an unknown one, gets an error over TLS; a client without TLS gets an error in clear text.
 */
export class DomainListener {
  readonly #options: DomainListenerOptions
  readonly #server: Server
  /** Connections that no database has adopted yet. */
  readonly #connections = new Set<Socket>()
  /** Does the handshake of clients that get an error, because they expect TLS. */
  readonly #front: TlsFront

  constructor(options: DomainListenerOptions) {
    this.#options = options
    const { certificates, logger } = options
    this.#front = new TlsFront({ certificates, logger, onClient: (socket) => refuseName(socket, socket.servername) })
    const socketOptions = { allowHalfOpen: true, noDelay: true, keepAlive: true }
    this.#server = createServer({ ...socketOptions, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }, (connection) =>
      this.#onConnection(connection),
    )
    this.#server.on('error', (error) => logger.error('gateway_domain_port_failed', { error }))
  }

  /** The port that it listens on. */
  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#options.port
  }

  /** Resolves when clients can connect; rejects with `port_taken`. */
  listen(): Promise<void> {
    const { port, settings } = this.#options
    return new Promise((resolve, reject) => {
      const onError = (cause: Error): void => reject(new HomeportError('port_taken', { port }, { cause }))
      this.#server.once('error', onError)
      this.#server.listen({ port, host: settings.host, backlog: BACKLOG }, () => {
        this.#server.off('error', onError)
        this.#options.doorway.pace(this.#server)
        resolve()
      })
    })
  }

  /** Accepts no more clients. Resolves when all connections have closed, including those that databases have adopted. */
  async close(): Promise<void> {
    this.#front.close()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#options.doorway.dismiss(this.#server)
    for (const connection of this.#connections) connection.destroy()
    await closed
  }

  #onConnection(connection: Socket): void {
    this.#connections.add(connection)
    connection.on('close', () => this.#connections.delete(connection))
    awaitOpening(connection, this.#options, (opening) => this.#route(connection, opening))
  }

  #route(connection: Socket, opening: Opening): void {
    if (opening.kind === 'clear') {
      turnAway(connection, new HomeportError('tls_required', {}))
      return
    }
    const { serverName } = opening
    const adopter = serverName === undefined ? undefined : this.#options.find(serverName)
    if (!adopter) {
      this.#front.accept(connection)
      return
    }
    this.#connections.delete(connection)
    adopter.adopt(connection)
  }
}

function refuseName(socket: Socket, name: string | false | null): void {
  const known = typeof name === 'string' && name !== '' ? { name: name.slice(0, 253) } : {}
  turnAway(socket, new HomeportError('server_name_unknown', known))
}
