import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConnectionLimiter, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { closed } from '../../http/index.js'
import { checkAddress, isAllowed } from '../allow-list.js'
import type { SessionDeps } from '../commands/command-context.js'
import type { ClientAddress, GatewaySettings, ServedDatabase } from '../deps.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { awaitOpening, beginsTls } from '../tls/opening.js'
import { TlsFront } from '../tls/tls-front.js'
import { asClientSocket, type ClientSocket } from './client-socket.js'
import { Inlet, takeInlets } from './inlet.js'
import { listenError } from './listen-error.js'
import { type PacedAcceptor, refuseConnection } from './paced-acceptor.js'
import { Session } from './session.js'

/** Collaborators and settings of all listeners. */
export interface ListenerOptions extends Omit<SessionDeps, 'siblings' | 'guard'> {
  /** Limits and counts the commands of a database. */
  readonly guardOf: (database: ServedDatabase) => DatabaseGuard
  readonly settings: Pick<GatewaySettings, 'host' | 'tls'>
  readonly acceptor: PacedAcceptor
  readonly connectionLimiter: ConnectionLimiter
  /** Ids for CLIENT ID, each used once. */
  readonly nextClientId: () => number
}

const BACKLOG = 511
/** Checks for idle clients within one idle timeout. The interval is at most `MAX_SWEEP_MS`. */
const SWEEPS_PER_TIMEOUT = 8
const MAX_SWEEP_MS = 60_000

/** The TCP port of one database and the clients on it. */
export class DatabaseListener {
  #database: ServedDatabase
  readonly #options: ListenerOptions
  readonly #server: Server
  /** Made for the first client, because there may be ten thousand databases that nobody uses. */
  #sessionDeps: SessionDeps | undefined
  /** Does TLS handshakes; undefined where the port speaks clear text. */
  readonly #front: TlsFront | undefined
  readonly #sessions = new Set<Session>()
  /** The clients that have not logged in, oldest first. */
  readonly #unauthenticated = new Set<Session>()
  /** Every connection, including those still in their TLS handshake. */
  readonly #connections = new Set<Duplex>()
  #sweep: Timer | undefined

  /** Throws `tls_not_configured`. */
  constructor(database: ServedDatabase, options: ListenerOptions) {
    this.#database = database
    this.#options = options
    this.#front = database.tls ? this.#newFront() : undefined
    // A client may close its sending side and still wait for replies.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true })
  }

  /** The database with its present settings. */
  get database(): ServedDatabase {
    return this.#database
  }

  /** Applies a change of the database that keeps its port and TLS. Disconnects clients that lost their access. */
  update(database: ServedDatabase): void {
    const loginsExpired = database.loginEpoch !== this.#database.loginEpoch
    const otherAuthority = database.clientAuthority !== this.#database.clientAuthority
    const otherTimeout = database.idleTimeoutMs !== this.#database.idleTimeoutMs
    const { userMarks: past = {} } = this.#database
    const { userMarks: now = {} } = database
    const userChanged = ({ user = '' }: Session): boolean => past[user] !== now[user]
    this.#database = database
    if (this.#front) this.#front.clientAuthority = database.clientAuthority
    for (const session of this.#sessions) {
      if (loginsExpired || otherAuthority || userChanged(session) || !isAllowed(database, session.remoteAddress))
        session.cut()
      else session.applyLimits()
    }
    // If the timeout is unchanged, the scheduled sweep stays: otherwise frequent changes would delay it forever.
    if (!otherTimeout) return
    this.#sweep?.cancel()
    this.#sweep = undefined
    this.#scheduleSweep()
  }

  /** Resolves when clients can connect. Rejects with the error of `listenError`; `listen` may then be called again. */
  listen(): Promise<void> {
    const { port } = this.database
    return new Promise((resolve, reject) => {
      const onError = (cause: Error): void => {
        this.#server.off('listening', onListening)
        reject(listenError(port, cause))
      }
      const onListening = (): void => {
        this.#server.off('error', onError)
        this.#server.on('error', (error) => this.#options.logger.error('gateway_port_failed', { error }))
        this.#acceptClients()
        resolve()
      }
      this.#server.once('error', onError).once('listening', onListening)
      this.#server.listen({ port, host: this.#options.settings.host, backlog: BACKLOG })
    })
  }

  /** Accepts no more clients, gives connected ones `graceMs` to finish, and resolves when all connections have closed. */
  async close(graceMs: number): Promise<void> {
    this.#sweep?.cancel()
    this.#front?.close()
    const isClosed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#options.acceptor.forget(this.#server)
    const ended = [...this.#connections].map(closed)
    for (const session of this.#sessions) session.finish()
    const timer = this.#options.clock.after(graceMs, () => {
      for (const connection of this.#connections) connection.destroy()
    })
    await Promise.all([isClosed, ...ended])
    timer.cancel()
  }

  /** Disconnects the clients. Commands without an answer get none. */
  disconnectClients(): void {
    for (const session of this.#sessions) session.hangUp()
  }

  /** Takes over a connection from the shared port, whose client is about to start its TLS handshake. */
  adopt(connection: Socket): void {
    this.#track(connection)
    this.#front?.accept(connection)
  }

  /** Like `adopt`, for a connection over another node. */
  adoptFor(client: ClientAddress, connection: Duplex): void {
    this.#track(connection)
    this.#front?.acceptFor(client, connection)
  }

  /** Serves a client that another node has accepted on the port of this database. */
  acceptFor(client: ClientAddress, connection: Duplex): void {
    const socket = asClientSocket(connection, client, { ip: this.#options.settings.host, port: this.#database.port })
    const front = this.#front
    if (front) this.#onConnection(socket, () => front.acceptFor(client, connection))
    else this.#onClearText(Inlet.of(socket))
  }

  get #deps(): SessionDeps {
    this.#sessionDeps ??= this.#newSessionDeps()
    return this.#sessionDeps
  }

  #newSessionDeps(): SessionDeps {
    const guard = this.#options.guardOf(this.#database)
    guard.evictUnauthenticated = () => this.#evictUnauthenticated()
    return { ...this.#options, guard, siblings: () => this.#sessions }
  }

  #newFront(): TlsFront {
    const { settings, logger } = this.#options
    if (!settings.tls) throw new HomeportError('tls_not_configured', { databaseId: this.database.databaseId })
    const front = new TlsFront({
      certificates: settings.tls,
      logger,
      onClient: (socket) => this.#admits(socket) && this.#serve(Inlet.of(socket)),
    })
    front.clientAuthority = this.database.clientAuthority
    return front
  }

  #track(connection: Duplex): void {
    this.#connections.add(connection)
    connection.on('close', () => this.#connections.delete(connection))
  }

  #acceptClients(): void {
    const front = this.#front
    if (front) {
      this.#server.on('connection', (connection) => this.#onConnection(connection, () => front.accept(connection)))
    } else takeInlets(this.#server, (inlet) => this.#onClearText(inlet))
    this.#options.acceptor.pace(this.#server)
  }

  #onConnection(connection: ClientSocket, shakeHands: () => void): void {
    this.#track(connection)
    this.#options.connectionLimiter.admit(connection)
    awaitOpening(connection, this.#options, ({ kind }) => {
      if (kind === 'tls') shakeHands()
      else refuseConnection(connection, new HomeportError('tls_required', {}))
    })
  }

  #onClearText(inlet: Inlet): void {
    const { socket } = inlet
    if (!this.#admits(socket)) {
      this.#track(socket)
      return
    }
    this.#serve(inlet)
    const { receive } = inlet
    inlet.receive = (memory, length) => {
      inlet.receive = receive
      if (beginsTls(memory[0])) this.#onUnexpectedTls(socket)
      else receive(memory, length)
    }
  }

  /** Disconnects a client that begins a TLS handshake. It would not understand an error, so the gateway logs the mistake. */
  #onUnexpectedTls(connection: ClientSocket): void {
    const { databaseId } = this.database
    const address = connection.remoteAddress
    this.#options.logger.info('gateway_client_unexpected_tls', { databaseId, address })
    connection.destroy()
  }

  /** Whether a client may connect. If not, it gets the error and is disconnected. */
  #admits(socket: ClientSocket): boolean {
    try {
      checkAddress(this.database, socket.remoteAddress)
      this.#deps.guard.checkClientLimit()
      if (!this.#options.connectionLimiter.mayAddPersistent(this.database.owner ?? ''))
        throw new HomeportError('too_many_clients', {})
      return true
    } catch (error) {
      refuseConnection(socket, error)
      return false
    }
  }

  /** Disconnects the oldest client that has not logged in. Returns whether there was one. */
  #evictUnauthenticated(): boolean {
    const [oldest] = this.#unauthenticated
    if (!oldest) return false
    this.#leave(oldest)
    oldest.refuse(new HomeportError('too_many_clients', {}))
    oldest.hangUp()
    return true
  }

  #leave(session: Session): void {
    if (!this.#sessions.delete(session)) return
    this.#unauthenticated.delete(session)
    this.#deps.guard.countConnection(-1)
  }

  #serve(inlet: Inlet): void {
    const deps = this.#deps
    const session = new Session(inlet, this.#options.nextClientId(), deps)
    const { socket } = inlet
    this.#connections.add(socket)
    this.#sessions.add(session)
    this.#unauthenticated.add(session)
    this.#options.connectionLimiter.admit(socket)
    inlet.onLogin = () => {
      this.#unauthenticated.delete(session)
      this.#options.connectionLimiter.markPersistent(socket, this.database.owner ?? '')
    }
    deps.guard.countConnection(1)
    this.#scheduleSweep()
    socket.on('close', () => {
      this.#connections.delete(socket)
      this.#leave(session)
    })
  }

  /** Sets the timer of the next sweep, unless a timer is set or there is no client. */
  #scheduleSweep(): void {
    const { idleTimeoutMs } = this.#database
    if (this.#sweep || idleTimeoutMs === undefined || this.#sessions.size === 0) return
    const { clock } = this.#options
    this.#sweep = clock.after(Math.min(idleTimeoutMs / SWEEPS_PER_TIMEOUT, MAX_SWEEP_MS), () => {
      this.#sweep = undefined
      for (const session of this.#sessions) session.endIfIdleSince(clock.now() - idleTimeoutMs)
      this.#scheduleSweep()
    })
  }
}
