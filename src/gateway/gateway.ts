import { ClientMemoryBudget, type Clock, type Service } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { DatabaseListener } from './client/database-listener.js'
import { DomainListener } from './client/domain-listener.js'
import { Doorway } from './client/doorway.js'
import { DEFAULT_READER_BOUNDS, type ReaderBounds } from './client/outlet.js'
import { NO_ADMINISTRATION } from './commands/administer.js'
import type {
  Administration,
  DatabaseDirectory,
  DatabaseUsage,
  EndpointSource,
  GatewayLogger,
  GatewaySettings,
  ServedDatabase,
  UsageSource,
} from './deps.js'
import { Lanes } from './engine/lanes.js'
import { Guards } from './limits/guards.js'
import { LoginWatch } from './limits/login-watch.js'
import { PortFailures } from './port-failures.js'
import { RestListener } from './rest/rest-listener.js'
import { ServerNames } from './tls/server-names.js'

/** What a gateway is made of. */
export interface GatewayOptions {
  readonly settings: GatewaySettings
  readonly directory: DatabaseDirectory
  readonly fleet: EndpointSource
  /** Who keeps the usage of databases. Omitted: it is counted while the gateway lives, and every database is open. */
  readonly usage?: UsageSource | undefined
  /** Who answers ACL and CONFIG. Omitted: these commands are not available. */
  readonly administration?: Administration
  /**
   * Ends the engine of a database, which is started again: a script holds it that cannot be ended otherwise. Answers
   * whether it was ended. Called again while that goes on. Omitted: such a script runs on.
   */
  readonly breakOff?: ((databaseId: string) => boolean) | undefined
  /** Whether the disk of the engines has room for more data; asked for every command. Omitted: it always has. */
  readonly hasRoom?: () => boolean
  /** Called when an engine answers that it cannot write for lack of room. Omitted: nothing follows. */
  readonly onLackOfRoom?: () => void
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Homeport's version, for `/health`. */
  readonly version: string
  /** How long a client may take to log in over TCP, and to send the head of a request over HTTP. Default 60,000. */
  readonly patienceMs?: number
  /** How much a client of the Redis protocol may leave unread. Default 1 MiB until it is slow, 256 MiB until it is lost. */
  readonly readerBounds?: ReaderBounds
  /** What clients of all databases together may make the process hold. Omitted: a bound of the gateway's own. */
  readonly memory?: ClientMemoryBudget
  /** How long clients may finish when the gateway stops. Default 5,000. */
  readonly stopGraceMs?: number
}

/** The data plane. */
export interface Gateway extends Service {
  /**
   * Resolves when the TCP port of a database listens. Rejects with `port_taken` when another program holds it, with
   * `tls_not_configured`, and with `database_not_found` when the directory does not list the database.
   */
  openDatabase(databaseId: string): Promise<void>
  /**
   * Closes the connections to a database's engines, so that they may be stopped; clients stay, and their next command
   * connects again. Only `and-send-away` disconnects those that subscribe, block or are in a transaction. Answers false
   * when a client still uses one.
   */
  releaseEngines(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean
  /** What is counted of a database; undefined when the directory does not list it. */
  usageOf(databaseId: string): DatabaseUsage | undefined
  /** The port that databases with a server name share, once it is started; undefined when there is none. */
  readonly domainPort: number | undefined
  /** Port of the REST listener once it is started. */
  readonly restPort: number
}

interface OpenDatabase {
  readonly listener: DatabaseListener
  readonly listening: Promise<void>
}

const DEFAULT_STOP_GRACE_MS = 5_000
const DEFAULT_PATIENCE_MS = 60_000

/** Makes a gateway; nothing listens before `start`. */
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
  readonly #doorway = new Doorway()
  readonly #memory: ClientMemoryBudget
  readonly #open = new Map<string, OpenDatabase>()
  readonly #domain: DomainListener | undefined
  /** Databases whose port could not be opened; it is tried again with the next change of any. */
  readonly #shut = new Set<string>()
  readonly #portFailures: PortFailures
  readonly #names = new ServerNames()
  readonly #closing = new Set<Promise<void>>()
  #unsubscribe: (() => void) | undefined
  #lastClientId = 0

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#portFailures = new PortFailures(options.logger)
    this.#guards = new Guards({ ...options, lanes: () => this.#lanes })
    this.#lanes = new Lanes({ ...options, replyLimits: (databaseId) => this.#guards.replyLimits(databaseId) })
    const administration = options.administration ?? NO_ADMINISTRATION
    const headTimeoutMs = options.patienceMs ?? DEFAULT_PATIENCE_MS
    this.#logins = new LoginWatch(options.clock)
    this.#memory = options.memory ?? new ClientMemoryBudget()
    this.#rest = new RestListener({
      ...options,
      headTimeoutMs,
      administration,
      lanes: this.#lanes,
      guards: this.#guards,
      doorway: this.#doorway,
      memory: this.#memory,
    })
    this.#domain = this.#newDomain()
  }

  get domainPort(): number | undefined {
    return this.#domain?.port
  }

  get restPort(): number {
    return this.#rest.port
  }

  async start(): Promise<void> {
    await this.#rest.listen()
    await this.#domain?.listen()
    const { directory } = this.#options
    this.#unsubscribe = directory.onChange((databaseId) => this.#onChange(databaseId))
    for (const { databaseId } of directory.list()) this.#follow(databaseId)
    await Promise.allSettled([...this.#open.values()].map(({ listening }) => listening))
  }

  async stop(graceMs = this.#options.stopGraceMs ?? DEFAULT_STOP_GRACE_MS): Promise<void> {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    for (const databaseId of [...this.#open.keys()]) this.#close(databaseId, graceMs)
    await Promise.all([this.#rest.close(graceMs), this.#domain?.close(), ...this.#closing])
    this.#lanes.close()
  }

  #newDomain(): DomainListener | undefined {
    const { settings, clock, logger } = this.#options
    if (settings.domainPort === undefined || !settings.tls) return undefined
    const find = (serverName: string): DatabaseListener | undefined =>
      this.#open.get(this.#names.databaseOf(serverName) ?? '')?.listener
    return new DomainListener({
      settings,
      clock,
      logger,
      find,
      doorway: this.#doorway,
      port: settings.domainPort,
      certificates: settings.tls,
    })
  }

  openDatabase(databaseId: string): Promise<void> {
    const open = this.#open.get(databaseId)
    if (open) return open.listening
    const database = this.#options.directory.find(databaseId)
    if (!database) return Promise.reject(new HomeportError('database_not_found', { databaseId }))
    return this.#openListener(database)
  }

  releaseEngines(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean {
    const isReleased = this.#lanes.release(databaseId, manner)
    if (isReleased) this.#guards.rest(databaseId)
    return isReleased
  }

  usageOf(databaseId: string): DatabaseUsage | undefined {
    const database = this.#options.directory.find(databaseId)
    return database && this.#guards.of(database).usage
  }

  /** A change of one database costs the same however many there are. */
  #onChange(databaseId: string): void {
    for (const changed of new Set([databaseId, ...this.#shut])) this.#follow(changed)
    this.#rest.recheck()
  }

  /** Makes the port of a database what the directory says. */
  #follow(databaseId: string): void {
    const database = this.#options.directory.find(databaseId)
    this.#names.put(databaseId, database?.serverName)
    const listener = this.#open.get(databaseId)?.listener
    if (database && listener && samePort(database, listener.database)) {
      this.#update(listener, database)
      return
    }
    if (listener) this.#forget(databaseId)
    if (database) this.#openOrTell(database)
    else this.#gone(databaseId)
  }

  #openOrTell(database: ServedDatabase): void {
    const { databaseId } = database
    this.#openListener(database).catch((error: unknown) => this.#portFailures.add({ databaseId, error }))
  }

  #update(listener: DatabaseListener, database: ServedDatabase): void {
    if (database === listener.database) return
    // What the engine was logged in to with may have changed as well.
    if (database.loginEpoch !== listener.database.loginEpoch) this.#lanes.forget(database.databaseId)
    for (const user of goneUsers(listener.database, database)) this.#lanes.forgetUser(database.databaseId, user)
    this.#guards.of(database)
    listener.update(database)
  }

  async #openListener(database: ServedDatabase): Promise<void> {
    const { settings, directory, clock, logger } = this.#options
    const nextClientId = (): number => ++this.#lastClientId
    const listener = new DatabaseListener(database, {
      settings,
      directory,
      administration: this.#options.administration ?? NO_ADMINISTRATION,
      logins: this.#logins,
      loginTimeoutMs: this.#options.patienceMs ?? DEFAULT_PATIENCE_MS,
      readerBounds: this.#options.readerBounds ?? DEFAULT_READER_BOUNDS,
      memory: this.#memory,
      clock,
      logger,
      lanes: this.#lanes,
      doorway: this.#doorway,
      guard: this.#guards.of(database),
      nextClientId,
    })
    this.#shut.delete(database.databaseId)
    const listening = this.#listen(listener)
    this.#open.set(database.databaseId, { listener, listening })
    await listening
  }

  /** A port that just became free may still be held by the listener that is being closed. */
  async #listen(listener: DatabaseListener): Promise<void> {
    await Promise.all(this.#closing)
    try {
      await listener.listen()
    } catch (error) {
      const { databaseId } = listener.database
      if (this.#open.get(databaseId)?.listener === listener) {
        this.#open.delete(databaseId)
        this.#shut.add(databaseId)
      }
      throw error
    }
  }

  #forget(databaseId: string): void {
    this.#close(databaseId, 0)
    this.#lanes.forget(databaseId)
  }

  /** The database is served no more. */
  #gone(databaseId: string): void {
    this.#shut.delete(databaseId)
    this.#guards.forget(databaseId)
  }

  #close(databaseId: string, graceMs: number): void {
    const open = this.#open.get(databaseId)
    if (!open) return
    this.#open.delete(databaseId)
    const closed = open.listening.then(() => open.listener.close(graceMs)).catch(() => {})
    this.#closing.add(closed)
    void closed.finally(() => this.#closing.delete(closed))
  }
}

/** Users of the past who are not among those of now, even if another of the same name is. */
function goneUsers({ userMarks: past = {} }: ServedDatabase, { userMarks: now = {} }: ServedDatabase): string[] {
  return Object.keys(past).filter((user) => past[user] !== now[user])
}

function samePort(one: ServedDatabase, other: ServedDatabase): boolean {
  return one.port === other.port && one.tls === other.tls
}
