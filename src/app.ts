/**
 * The composition root: every part is built once, here, and wired to the others. Nothing else knows them all.
 *
 * The order of the list in `compose` is the order of starting; stopping goes backwards, and the store comes last of all:
 *
 *   accounts ─ certificate ─ fleet ─ databases ─ usage ─┬─ gateway
 *                                                       ├─ queue, workflow
 *                                                       ├─ management listener, queue listener
 *                                                       └─ bulk, backups
 *
 * What stands side by side stops at the same time: all of it takes nothing new on and finishes what is in flight, and
 * needs only the store and what is left of it for that. A delivery that takes its time leaves no less of the grace to
 * the client of a database.
 */
import {
  type Accounts,
  accountRoutes,
  type Credentials,
  createAccounts,
  StoreMark,
  sessionRoutes,
} from './accounts/index.js'
import {
  ClientMemoryBudget,
  flattenServices,
  IdleMemory,
  type ParallelServices,
  type Service,
  type SharedGrace,
  stopAll,
  systemClock,
  VERSION,
} from './base/index.js'
import { createBulk } from './bulk/index.js'
import { type Config, isLoopback } from './config/index.js'
import { type ConsoleDeps, consoleRoutes, consoleSite } from './console.js'
import { type HomeportError, isError } from './contract/errors/errors.js'
import { createDatabases, databaseRoutes, loadPlans, refuseLostStore } from './databases/index.js'
import { createFleet, probeEngine } from './fleet/index.js'
import { createGateway, openServerCertificate, type ServerCertificate } from './gateway/index.js'
import { HostNames, HttpServer, type HttpSettings, type Route } from './http/index.js'
import { createQueue } from './queue/index.js'
import { openStore, type Store, type StoreDamage } from './store/index.js'
import { createLogger, type Logger, lastCrash, type ProblemReport, Problems } from './telemetry/index.js'
import { createWorkflow } from './workflow/index.js'

/** The whole server as one thing. */
export interface App {
  /** Resolves when every listener serves. */
  start(): Promise<void>
  /** Finishes what is in flight within one grace for all parts, ends the engines, closes the store. */
  stop(): Promise<void>
  /** What the credentials file of the data directory holds; `undefined` while that belongs to no account of the store. */
  readonly ownCredentials: Credentials | undefined
}

/** What the process around the server decides. */
export interface AppOptions {
  /** Called when the server can no longer keep its promises and has to end; what was acknowledged is safe. */
  readonly onFailure: (error: Error) => void
}

/**
 * Builds the server of a configuration. The data directory must be locked by the caller.
 * @throws HomeportError when the engine, the plans or the store cannot be used; nothing is left running then.
 */
export async function createApp(config: Config, options: AppOptions): Promise<App> {
  const logger = createLogger({ level: config.logLevel })
  const problems = new Problems(systemClock, logger)
  tellOfLastCrash(config.dataDir, problems)
  const engine = await probeEngine(config.engineBinary)
  const plans = await loadPlans(config.plansFile)
  const tls = await openCertificate(config, logger, problems)
  await refuseLostStore(config)
  const store = await openStore({
    location: config.store.kind === 'sqlite' ? 'sqlite' : config.store.url,
    dataDir: config.dataDir,
    onFailure: options.onFailure,
    onDamage: (damage) => problems.report(damagedStore(damage)),
  })
  const composed = compose({ config, logger, problems, engine, plans, tls, store, held: clientMemoryBudget(logger) })
  return new Server(store, composed, { clock: systemClock, graceMs: config.shutdownGraceMs })
}

function damagedStore({ table, found }: StoreDamage): ProblemReport {
  return {
    kind: 'store_damaged',
    subject: table,
    severity: 'error',
    title: `The store is damaged (${table}): ${found}.`,
    advice: 'Run `homeport doctor --deep`, and follow "A damaged store" in docs/operations.md.',
  }
}

function clientMemoryBudget(logger: Logger): ClientMemoryBudget {
  return new ClientMemoryBudget(undefined, (error) =>
    logger.error({ error }, 'evicting a client from memory has failed'),
  )
}

/** A crash is mentioned for so long, unless its report is deleted. */
const CRASH_TOLD_MS = 7 * 86_400_000

function tellOfLastCrash(dataDir: string, problems: Problems): void {
  const crash = lastCrash(dataDir)
  if (!crash || systemClock.now() - crash.atMs > CRASH_TOLD_MS) return
  const at = new Date(crash.atMs).toISOString()
  problems.report({
    kind: 'crash',
    subject: crash.file,
    severity: 'warning',
    title: `The server ended by a defect at ${at}: ${crash.type} in ${crash.module}.`,
    advice: `See ${crash.file} in the data directory and the log of that time, and report it. It is mentioned for 7 days, or until the file is deleted and the server restarted.`,
  })
}

interface Composed {
  readonly accounts: Accounts
  readonly memory: IdleMemory
  /** In the order of starting. */
  readonly services: readonly (Service | ParallelServices)[]
}

/** Starts and stops the composed parts; a stop that comes while they start waits for the part that is under way. */
class Server implements App {
  readonly #store: Store
  readonly #composed: Composed
  readonly #grace: SharedGrace
  #phase: 'new' | 'started' | 'stopping' = 'new'
  #starting: Promise<void> = Promise.resolve()

  constructor(store: Store, composed: Composed, grace: SharedGrace) {
    this.#store = store
    this.#composed = composed
    this.#grace = grace
  }

  get ownCredentials(): Credentials | undefined {
    return this.#composed.accounts.ownCredentials
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
      await stopAll(this.#composed.services, this.#grace)
    } finally {
      await this.#store.close()
    }
  }

  async #startAll(): Promise<void> {
    for (const service of flattenServices(this.#composed.services)) {
      if (this.#phase === 'stopping') return
      await service.start()
    }
    // What the start itself threw away is given back unless somebody is there already.
    this.#composed.memory.noteIdle()
  }
}

interface Foundations {
  readonly config: Config
  readonly logger: Logger
  /** What needs a person. */
  readonly problems: Problems
  readonly engine: Awaited<ReturnType<typeof probeEngine>>
  readonly plans: Awaited<ReturnType<typeof loadPlans>>
  /** Undefined: the local authority cannot be used, so databases with TLS are not served. */
  readonly tls: ServerCertificate | undefined
  readonly store: Store
  /** What all clients together may make the process hold. */
  readonly held: ClientMemoryBudget
}

function compose(foundations: Foundations): Composed {
  const { config, logger, store } = foundations
  const clock = systemClock
  const accounts = createAccounts({
    ...{ store, dataDir: config.dataDir, clock, logger },
    foreignStore: config.acceptUnknownData === 'quarantine' ? 'take-over' : 'refuse',
  })
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
  const bulk = createBulk({ ...config, store, queue, clock, logger })
  workflow.guard(bulk.gate)
  queue.delegateLargeCancels(bulk.cancelMessages)
  const queueRoutes = [...queue.routes(), ...workflow.routes(), ...bulk.routes()]
  const managementRoutes = [...accountRoutes(accounts), ...dataPlane.routes]
  const listeners = [
    managementListener({ ...foundations, ...dataPlane }, accounts, managementRoutes, queueRoutes),
    new HttpServer({
      ...listenerSettings(foundations, accounts, 'queue'),
      routes: queueRoutes,
      port: config.queuePort,
      bodyLimitBytes: config.queueBodyLimitBytes,
      publicUrl: config.publicQueueUrl,
    }),
  ]
  const { gateway, backups, memory } = dataPlane
  const busy = [gateway, queue, workflow, ...listeners, bulk, backups]
  const mark = new StoreMark({ store, dataDir: config.dataDir, clock, logger, problems: foundations.problems })
  return { accounts, memory, services: [accounts, mark, ...dataPlane.services, busy] }
}

/** A local authority that cannot be used stops databases with TLS, and nothing else. */
async function openCertificate(config: Config, logger: Logger, problems: Problems) {
  const onProblem = (error: HomeportError): void => {
    const subject = isError(error, 'tls_authority_unusable') ? `tls/${error.details.file}` : 'tls'
    const advice = 'Databases with TLS cannot be served, or soon not any more; all others are.'
    problems.report({ kind: 'tls_files', subject, severity: 'error', title: error.message, advice })
  }
  try {
    return await openServerCertificate({ ...certificateOptions(config, logger), onProblem })
  } catch (error) {
    if (!isError(error, 'tls_authority_unusable')) throw error
    onProblem(error)
    return undefined
  }
}

/** The certificate of databases with TLS: the operator's, or one of the local authority for every name they go by. */
function certificateOptions({ dataDir, publicRedisHost, redisDomain, ...files }: Config, logger: Logger) {
  const { tlsCertFile: certificate, tlsKeyFile: key } = files
  return {
    dataDir,
    hostNames: redisDomain === undefined ? [publicRedisHost] : [publicRedisHost, `*.${redisDomain}`],
    files: certificate === undefined || key === undefined ? undefined : { certificate, key },
    ...{ clock: systemClock, logger },
  }
}

function fleetSettings({ dataDir, engineAllowUnsafeVersion, shutdownGraceMs }: Config) {
  return { dataDir, allowUnsafeVersion: engineAllowUnsafeVersion, stopGraceMs: shutdownGraceMs }
}

/** The databases with what stands below and in front of them. */
function composeDatabases(foundations: Foundations, accounts: Accounts) {
  const { config, logger, problems, engine, plans, tls, store, held } = foundations
  const clock = systemClock
  const fleet = createFleet({
    ...{ ...fleetSettings(config), engine, clock, logger, problems },
    onData: (databaseId, report) => databases.noteData(databaseId, report),
  })
  const memory = new IdleMemory({ clock, isIdle: () => !databases.isAnyAwake })
  const databases = createDatabases({
    dataDir: config.dataDir,
    ...{ store, fleet, clock, logger, problems, plans },
    settings: config,
    emailOf: (accountId) => accounts.account(accountId)?.email ?? '',
    hasNewer: (name) => engine.commands.has(name),
    engineSettings: engine.settings,
    onServing: (databaseId) => gateway.openDatabase(databaseId),
    isOperator: (accountId) => accounts.isFirst(accountId),
    onAsleep: () => memory.noteIdle(),
    traffic: {
      meterOf: (databaseId) => gateway.usageOf(databaseId)?.meter,
      release: (databaseId, manner) => gateway.releaseEngines(databaseId, manner),
    },
  })
  const gateway = createGateway({
    settings: {
      ...{ ...config, tls, hosts: servedNames(config) },
      domainPort: config.redisDomain === undefined ? undefined : config.redisDomainPort,
    },
    directory: databases.directory,
    administration: databases.administration,
    fleet: databases,
    usage: databases.usage,
    breakOff: (databaseId) => {
      const isEnded = fleet.killPrimary(databaseId)
      if (isEnded)
        logger.warn({ databaseId }, 'a script that cannot be ended held a database: its engine is started again')
      return isEnded
    },
    hasSpace: () => fleet.hasSpace,
    onLackOfSpace: () => fleet.reportNoSpace(),
    ...{ clock, logger, version: VERSION, memory: held },
  })
  return {
    services: [...(tls ? [tls] : []), fleet, databases, databases.usage],
    backups: databases.backups,
    ...{ databases, fleet, gateway, memory },
    routes: databaseRoutes(databases),
  }
}

/** The management listener also carries the console, and for it the operations of the queue. */
function managementListener(
  foundations: Foundations & Pick<ConsoleDeps, 'databases' | 'fleet'>,
  accounts: Accounts,
  routes: readonly Route[],
  queueRoutes: readonly Route[],
): HttpServer {
  const { config, tls } = foundations
  const { sessions } = accounts
  const publicUrl = config.publicApiUrl
  const forConsole = [
    ...sessionRoutes({ sessions, publicUrl }),
    ...consoleRoutes({
      ...{ ...foundations, version: VERSION, startedAt: systemClock.now() },
      get certificate() {
        return tls?.current.certificate
      },
    }),
  ]
  return new HttpServer({
    ...listenerSettings(foundations, accounts, 'management'),
    ...{ sessions, publicUrl, site: consoleSite(config), routes: [...routes, ...forConsole] },
    guests: { routes: queueRoutes, bodyLimitBytes: config.queueBodyLimitBytes },
    port: config.apiPort,
    bodyLimitBytes: config.managementBodyLimitBytes,
  })
}

/** The names that HTTP listeners answer to; beyond loopback any. */
function servedNames({ host, allowedHosts, ...urls }: Config): HostNames | undefined {
  if (!isLoopback(host)) return undefined
  const { publicApiUrl, publicRestUrl, publicQueueUrl, publicRedisHost } = urls
  const known = [publicApiUrl, publicRestUrl, publicQueueUrl].map((url) => new URL(url).hostname)
  return new HostNames([...known, publicRedisHost, ...allowedHosts])
}

function listenerSettings(
  { config, logger, problems, held: memory }: Foundations,
  accounts: Accounts,
  service: HttpSettings['service'],
) {
  return {
    service,
    host: config.host,
    trustedProxies: config.trustedProxies,
    hosts: servedNames(config),
    authenticator: accounts,
    memory,
    problems,
    version: VERSION,
    onInternalError: (error: unknown, reference: string) =>
      logger.error({ error, reference, service }, 'a request failed'),
    stopGraceMs: config.shutdownGraceMs,
  }
}
