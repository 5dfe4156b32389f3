/**
 * The composition root: every part is built once, here, and wired to the others. Nothing else knows them all.
 *
 * The order of the list in `compose` is the order of starting; stopping goes backwards, so that listeners close before
 * what they speak to, and the store last of all:
 *
 *   accounts ─ fleet ─ databases ─ gateway ─ queue ─ workflow ─ management listener ─ queue listener ─ bulk ─ backups
 *
 * Bulk actions and backups come last, so that at the end nobody waits at a listener for one that takes its time.
 */
import { readFileSync } from 'node:fs'
import { type Accounts, accountRoutes, type Credentials, createAccounts } from './accounts/index.js'
import { type Service, stopAll, systemClock } from './base/index.js'
import { createBulk } from './bulk/index.js'
import type { Config } from './config/index.js'
import type { ServiceName } from './contract/endpoint.js'
import { createDatabases, databaseRoutes, loadPlans } from './databases/index.js'
import { createFleet, probeEngine } from './fleet/index.js'
import { createGateway, type KeyPair, localCertificate } from './gateway/index.js'
import { HttpServer, type Route } from './http/index.js'
import { createQueue } from './queue/index.js'
import { openStore, type Store } from './store/index.js'
import { createLogger } from './telemetry/index.js'
import { createWorkflow } from './workflow/index.js'

type Logger = ReturnType<typeof createLogger>

/** The whole server as one thing. */
export interface App {
  /** Resolves when every listener serves. */
  start(): Promise<void>
  /** Finishes what is in flight, ends the engines, closes the store. */
  stop(): Promise<void>
  /** The credentials that this very start has made; `undefined` on later starts. */
  readonly firstStart: Credentials | undefined
}

/** What the process around the server decides. */
export interface AppSurroundings {
  /** Called when the server can no longer keep its promises and has to end; what was acknowledged is safe. */
  readonly onFailure: (error: Error) => void
}

/** Homeport's version, from its package. */
const VERSION = packageVersion()

/**
 * Builds the server of a configuration. The data directory must be locked by the caller.
 * @throws HomeportError when the engine, the plans or the store cannot be used; nothing is left running then.
 */
export async function createApp(config: Config, surroundings: AppSurroundings): Promise<App> {
  const logger = createLogger({ level: config.logLevel })
  const engine = await probeEngine(config.engineBinary)
  const plans = await loadPlans(config.plansFile)
  const tls = await localCertificate({
    dataDir: config.dataDir,
    hostName: config.publicRedisHost,
    nowMs: systemClock.now(),
  })
  const store = await openStore({
    location: config.store.kind === 'sqlite' ? 'sqlite' : config.store.url,
    dataDir: config.dataDir,
    onFailure: surroundings.onFailure,
  })
  return new Server(store, compose({ config, logger, engine, plans, tls, store }))
}

interface Composed {
  readonly accounts: Accounts
  /** In the order of starting. */
  readonly services: readonly Service[]
}

/** Starts and stops the composed parts; a stop that comes while they start waits for the part that is under way. */
class Server implements App {
  readonly #store: Store
  readonly #composed: Composed
  #phase: 'new' | 'started' | 'stopping' = 'new'
  #starting: Promise<void> = Promise.resolve()

  constructor(store: Store, composed: Composed) {
    this.#store = store
    this.#composed = composed
  }

  get firstStart(): Credentials | undefined {
    return this.#composed.accounts.firstStart
  }

  start(): Promise<void> {
    if (this.#phase === 'new') {
      this.#phase = 'started'
      this.#starting = this.#startAll()
    }
    return this.#starting
  }

  async stop(): Promise<void> {
    if (this.#phase === 'stopping') return
    this.#phase = 'stopping'
    await this.#starting.catch(() => undefined)
    try {
      await stopAll(this.#composed.services)
    } finally {
      await this.#store.close()
    }
  }

  async #startAll(): Promise<void> {
    for (const service of this.#composed.services) {
      if (this.#phase === 'stopping') return
      await service.start()
    }
  }
}

interface Foundations {
  readonly config: Config
  readonly logger: Logger
  readonly engine: Awaited<ReturnType<typeof probeEngine>>
  readonly plans: Awaited<ReturnType<typeof loadPlans>>
  readonly tls: KeyPair
  readonly store: Store
}

function compose(foundations: Foundations): Composed {
  const { config, logger, store } = foundations
  const clock = systemClock
  const accounts = createAccounts({ store, dataDir: config.dataDir, clock, logger })
  const dataPlane = composeDatabases(foundations, accounts)
  const queue = createQueue({ ...config, store, clock, logger, keys: accounts })
  const workflow = createWorkflow({
    ...config,
    store,
    queue,
    clock,
    logger,
    publicUrl: config.publicQueueUrl,
    accountOfUser: (userId) => accounts.accountOfQueueUser(userId)?.accountId,
  })
  const bulk = createBulk({ store, queue, clock, logger })
  const management = listener(foundations, accounts, 'management', [...accountRoutes(accounts), ...dataPlane.routes])
  const queueRoutes = [...queue.routes(), ...workflow.routes(), ...bulk.routes()]
  const queueListener = listener(foundations, accounts, 'queue', queueRoutes)
  const listeners = [management, queueListener]
  const longWorkers = [bulk, dataPlane.backups]
  return { accounts, services: [accounts, ...dataPlane.services, queue, workflow, ...listeners, ...longWorkers] }
}

/** The databases with what stands below and in front of them. */
function composeDatabases({ config, logger, engine, plans, tls, store }: Foundations, accounts: Accounts) {
  const clock = systemClock
  const fleet = createFleet({
    dataDir: config.dataDir,
    engine,
    clock,
    logger,
    allowUnsafeVersion: config.engineAllowUnsafeVersion,
    stopGraceMs: config.shutdownGraceMs,
  })
  const databases = createDatabases({
    dataDir: config.dataDir,
    store,
    fleet,
    clock,
    logger,
    plans,
    settings: config,
    emailOf: (accountId) => accounts.account(accountId)?.email ?? '',
    onServing: (databaseId) => gateway.openDatabase(databaseId),
  })
  const gateway = createGateway({
    settings: { ...config, tls: { cert: tls.certificate, key: tls.key } },
    directory: databases.directory,
    fleet: databases,
    clock,
    logger,
    version: VERSION,
  })
  return {
    services: [fleet, databases, gateway],
    backups: databases.backups,
    routes: databaseRoutes(databases),
  }
}

function listener(
  foundations: Foundations,
  accounts: Accounts,
  service: ServiceName,
  routes: readonly Route[],
): HttpServer {
  const { config, logger } = foundations
  const isManagement = service === 'management'
  return new HttpServer({
    service,
    routes,
    host: config.host,
    port: isManagement ? config.apiPort : config.queuePort,
    bodyLimitBytes: isManagement ? config.managementBodyLimitBytes : config.queueBodyLimitBytes,
    publicUrl: isManagement ? config.publicApiUrl : config.publicQueueUrl,
    authenticator: accounts,
    version: VERSION,
    onInternalError: (error, reference) => logger.error({ err: error, reference, service }, 'a request failed'),
    stopGraceMs: config.shutdownGraceMs,
  })
}

function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { version }: { version: string } = JSON.parse(text)
  return version
}
