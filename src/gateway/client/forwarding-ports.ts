import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ClientMemoryBudget, Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ClientAddress, GatewayLogger, GatewaySettings, PortsElsewhere } from '../deps.js'
import type { ReadsHere } from '../replicas/reads-here.js'
import { awaitOpening } from '../tls/opening.js'
import { TlsRefusal } from '../tls/tls-refusal.js'
import type { ClientSocket } from './client-socket.js'
import { ForwardedClients } from './forwarded-clients.js'
import { listenError } from './listen-error.js'
import { type PacedAcceptor, refuseConnection } from './paced-acceptor.js'
import { ReplicaSession } from './replica-session.js'

/** Collaborators and settings of the passing ports. */
export interface ForwardingPortsOptions {
  readonly settings: Pick<GatewaySettings, 'host' | 'tls' | 'region'>
  readonly ports: PortsElsewhere
  readonly acceptor: PacedAcceptor
  /** Reads of replicas that this node keeps. Omitted: it keeps none. */
  readonly reads?: ReadsHere | undefined
  readonly memory: ClientMemoryBudget
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Resolves when the ports of databases that this node no longer serves are closed. */
  readonly settled: () => Promise<unknown>
}

const BACKLOG = 511
const KEEP_ALIVE_DELAY_MS = 300_000
const LOG_EVERY_MS = 1_000
/** Most connections that are passed on at a time: as many as the link to one node carries. */
const MAX_PASSED = 10_000
/** Most passed connections of one database, so that no tenant takes all of them. */
const MAX_OF_ONE = 5_000

/** The connection to which the bytes of a client go. */
interface Route {
  readonly to: 'home' | 'near'
  readonly stream: Duplex
}

/**
 * The ports of databases that other nodes serve. Bytes go unchanged to the home, which gets the address of the client, does
 * the TLS handshake and the login, and counts the client. A port costs a listening socket and no timer.
 */
export class ForwardingPorts {
  readonly #options: ForwardingPortsOptions
  readonly #open = new Map<string, ForwardingPort>()
  /** Databases whose port another program holds. Every change and sweep retries them. */
  readonly #failed = new Set<string>()
  readonly #refusal: TlsRefusal | undefined
  #passed = 0
  readonly #clients = new ForwardedClients()
  /** Ends when all changes so far are applied. They are applied one by one, because a port may move between databases. */
  #turn: Promise<void> = Promise.resolve()
  #loggedAtMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(options: ForwardingPortsOptions) {
    this.#options = options
    const { settings, logger } = options
    this.#refusal = settings.tls && new TlsRefusal({ certificates: settings.tls, logger })
  }

  /** Opens all ports and follows their changes. */
  start(): Promise<void> {
    return this.#options.ports.follow((databaseIds) => {
      this.#turn = this.#turn.then(() => this.#follow(databaseIds))
      return this.#turn
    })
  }

  /** Closes the port of a database that this node is about to serve, with its connections. */
  async release(databaseId: string): Promise<void> {
    this.#failed.delete(databaseId)
    const open = this.#open.get(databaseId)
    this.#open.delete(databaseId)
    await open?.close()
  }

  /** Accepts no more clients, gives those that wait for replies `graceMs`, and closes all connections. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    this.#refusal?.close()
    const ports = [...this.#open.values()]
    this.#open.clear()
    const unknown = (client: Socket): boolean => !this.#clients.has(client)
    const closing = ports.map((port) => port.close(unknown))
    await Promise.all([this.#clients.close(graceMs, this.#options.clock), ...closing])
  }

  /** Applies changes. Closes ports first, because a port may belong to another database now. Never rejects. */
  async #follow(databaseIds: readonly string[]): Promise<void> {
    if (this.#isClosed) return
    const changed = [...new Set([...databaseIds, ...this.#failed])]
    const stale = changed.filter((id) => this.#open.get(id)?.port !== this.#options.ports.find(id)?.port)
    await Promise.all([this.#options.settled(), ...stale.map((databaseId) => this.release(databaseId))])
    await Promise.all(changed.map((databaseId) => this.#listen(databaseId)))
  }

  async #listen(databaseId: string): Promise<void> {
    const { ports, logger } = this.#options
    const found = ports.find(databaseId)
    if (!found || this.#isClosed || this.#open.has(databaseId)) return
    const port = new ForwardingPort(
      found.port,
      this.#options,
      (client) => void this.#pass(databaseId, client, () => this.#connect(databaseId, client)),
    )
    this.#open.set(databaseId, port)
    try {
      await port.listen()
      this.#failed.delete(databaseId)
    } catch (error) {
      if (this.#open.get(databaseId) === port) this.#open.delete(databaseId)
      if (!this.#failed.has(databaseId))
        logger.warn('gateway_passing_port_taken', { error, databaseId, port: found.port })
      this.#failed.add(databaseId)
    }
  }

  /** Serves a client that another node of the region has accepted, because this node keeps the replica. Never rejects. */
  acceptFor(databaseId: string, address: ClientAddress, client: ClientSocket): Promise<void> {
    return this.#pass(databaseId, client, () => this.#toHome(databaseId, address))
  }

  /**
   * Connects a client to the node of the region that keeps the replica, or else to the home. A port with TLS leads to the
   * home, which does the handshake: whether the client uses TLS shows only when it begins.
   */
  async #connect(databaseId: string, { remoteAddress: ip = '', remotePort: port = 0 }: Socket): Promise<Route> {
    const { ports, reads } = this.#options
    const near = ports.find(databaseId)?.tls === true ? undefined : reads?.replicaInRegion({ kind: 'port', databaseId })
    const stream = await near?.connect({ ip, port }).catch(() => undefined)
    return stream ? { to: 'near', stream } : this.#toHome(databaseId, { ip, port })
  }

  async #toHome(databaseId: string, client: ClientAddress): Promise<Route> {
    return { to: 'home', stream: await this.#options.ports.connect(databaseId, client) }
  }

  /** Never rejects. */
  async #pass(databaseId: string, client: ClientSocket, connect: () => Promise<Route>): Promise<void> {
    const own = this.#open.get(databaseId)
    const { ports } = this.#options
    this.#passed++
    client.once('close', () => this.#passed--)
    client.on('error', () => undefined)
    try {
      if (this.#passed > MAX_PASSED || (own?.connections ?? 0) > MAX_OF_ONE) {
        throw new HomeportError('passing_full', { most: this.#passed > MAX_PASSED ? MAX_PASSED : MAX_OF_ONE })
      }
      this.#join(databaseId, client, await connect())
    } catch (error) {
      this.#log(error)
      this.#refuse(client, error, ports.find(databaseId)?.tls === true)
    }
  }

  #join(databaseId: string, client: ClientSocket, { to, stream: home }: Route): void {
    const { reads, ports, settings, memory, logger } = this.#options
    const { readRegions = [] } = ports.find(databaseId) ?? {}
    const mayRead = reads?.find(databaseId) !== undefined || readRegions.some((region) => region === settings.region)
    // The node that keeps the replica knows what the client has seen.
    if (to === 'near') this.#clients.join(client, home)
    else if (!reads || !mayRead) {
      // A replica may begin here while the client is connected.
      home.on('data', () => reads?.sawPrimary({ kind: 'port', databaseId }))
      this.#clients.join(client, home)
    } else {
      const fault = (error: unknown): void => {
        logger.error('gateway_client_fault', { error, databaseId, address: client.remoteAddress })
        client.destroy()
      }
      const nowMs = (): number => performance.now()
      const session = new ReplicaSession(client, home, { databaseId, reads, memory, fault, nowMs })
      this.#clients.add(client, home, () => session.finish())
    }
  }

  /** Logs an error, at most once a second: while a home is lost, clients keep reconnecting. */
  #log(error: unknown): void {
    const nowMs = this.#options.clock.now()
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) return
    this.#loggedAtMs = nowMs
    this.#options.logger.warn('gateway_not_passed_on', { error })
  }

  /** Refuses a client. A proxy may have terminated TLS, so the first bytes decide whether the reason is sent over TLS. */
  #refuse(client: ClientSocket, error: unknown, mayBeTls: boolean): void {
    const tell = (): void => refuseConnection(client, error)
    if (!mayBeTls) tell()
    else
      awaitOpening(client, this.#options, ({ kind }) => {
        if (kind === 'clear') tell()
        else if (this.#refusal) this.#refusal.refuse(client, error)
        else client.destroy()
      })
  }
}

/** One listening port. */
class ForwardingPort {
  readonly port: number
  readonly #server: Server
  readonly #options: ForwardingPortsOptions
  readonly #connections = new Set<Socket>()
  #listening: Promise<void> | undefined

  constructor(port: number, options: ForwardingPortsOptions, take: (client: Socket) => void) {
    this.port = port
    this.#options = options
    const socketOptions = { allowHalfOpen: true, noDelay: true, keepAlive: true }
    this.#server = createServer({ ...socketOptions, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }, (client) => {
      this.#connections.add(client)
      client.once('close', () => this.#connections.delete(client))
      take(client)
    })
  }

  get connections(): number {
    return this.#connections.size
  }

  /** Resolves when clients can connect; rejects with the error of `listenError`. */
  listen(): Promise<void> {
    this.#listening ??= this.#listenOnce()
    return this.#listening
  }

  #listenOnce(): Promise<void> {
    const { port } = this
    const { settings, acceptor, logger } = this.#options
    return new Promise((resolve, reject) => {
      const onError = (cause: Error): void => reject(listenError(port, cause))
      this.#server.once('error', onError)
      // Exclusive: several processes of one machine must not share the port.
      this.#server.listen({ port, host: settings.host, backlog: BACKLOG, exclusive: true }, () => {
        this.#server.off('error', onError)
        this.#server.on('error', (error) => logger.error('gateway_port_failed', { error }))
        acceptor.pace(this.#server)
        resolve()
      })
    })
  }

  /** Ends all connections, or those for which `isEnded` returns true, and resolves when none is left. */
  async close(isEnded: (client: Socket) => boolean = () => true): Promise<void> {
    // A server that is closed before it listens would start to listen afterwards.
    await this.#listening?.catch(() => undefined)
    const isClosed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#options.acceptor.forget(this.#server)
    for (const client of this.#connections) if (isEnded(client)) client.destroy()
    await isClosed
  }
}
