import { createConnection, type Socket } from 'node:net'
import { atCleanup, freePort, waitFor } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import type { CertificateSource } from '../../certificates/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { recordedLog } from '../../telemetry/testing/recorded-log.js'
import type {
  DataAccess,
  DatabaseDirectory,
  DataEndpoint,
  DataUser,
  EndpointSource,
  GatewaySettings,
  ServedDatabase,
  UsageSource,
} from '../deps.js'
import { createGateway, type GatewayOptions } from '../gateway.js'
import type { Gateway } from '../interface.js'
import { ENGINE_PASSWORDS, startEngine, type TestEngine } from './engine.js'

/** Credentials of the clients of the test database. */
export const CREDENTIALS = {
  password: 'client-secret',
  readerPassword: 'reader-secret',
  token: 'rest-token',
  readerToken: 'reader-token',
} as const

/** A directory that tests fill; every database in it has the `CREDENTIALS`. */
export class TestDirectory implements DatabaseDirectory {
  readonly databases = new Map<string, ServedDatabase>()
  readonly #listeners = new Set<(databaseId: string) => void>()

  /** Adds or replaces a database and notifies the gateway. */
  put(database: ServedDatabase): void {
    this.databases.set(database.databaseId, database)
    this.#notify(database.databaseId)
  }

  /** Removes a database and notifies the gateway. */
  remove(databaseId: string): void {
    this.databases.delete(databaseId)
    this.#notify(databaseId)
  }

  authenticate(_databaseId: string, username: string | undefined, password: string): DataUser | undefined {
    if ((username ?? 'default') === 'default') return password === CREDENTIALS.password ? 'default' : undefined
    return username === 'default_ro' && password === CREDENTIALS.readerPassword ? 'default_ro' : undefined
  }

  byRestToken(token: string): DataAccess | undefined {
    const [database] = this.databases.values()
    const user = token === CREDENTIALS.token ? 'default' : token === CREDENTIALS.readerToken ? 'default_ro' : undefined
    return database && user ? { database, user } : undefined
  }

  list(): readonly ServedDatabase[] {
    return [...this.databases.values()]
  }

  find(databaseId: string): ServedDatabase | undefined {
    return this.databases.get(databaseId)
  }

  onChange(listener: (databaseId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  engineCredentials(_databaseId: string, user: DataUser): { username: string; password: string } {
    const passwords: Readonly<Record<string, string>> = ENGINE_PASSWORDS
    return { username: user, password: passwords[user] ?? '' }
  }

  observerCredentials(): { username: string; password: string } {
    return { username: 'observer', password: ENGINE_PASSWORDS.observer }
  }

  #notify(databaseId: string): void {
    for (const listener of this.#listeners) listener(databaseId)
  }
}

/** A fleet with one engine, which refuses while `available` is false. */
export class TestFleet implements EndpointSource {
  available = true
  /** Resolves when new connections may be made: while a database moves, none may be. */
  located: Promise<void> = Promise.resolve()
  readonly #engine: TestEngine

  constructor(engine: TestEngine) {
    this.#engine = engine
  }

  async endpoints(): Promise<readonly DataEndpoint[]> {
    await this.located
    if (!this.available) throw new HomeportError('engine_failed', { reason: 'the test says so' })
    return [{ role: 'primary', region: 'us-east-1', socketPath: this.#engine.socketPath }]
  }
}

/** A gateway in front of one real engine. Everything is closed at cleanup. */
export interface Rig {
  readonly gateway: Gateway
  readonly engine: TestEngine
  readonly fleet: TestFleet
  readonly directory: TestDirectory
  readonly database: ServedDatabase
  readonly port: number
  readonly restUrl: string
  /** The messages of logged warnings and errors. */
  readonly complaints: readonly string[]
}

/**
 * Starts a gateway with one database. `database` overrides fields of its description, `tls` is its certificate, `usage`
 * stores its usage, `engineSettings` are for the engine and `more` is for the gateway.
 */
export async function startRig(
  database: Partial<ServedDatabase> = {},
  tls?: CertificateSource,
  usage?: UsageSource,
  engineSettings: readonly string[] = [],
  more: Partial<
    Pick<
      GatewayOptions,
      | 'restartEngine'
      | 'clientTimeoutMs'
      | 'administration'
      | 'clock'
      | 'readerBounds'
      | 'readiness'
      | 'memory'
      | 'connectionLimiter'
      | 'hasSpace'
      | 'home'
      | 'onLackOfSpace'
      | 'otherNodes'
    >
  > &
    Partial<GatewaySettings> = {},
): Promise<Rig> {
  const engine = await startEngine(engineSettings)
  const directory = new TestDirectory()
  const fleet = new TestFleet(engine)
  const served = { databaseId: 'db-one', port: await freePort(), tls: false, ...database }
  directory.databases.set(served.databaseId, served)
  const { logger, texts: complaints } = recordedLog(['warn', 'error'])
  const gateway = createGateway({
    ...more,
    settings: { host: '127.0.0.1', restPort: 0, tls, ...more },
    usage,
    directory,
    fleet,
    logger,
    clock: more.clock ?? systemClock,
    version: '0.0.0-test',
    stopGraceMs: 200,
  })
  await gateway.start()
  atCleanup(() => gateway.stop())
  const restUrl = `http://127.0.0.1:${gateway.restPort}`
  return { gateway, engine, fleet, directory, database: served, port: served.port, restUrl, complaints }
}

/** A bare connection to the data plane, for tests of details that client libraries hide. */
export class RawClient {
  readonly socket: Socket
  /** Everything received that `expect` has not consumed. */
  received = ''
  #closed = false

  constructor(port: number) {
    this.socket = createConnection({ port, host: '127.0.0.1' })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text) => (this.received += String(text)))
    this.socket.on('close', () => (this.#closed = true))
    this.socket.on('error', () => {})
    atCleanup(() => void this.socket.destroy())
  }

  /** Sends bytes as they are. */
  send(text: string | Buffer): this {
    this.socket.write(text)
    return this
  }

  /** Waits until exactly `expected` has been received, and consumes it. */
  async expect(expected: string): Promise<void> {
    await waitFor(() => this.received.length >= expected.length, {
      what: `the reply ${JSON.stringify(expected)}`,
    })
    const got = this.received.slice(0, expected.length)
    this.received = this.received.slice(expected.length)
    if (got !== expected)
      throw new Error(`expected ${JSON.stringify(expected)}, received ${JSON.stringify(got + this.received)}`)
  }

  /** Waits until the server has closed the connection. */
  async expectClosed(): Promise<void> {
    await waitFor(() => this.#closed, { what: 'the server to close the connection' })
  }

  /** Logs in as `default`. */
  async login(): Promise<this> {
    this.send(`AUTH ${CREDENTIALS.password}\r\n`)
    await this.expect('+OK\r\n')
    return this
  }
}
