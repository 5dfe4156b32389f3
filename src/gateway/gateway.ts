import type { Duplex } from 'node:stream'
import { ClientMemoryBudget, type Clock, ConnectionLimiter, unreachable } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Readiness } from '../http/index.js'
import type { Tracer } from '../telemetry/index.js'
import { asClientSocket } from './client/client-socket.js'
import type { DatabaseListener, ListenerOptions } from './client/database-listener.js'
import { DomainListener } from './client/domain-listener.js'
import { ForwardingPorts } from './client/forwarding-ports.js'
import { DEFAULT_READER_BOUNDS, type ReaderBounds } from './client/outlet.js'
import { PacedAcceptor } from './client/paced-acceptor.js'
import { NO_ADMINISTRATION } from './commands/administer.js'
import type {
  Administration,
  DatabaseDirectory,
  DatabaseUsage,
  EndpointSource,
  GatewayLogger,
  GatewaySettings,
  OtherNodes,
  ReadsElsewhere,
  ReplicasHere,
  UsageSource,
} from './deps.js'
import type { HomeControl } from './engine/held-replies.js'
import { Lanes } from './engine/lanes.js'
import type { ForwardedService, Gateway } from './interface.js'
import { Guards } from './limits/guards.js'
import { LoginWatch } from './limits/login-watch.js'
import { OpenPorts } from './open-ports.js'
import { ReadsHere } from './replicas/reads-here.js'
import { RestListener } from './rest/rest-listener.js'
import { ServerNames } from './tls/opening.js'

/** The settings and collaborators of a gateway. */
export interface GatewayOptions {
  readonly settings: GatewaySettings
  readonly directory: DatabaseDirectory
  readonly fleet: EndpointSource
  /** Keeps the usage of databases. Omitted: the gateway counts it while it runs, and every database is open. */
  readonly usage?: UsageSource | undefined
  /** The nodes that serve other databases. Omitted: this server is alone. */
  readonly otherNodes?: OtherNodes | undefined
  /** The replicas of other nodes' databases that this node keeps. Omitted: none. */
  readonly replicasHere?: ReplicasHere | undefined
  /** Answers ACL and CONFIG. Omitted: these commands are not available. */
  readonly administration?: Administration
  /**
   * Ends the engine of a database, which then restarts, because a script blocks it that cannot be ended otherwise. Returns
   * whether the engine was ended. Called again while the script still blocks it. Omitted: such a script runs on.
   */
  readonly restartEngine?: ((databaseId: string) => boolean) | undefined
  /**
   * Decides whether each answer of an engine may go out. While the node may not serve a database, its answers are dropped
   * and clients get an error. Omitted: no other node may take a database over.
   */
  readonly home?: HomeControl | undefined
  /** Whether the disk of the engines has space for more data; called for every command. Omitted: it always has. */
  readonly hasSpace?: () => boolean
  /** Called when an engine reports that it cannot write because the disk is full. */
  readonly onLackOfSpace?: () => void
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Homeport's version, for `/health`. */
  readonly version: string
  /** For `/readyz`. Omitted: ready while it serves. */
  readonly readiness?: Pick<Readiness, 'reason'>
  /** How long a client may take to log in over TCP, and to send the head of a request over HTTP. Default 60,000. */
  readonly clientTimeoutMs?: number
  /**
   * Reply bytes that a client of the Redis protocol may leave unread. Default: slow from 1 MiB, disconnected from 256 MiB.
   */
  readonly readerBounds?: ReaderBounds
  /** Memory that the clients of all databases may use together. Omitted: a budget of the gateway's own. */
  readonly memory?: ClientMemoryBudget
  /** Limits the connections without credentials. Omitted: those of the gateway alone. */
  readonly connectionLimiter?: ConnectionLimiter
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
  /** How long clients may take to finish when the gateway stops. Default 5,000. */
  readonly stopGraceMs?: number
}

const DEFAULT_STOP_GRACE_MS = 5_000
const DEFAULT_CLIENT_TIMEOUT_MS = 60_000

/** Creates a gateway. Nothing listens before `start`. */
export function createGateway(options: GatewayOptions): Gateway {
  return new DataPlane(options)
}

class DataPlane implements Gateway {
  readonly name = 'gateway'
  readonly #options: GatewayOptions
  readonly #lanes: Lanes
  readonly #guards: Guards
  readonly #rest: RestListener
  readonly #logins: LoginWatch
  readonly #acceptor = new PacedAcceptor()
  readonly #memory: ClientMemoryBudget
  readonly #ports: OpenPorts
  readonly #domain: DomainListener | undefined
  readonly #names = new ServerNames()
  /** The ports of databases that other nodes serve. */
  readonly #forwarding: ForwardingPorts | undefined
  /** Reads of replicas that this node keeps for other nodes. */
  readonly #reads: ReadsHere | undefined
  #unsubscribe: (() => void) | undefined
  #lastClientId = 0

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#memory = options.memory ?? new ClientMemoryBudget()
    this.#guards = new Guards({ ...options, lanes: () => this.#lanes })
    this.#lanes = new Lanes({
      ...options,
      memory: this.#memory,
      replyLimits: (databaseId) => this.#guards.replyLimits(databaseId),
    })
    const administration = options.administration ?? NO_ADMINISTRATION
    const { replicasHere: replicas, clock, logger } = options
    this.#reads = replicas && new ReadsHere({ replicas, clock, logger })
    const headTimeoutMs = options.clientTimeoutMs ?? DEFAULT_CLIENT_TIMEOUT_MS
    this.#logins = new LoginWatch(options.clock)
    const connectionLimiter = options.connectionLimiter ?? new ConnectionLimiter()
    this.#rest = new RestListener({
      ...options,
      connectionLimiter,
      headTimeoutMs,
      administration,
      lanes: this.#lanes,
      guards: this.#guards,
      acceptor: this.#acceptor,
      memory: this.#memory,
      reads: this.#reads,
    })
    this.#domain = this.#newDomain(connectionLimiter)
    this.#ports = new OpenPorts({
      ...options,
      lanes: this.#lanes,
      guards: this.#guards,
      listenerOptions: this.#optionsOfListeners(administration, connectionLimiter),
      release: (databaseId) => this.#forwarding?.release(databaseId),
    })
    const { otherNodes } = options
    this.#forwarding =
      otherNodes?.ports &&
      new ForwardingPorts({
        ...options,
        ports: otherNodes.ports,
        acceptor: this.#acceptor,
        reads: this.#reads,
        memory: this.#memory,
        settled: () => this.#ports.settled(),
      })
  }

  #optionsOfListeners(administration: Administration, connectionLimiter: ConnectionLimiter): ListenerOptions {
    const { settings, directory, clock, logger, clientTimeoutMs, readerBounds } = this.#options
    return {
      settings,
      directory,
      administration,
      clock,
      logger,
      logins: this.#logins,
      memory: this.#memory,
      lanes: this.#lanes,
      acceptor: this.#acceptor,
      connectionLimiter,
      loginTimeoutMs: clientTimeoutMs ?? DEFAULT_CLIENT_TIMEOUT_MS,
      readerBounds: readerBounds ?? DEFAULT_READER_BOUNDS,
      guardOf: (database) => this.#guards.of(database),
      nextClientId: () => ++this.#lastClientId,
    }
  }

  get domainPort(): number | undefined {
    return this.#domain?.port
  }

  get restPort(): number {
    return this.#rest.port
  }

  get isServing(): boolean {
    return this.#unsubscribe !== undefined
  }

  async start(): Promise<void> {
    await this.#rest.listen()
    await this.#domain?.listen()
    const { directory } = this.#options
    this.#unsubscribe = directory.onChange((databaseId) => this.#onChange(databaseId))
    for (const { databaseId } of directory.list()) this.#follow(databaseId)
    await this.#ports.opened()
    await this.#forwarding?.start()
  }

  async stop(graceMs = this.#options.stopGraceMs ?? DEFAULT_STOP_GRACE_MS): Promise<void> {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    const listeners = [this.#ports.stop(graceMs), this.#forwarding?.close(graceMs), this.#domain?.close(graceMs)]
    await Promise.all([this.#rest.close(graceMs), ...listeners])
    this.#lanes.close()
    this.#reads?.close()
  }

  #newDomain(connectionLimiter: ConnectionLimiter): DomainListener | undefined {
    const { settings, clock, logger, otherNodes } = this.#options
    if (settings.domainPort === undefined || !settings.tls) return undefined
    const find = (serverName: string): DatabaseListener | undefined =>
      this.#ports.listenerOf(this.#names.databaseOf(serverName) ?? '')
    return new DomainListener({
      settings,
      clock,
      logger,
      find,
      otherNodes,
      connectionLimiter,
      reads: this.#reads,
      acceptor: this.#acceptor,
      port: settings.domainPort,
      certificates: settings.tls,
    })
  }

  openDatabase(databaseId: string): Promise<void> {
    return this.#ports.open(databaseId)
  }

  releaseEngines(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean {
    const isReleased = this.#lanes.release(databaseId, manner)
    if (isReleased) this.#guards.fallAsleep(databaseId)
    return isReleased
  }

  holdEngines(databaseId: string): boolean {
    const isHeld = this.#lanes.hold(databaseId)
    if (isHeld) this.#guards.fallAsleep(databaseId)
    return isHeld
  }

  proceed(databaseId: string): void {
    this.#lanes.proceed(databaseId)
  }

  isReceiving(databaseId: string): boolean {
    return this.#lanes.isReceiving(databaseId)
  }

  abortIncomplete(databaseId: string): void {
    this.#lanes.abortIncomplete(databaseId)
  }

  disconnectClients(databaseId: string): void {
    this.#ports.listenerOf(databaseId)?.disconnectClients()
    this.#lanes.forget(databaseId, new HomeportError('database_moved', { databaseId }))
  }

  accept(service: ForwardedService, connection: Duplex, ip: string, detail: string): void {
    switch (service) {
      case 'rest':
        this.#rest.accept(connection, ip, 'home')
        return
      case 'near-rest':
        this.#rest.accept(connection, ip, 'near')
        return
      case 'port':
      case 'near-port':
        this.#acceptOnPort(service, connection, ip, detail)
        return
      case 'redis':
        if (this.#domain) this.#domain.accept(connection, { ip, port: Number(detail) || 0 })
        else connection.destroy()
        return
      default:
        unreachable(service)
    }
  }

  #acceptOnPort(service: 'port' | 'near-port', connection: Duplex, ip: string, detail: string): void {
    const [databaseId = '', port] = detail.split(' ')
    const client = { ip, port: Number(port) || 0 }
    const listener = this.#ports.listenerOf(databaseId)
    if (listener) listener.acceptFor(client, connection)
    else if (service === 'near-port' && this.#forwarding)
      void this.#forwarding.acceptFor(databaseId, client, asClientSocket(connection, client, client))
    // An error would reach the application. Most clients reconnect after a loss, and then find the home.
    else connection.destroy()
  }

  allowReads(databaseId: string, outstanding: { here: number; everywhere: number }): number | undefined {
    const database = this.#options.directory.find(databaseId)
    return database && this.#guards.of(database).allowReads(outstanding)
  }

  countReads(databaseId: string, reads: ReadsElsewhere): void {
    const database = this.#options.directory.find(databaseId)
    if (database) this.#guards.of(database).countReads(reads)
  }

  usageOf(databaseId: string): DatabaseUsage | undefined {
    const database = this.#options.directory.find(databaseId)
    return database && this.#guards.of(database).usage
  }

  /** Handles a change of one database, at a cost that does not depend on the number of databases. */
  #onChange(databaseId: string): void {
    this.#follow(databaseId)
    this.#rest.recheck()
  }

  #follow(databaseId: string): void {
    this.#names.put(databaseId, this.#options.directory.find(databaseId)?.serverName)
    this.#ports.follow(databaseId)
  }
}
