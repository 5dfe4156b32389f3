import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock, ConnectionLimiter } from '../../base/index.js'
import type { CertificateSource } from '../../certificates/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { ClientAddress, GatewayLogger, GatewaySettings, OtherNodes } from '../deps.js'
import type { ReadsHere } from '../replicas/reads-here.js'
import type { Opening } from '../tls/opening.js'
import { awaitOpening } from '../tls/opening.js'
import { TlsRefusal } from '../tls/tls-refusal.js'
import { asClientSocket } from './client-socket.js'
import { ForwardedClients } from './forwarded-clients.js'
import { listenError } from './listen-error.js'
import { type PacedAcceptor, refuseConnection } from './paced-acceptor.js'

/** Serves the clients of one database. */
export interface Adopter {
  /** Takes over a connection whose client wants this database and is about to start its TLS handshake. */
  adopt(connection: Socket): void
  /** Like `adopt`, for a connection over another node. */
  adoptFor(client: ClientAddress, connection: Duplex): void
}

/** Collaborators and settings of the shared port. */
export interface DomainListenerOptions {
  readonly settings: Pick<GatewaySettings, 'host'>
  readonly port: number
  readonly certificates: CertificateSource
  readonly acceptor: PacedAcceptor
  readonly connectionLimiter: ConnectionLimiter
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Finds the database of a server name. */
  readonly find: (serverName: string) => Adopter | undefined
  /** The nodes that serve other databases. Absent on a server that is alone. */
  readonly otherNodes: Pick<OtherNodes, 'byServerName'> | undefined
  /** Reads of replicas that this node keeps. Absent where it keeps none. */
  readonly reads: Pick<ReadsHere, 'sawPrimary'> | undefined
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
  readonly #passed = new ForwardedClients()
  readonly #refusal: TlsRefusal

  constructor(options: DomainListenerOptions) {
    this.#options = options
    const { certificates, logger } = options
    this.#refusal = new TlsRefusal({ certificates, logger })
    const socketOptions = { allowHalfOpen: true, noDelay: true, keepAlive: true }
    this.#server = createServer({ ...socketOptions, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }, (connection) =>
      this.#onConnection(connection),
    )
    this.#server.on('error', (error) => logger.error('gateway_domain_port_failed', { error }))
  }

  /** The port on which it listens. */
  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#options.port
  }

  /** Resolves when clients can connect; rejects with the error of `listenError`. */
  listen(): Promise<void> {
    const { port, settings } = this.#options
    return new Promise((resolve, reject) => {
      const onError = (cause: Error): void => reject(listenError(port, cause))
      this.#server.once('error', onError)
      this.#server.listen({ port, host: settings.host, backlog: BACKLOG }, () => {
        this.#server.off('error', onError)
        this.#options.acceptor.pace(this.#server)
        resolve()
      })
    })
  }

  /** Serves a client that another node has accepted. Here it counts as a stranger until it has logged in. */
  accept(connection: Duplex, client: ClientAddress): void {
    const { settings, connectionLimiter } = this.#options
    connectionLimiter.admit(asClientSocket(connection, client, { ip: settings.host, port: this.port }))
    awaitOpening(connection, this.#options, (opening) => {
      const adopter = this.#adopterOf(opening)
      if (adopter) adopter.adoptFor(client, connection)
      else connection.destroy()
    })
  }

  /**
   * Accepts no more clients, and gives clients that wait for replies of other nodes `graceMs`. Resolves when all connections
   * have closed, including those that databases have adopted.
   */
  async close(graceMs: number): Promise<void> {
    this.#refusal.close()
    const isClosed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#options.acceptor.forget(this.#server)
    for (const connection of this.#connections) if (!this.#passed.has(connection)) connection.destroy()
    await Promise.all([isClosed, this.#passed.close(graceMs, this.#options.clock)])
  }

  #onConnection(connection: Socket): void {
    this.#options.connectionLimiter.admit(connection)
    this.#connections.add(connection)
    connection.on('close', () => this.#connections.delete(connection))
    awaitOpening(connection, this.#options, (opening) => this.#route(connection, opening))
  }

  #route(connection: Socket, opening: Opening): void {
    if (opening.kind === 'clear') {
      refuseConnection(connection, new HomeportError('tls_required', {}))
      return
    }
    const adopter = this.#adopterOf(opening)
    if (!adopter) return void this.#routeElsewhere(connection, opening.serverName)
    this.#connections.delete(connection)
    adopter.adopt(connection)
  }

  #adopterOf(opening: Opening): Adopter | undefined {
    const name = opening.kind === 'tls' ? opening.serverName : undefined
    return name === undefined ? undefined : this.#options.find(name)
  }

  /**
   * Passes the bytes of a client on to the node that serves its database, which does the handshake. A client that no node
   * serves gets an error over TLS. Never rejects.
   */
  async #routeElsewhere(connection: Socket, serverName: string | undefined): Promise<void> {
    try {
      const { remoteAddress: ip = '', remotePort } = connection
      const home = serverName === undefined ? undefined : await this.#options.otherNodes?.byServerName(serverName)
      if (!home) throw unknownName(serverName)
      const stream = await home.connect(ip, remotePort).catch((cause: unknown) => {
        throw new HomeportError('node_unreachable', { node: home.node }, { cause })
      })
      // From now on the home counts the client.
      this.#options.connectionLimiter.markAuthenticated(connection)
      stream.on('data', () => this.#options.reads?.sawPrimary({ kind: 'name', serverName: serverName ?? '' }))
      this.#passed.join(connection, stream)
    } catch (error) {
      if (!isError(error, 'server_name_unknown')) this.#options.logger.warn('gateway_not_passed_on', { error })
      // Here the client needs no certificate, even if the database requires one: the reason is no secret.
      this.#refusal.refuse(connection, error)
    }
  }
}

function unknownName(name: string | undefined): HomeportError {
  return new HomeportError('server_name_unknown', name === undefined || name === '' ? {} : { name: name.slice(0, 253) })
}
