import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Clock, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors.js'
import { checkAddress, isAllowed } from '../allow-list.js'
import { errorText } from '../error-text.js'
import type { Lanes } from '../lane/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { encodeError } from '../resp/encode.js'
import {
  type DatabaseDirectory,
  DEFAULT_MAX_CLIENTS,
  type GatewayLogger,
  type GatewaySettings,
  type ServedDatabase,
} from '../seams.js'
import { Session } from './session.js'

/** What a listener is made of. */
export interface ListenerOptions {
  readonly settings: Pick<GatewaySettings, 'host' | 'tls'>
  readonly directory: Pick<DatabaseDirectory, 'authenticate'>
  readonly lanes: Lanes
  readonly guard: DatabaseGuard
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Numbers for CLIENT ID, never the same twice. */
  readonly nextClientId: () => number
}

const BACKLOG = 511
const KEEP_ALIVE_DELAY_MS = 300_000
const HANDSHAKE_TIMEOUT_MS = 10_000
/** Idle clients are looked for so often in their time, but not less often than the longest interval. */
const SWEEPS_PER_TIMEOUT = 8
const LONGEST_SWEEP_MS = 60_000

/** The TCP port of one database and the clients on it. */
export class DatabaseListener {
  #database: ServedDatabase
  readonly #options: ListenerOptions
  readonly #server: Server
  readonly #sessions = new Set<Session>()
  /** Every connection, also one whose TLS handshake is not yet done. */
  readonly #connections = new Set<Socket>()
  #sweep: Timer | undefined

  /** Throws `tls_not_configured`. */
  constructor(database: ServedDatabase, options: ListenerOptions) {
    this.#database = database
    this.#options = options
    this.#server = this.#createServer()
    this.#server.on('connection', (connection: Socket) => {
      this.#connections.add(connection)
      connection.on('close', () => this.#connections.delete(connection))
    })
    this.#server.on('error', (error) => options.logger.error({ err: error }, 'the port of a database failed'))
  }

  /** The database as its clients are served now. */
  get database(): ServedDatabase {
    return this.#database
  }

  /** Serves the database as it has become; its port and TLS are the same. Whoever may not stay is disconnected. */
  update(database: ServedDatabase): void {
    const oldLogins = database.loginEpoch !== this.#database.loginEpoch
    this.#database = database
    for (const session of this.#sessions) {
      if (oldLogins || !isAllowed(database, session.remoteAddress)) session.cut()
      else session.relimit()
    }
    this.#sweep?.cancel()
    this.#sweepLater()
  }

  /** Resolves when clients can connect; rejects with `port_taken`. */
  listen(): Promise<void> {
    const { port } = this.database
    return new Promise((resolve, reject) => {
      const onError = (cause: Error): void => reject(new HomeportError('port_taken', { port }, { cause }))
      this.#server.once('error', onError)
      this.#server.listen({ port, host: this.#options.settings.host, backlog: BACKLOG }, () => {
        this.#server.off('error', onError)
        resolve()
      })
    })
  }

  /** Takes no more clients, lets those that are connected finish for `graceMs`, and resolves when all are gone. */
  async close(graceMs: number): Promise<void> {
    this.#sweep?.cancel()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const session of this.#sessions) session.finish()
    const timer = this.#options.clock.after(graceMs, () => {
      for (const connection of this.#connections) connection.destroy()
    })
    await closed
    timer.cancel()
  }

  #createServer(): Server {
    const { tls } = this.#options.settings
    // A client that has sent its last command may still wait for replies.
    const options = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }
    if (!this.database.tls) return createServer(options, (socket) => this.#onClient(socket))
    if (!tls) throw new HomeportError('tls_not_configured', { databaseId: this.database.databaseId })
    return createTlsServer({ ...options, ...tls, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, (socket) =>
      this.#onClient(socket),
    )
  }

  #onClient(socket: Socket): void {
    try {
      this.#admit(socket)
    } catch (error) {
      turnAway(socket, error)
      return
    }
    const { nextClientId, ...services } = this.#options
    const siblings = (): Iterable<Session> => this.#sessions
    const session = new Session(socket, nextClientId(), { ...services, siblings })
    this.#sessions.add(session)
    this.#countConnection(1)
    if (this.#sessions.size === 1) this.#sweepLater()
    socket.on('close', () => {
      this.#sessions.delete(session)
      this.#countConnection(-1)
    })
  }

  #countConnection(change: 1 | -1): void {
    const { meter } = this.#options.guard
    meter.connections += change
    if (change > 0) meter.connectionsTotal++
  }

  #sweepLater(): void {
    const { idleTimeoutMs } = this.#database
    if (idleTimeoutMs === undefined || this.#sessions.size === 0) return
    const { clock } = this.#options
    this.#sweep = clock.after(Math.min(idleTimeoutMs / SWEEPS_PER_TIMEOUT, LONGEST_SWEEP_MS), () => {
      for (const session of this.#sessions) session.endIfIdleSince(clock.now() - idleTimeoutMs)
      this.#sweepLater()
    })
  }

  /** Throws what keeps a client out. */
  #admit(socket: Socket): void {
    checkAddress(this.database, socket.remoteAddress)
    if (this.#sessions.size < (this.database.maxClients ?? DEFAULT_MAX_CLIENTS)) return
    throw new HomeportError('too_many_clients', {})
  }
}

function turnAway(socket: Socket, reason: unknown): void {
  socket.on('error', () => {})
  if (reason instanceof HomeportError) socket.write(encodeError(errorText(reason)))
  socket.destroySoon()
}
