/**
 * The composition root: it builds every module once and wires them. Nothing else knows them all.
 *
 * Services start in the order of the list in `compose` and stop in reverse; the store closes last:
 *
 *   accounts ─ certificate ─ fleet ─ databases ─ usage ─┬─ gateway
 *                                                       ├─ queue, workflow
 *                                                       ├─ management listener, queue listener
 *                                                       └─ bulk, alerts, backups
 *
 * Services side by side stop at the same time: each takes on nothing new and finishes its work in flight, for which it
 * needs only the services before it. So a slow delivery does not shorten the grace period of a database's clients.
 *
 * Some modules use each other: the gateway wakes databases, and databases release their engines through the gateway. The
 * one that is built first gets a `Port`, which is bound to the other as soon as that exists.
 */

import { type Accounts, accountRoutes, type Credentials, createAccounts, StoreMark } from './accounts/index.js'
import { activityRoutes } from './activity/index.js'
import { activityMeter, composeActivity, countUse } from './activity-composition.js'
import { alertSources } from './alert-sources.js'
import { createAlerts } from './alerts/index.js'
import {
  ClientMemoryBudget,
  type Clock,
  flattenServices,
  IdleMemory,
  type ParallelServices,
  type Service,
  type SharedGrace,
  Strangers,
  stopAll,
  systemClock,
  VERSION,
} from './base/index.js'
import { openCertificate } from './certificate-composition.js'
import type { Cluster } from './cluster/index.js'
import { openCluster } from './cluster-composition.js'
import type { Config } from './config/index.js'
import { createDatabases, type Databases, databaseRoutes, loadPlans, refuseLostStore } from './databases/index.js'
import { createFleet, type EngineInfo, type Fleet, probeEngine } from './fleet/index.js'
import type { Foundations } from './foundations.js'
import { createGateway, type Gateway, PASSED_SERVICES } from './gateway/index.js'
import { HttpServer, type Readiness } from './http/index.js'
import { listenerSettings, managementListener, readinessOf, servedNames } from './listeners.js'
import { openBackupStorage, type StorageVariables, serviceBackupPlaces } from './object-composition.js'
import { type Environment, type Exporting, openTelemetry } from './opentelemetry/index.js'
import { composeOperator } from './operator-composition.js'
import type { OnAttempt, Queue, QueueRest } from './queue/index.js'
import { composeQueue } from './queue-composition.js'
import { openStore, type StoreDamage } from './store/index.js'
import {
  createLogger,
  type Logger,
  lastCrash,
  type ProblemReport,
  Problems,
  RecentLines,
  ServerMeters,
} from './telemetry/index.js'

/** The whole server. */
export interface App {
  /** Resolves when every listener serves. */
  start(): Promise<void>
  /** Finishes work in flight within one grace period for all services, stops the engines, closes the store. */
  stop(): Promise<void>
  /** The content of the credentials file; `undefined` unless it belongs to an account of the store. */
  readonly ownCredentials: Credentials | undefined
  /** Whether the queue has anything to do now; see `Queue.rest`. */
  queueRest(): Promise<QueueRest>
}

/** What the process that runs the server provides. */
export interface AppOptions {
  /** Called when the store has failed for good and the server has to end. Acknowledged writes are safe. */
  readonly onFailure: (error: Error) => void
  /** What is known of the engine already. Default: its program is started for a moment and asked. */
  readonly engine?: EngineInfo
  /** The time of messages, schedules, workflows, bulk actions and alerts. Default: the system's clock. */
  readonly queueClock?: Clock
  /** The time of backups, usage and sleep. Default: the system's clock. */
  readonly databaseClock?: Clock
  /** Called after each attempt to deliver a message. */
  readonly onAttempt?: OnAttempt
  /** The standard variables of OpenTelemetry. Default: none, so nothing is exported. */
  readonly telemetry?: Environment
  /** The variables with the credentials of an object storage. Default: none. */
  readonly storageVariables?: StorageVariables
}

/**
 * Builds the server for a configuration. The caller must have locked the data directory.
 * @throws HomeportError when the engine, the plans or the store cannot be used; then nothing is left running.
 */
export async function createApp(config: Config, options: AppOptions): Promise<App> {
  const recentLines = new RecentLines()
  const logger = createLogger({ level: config.logLevel, onLine: (line) => recentLines.add(line) })
  const problems = new Problems(systemClock, logger)
  reportLastCrash(config.dataDir, problems)
  const engine = options.engine ?? (await probeEngine(config.engineBinary))
  const plans = await loadPlans(config.plansFile)
  const tls = await openCertificate(config, logger, problems)
  await refuseLostStore(config)
  const meters = new ServerMeters(config, activityMeter(options))
  const exporting = options.telemetry && (await openTelemetry(options.telemetry, logger))
  const store = await openStore({
    location: config.store.kind === 'sqlite' ? 'sqlite' : config.store.url,
    dataDir: config.dataDir,
    sharing: config.node === undefined ? 'alone' : 'cluster',
    onFailure: options.onFailure,
    onDamage: (damage) => problems.report(damagedStore(damage)),
    onClock: (aheadMs, isTooFar) =>
      isTooFar ? problems.report(otherTime(aheadMs)) : problems.resolve('store_clock', 'postgres'),
    meter: meters.store,
  })
  const { cluster, notReady, close } = await openCluster({ config, plans, logger, meters, ...options, store })
  const composed = compose(
    {
      config,
      logger,
      recentLines,
      problems,
      engine,
      plans,
      tls,
      store,
      ...{ cluster, notReady },
      meters,
      clientMemory: clientMemoryBudget(logger),
      strangers: new Strangers({ onClosed: (connections) => logger.warn('strangers_closed', { connections }) }),
      tracer: exporting?.tracer,
      objectStorage: await openBackupStorage(config, options.storageVariables ?? {}, problems, logger),
      serviceBackupPlace: serviceBackupPlaces(config, options.storageVariables ?? {}),
    },
    options,
    exporting,
  )
  return new Server({ ...composed, closeStores: close }, { clock: systemClock, graceMs: config.shutdownGraceMs })
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

function otherTime(aheadMs: number): ProblemReport {
  const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1)
  return {
    kind: 'store_clock',
    subject: 'postgres',
    severity: 'warning',
    title: `The clock of PostgreSQL is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine.`,
    advice: 'Synchronise both clocks (NTP). The server does not start again while they differ by more than 2 s.',
  }
}

function clientMemoryBudget(logger: Logger): ClientMemoryBudget {
  return new ClientMemoryBudget(undefined, (error) => logger.error('client_memory_eviction_failed', { error }))
}

/** How long a crash is shown as a problem, unless its report is deleted. */
const CRASH_SHOWN_MS = 7 * 86_400_000

function reportLastCrash(dataDir: string, problems: Problems): void {
  const crash = lastCrash(dataDir)
  if (!crash || systemClock.now() - crash.atMs > CRASH_SHOWN_MS) return
  const at = new Date(crash.atMs).toISOString()
  problems.report({
    kind: 'crash',
    subject: crash.file,
    severity: 'warning',
    title: `The server crashed at ${at}: ${crash.type} in ${crash.module}.`,
    advice: `See ${crash.file} in the data directory and the log of that time, and report it. This notice stays for 7 days, or until you delete the file and restart the server.`,
  })
}

interface Composed {
  readonly accounts: Accounts
  readonly memory: IdleMemory
  readonly readiness: Readiness
  readonly queue: Queue
  readonly cluster: Cluster
  /** In the order of starting. */
  readonly services: readonly (Service | ParallelServices)[]
}

/** Starts and stops the services. A stop during the start waits for the service that is starting. */
class Server implements App {
  readonly #composed: Composed & { closeStores(): Promise<void> }
  readonly #grace: SharedGrace
  #phase: 'new' | 'started' | 'stopping' = 'new'
  #starting: Promise<void> = Promise.resolve()

  constructor(composed: Composed & { closeStores(): Promise<void> }, grace: SharedGrace) {
    this.#composed = composed
    this.#grace = grace
  }

  get ownCredentials(): Credentials | undefined {
    return this.#composed.accounts.ownCredentials
  }

  queueRest(): Promise<QueueRest> {
    return this.#composed.queue.rest()
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
    this.#composed.readiness.stopping()
    await this.#starting.catch(() => undefined)
    const { cluster, services, closeStores } = this.#composed
    const { clock, graceMs } = this.#grace
    const startedMs = clock.now()
    try {
      await cluster.drain(graceMs / 2)
      await stopAll(services, { clock, graceMs: Math.max(0, graceMs - (clock.now() - startedMs)) })
    } finally {
      await closeStores()
    }
  }

  async #startAll(): Promise<void> {
    for (const service of flattenServices(this.#composed.services)) {
      if (this.#phase === 'stopping') return
      await service.start()
    }
    this.#composed.cluster.open()
    this.#composed.readiness.started()
    // Collects the garbage of the start itself, unless clients keep the server busy.
    this.#composed.memory.noteIdle()
  }
}

/** A collaborator that is built after those that use it. They may call it once the server starts. */
class Port<Target> {
  #target: Target | undefined

  bind(target: Target): void {
    this.#target = target
  }

  get target(): Target {
    if (this.#target === undefined) throw new Error('a module was used before all were built')
    return this.#target
  }
}

function compose(foundations: Foundations, options: AppOptions, exporting: Exporting | undefined): Composed {
  const { config, logger, store, cluster } = foundations
  const clock = systemClock
  const accounts = createAccounts({
    ...{ store, dataDir: config.dataDir, clock, logger, freeDailyMessages: config.freeAccountDailyMessages },
    cluster: foundations.cluster,
    foreignStore: config.acceptUnknownData === 'quarantine' ? 'take-over' : 'refuse',
  })
  const dataPlane = composeDatabases(foundations, accounts, options.databaseClock ?? systemClock)
  const { queue, workflow, bulk } = composeQueue(foundations, accounts, options)
  const activity = composeActivity(foundations, dataPlane, options)
  const alerts = createAlerts({
    ...{ store, queue, clock: options.queueClock ?? clock, logger, problems: foundations.problems, cluster },
    ...{ node: config.node, publicUrl: config.publicApiUrl, targets: config.deliveryTargets },
    isFirst: (accountId) => accounts.isFirst(accountId),
    sources: alertSources({ ...foundations, ...dataPlane, dataDir: config.dataDir }),
  })
  const queueRoutes = [...queue.routes(), ...workflow.routes(), ...bulk.routes()]
  const operator = composeOperator(foundations, { accounts, databases: dataPlane.databases, queue })
  const own = [...accountRoutes(accounts), ...dataPlane.routes, ...activityRoutes(activity)]
  const routes = [...own, ...alerts.routes(), ...operator.routes]
  const management = managementListener({ ...foundations, ...dataPlane }, accounts, routes, queueRoutes)
  cluster.serve('management', (stream, ip) => management.accept(stream, ip))
  for (const service of PASSED_SERVICES)
    cluster.serve(service, (stream, ip, detail) => dataPlane.gateway.accept(service, stream, ip, detail))
  const listeners = [
    management,
    new HttpServer({
      ...listenerSettings({ ...foundations, ...dataPlane }, accounts, 'queue'),
      routes: queueRoutes,
      port: config.queuePort,
      bodyLimitBytes: config.queueBodyLimitBytes,
      publicUrl: config.publicQueueUrl,
    }),
  ]
  const { gateway, backups, memory, readiness } = dataPlane
  const busy = [gateway, queue, workflow, ...listeners, bulk, alerts, backups, ...operator.services]
  exporting?.bind({ figures: () => operator.metrics.export() })
  // First, so that it stops last and exports what the others did while they stopped.
  const mark = new StoreMark({ store, dataDir: config.dataDir, clock, logger, problems: foundations.problems })
  // The cluster first: a node registers before any module reads what others may change. The activity before what it counts.
  const services = [...(exporting ? [exporting] : []), cluster, [accounts, mark, activity], ...dataPlane.services, busy]
  return { accounts, memory, queue, cluster, readiness, services }
}

function fleetSettings({ dataDir, engineAllowUnsafeVersion, shutdownGraceMs }: Config) {
  return { dataDir, allowUnsafeVersion: engineAllowUnsafeVersion, stopGraceMs: shutdownGraceMs }
}

/** What databases have to know of accounts. */
function rulesOf(accounts: Accounts) {
  return {
    isOperator: (accountId: string) => accounts.isFirst(accountId),
    isAccountSuspended: (accountId: string) => accounts.standingOf(accountId) !== 'active',
    databaseLimitOf: (accountId: string) => accounts.databaseLimitOf(accountId),
  }
}

/** The fleet below the databases, the databases, and the gateway in front of them. */
function composeDatabases(foundations: Foundations, accounts: Accounts, databaseClock: Clock) {
  const { config, logger, problems, engine, plans, tls, store, meters, tracer, cluster } = foundations
  const clock = systemClock
  const databasesPort = new Port<Databases>()
  const gatewayPort = new Port<Gateway>()
  const fleet = createFleet({
    ...{ ...fleetSettings(config), engine, clock, logger, problems, meter: meters.databases },
    onData: (databaseId, report) => databasesPort.target.noteData(databaseId, report),
  })
  const readiness = readinessOf(foundations, fleet)
  const memory = new IdleMemory({ clock, isIdle: () => !databasesPort.target.isAnyAwake })
  const databases = createDatabases({
    ...{ dataDir: config.dataDir, store, fleet, clock: databaseClock, logger, problems, plans },
    ...{ meter: meters.databases, objectStorage: foundations.objectStorage },
    settings: config,
    emailOf: (accountId) => accounts.account(accountId)?.email ?? '',
    hasNewer: (name) => engine.commands.has(name),
    engineSettings: engine.settings,
    onServing: (databaseId) => gatewayPort.target.openDatabase(databaseId),
    ...{ ...rulesOf(accounts), onCounted: countUse(meters.activity), onAsleep: () => memory.noteIdle() },
    traffic: trafficThrough(gatewayPort),
    ...(config.node !== undefined && { cluster }),
  })
  databasesPort.bind(databases)
  const gateway = createGateway({
    settings: {
      ...{ ...config, tls, hosts: servedNames(config) },
      domainPort: config.redisDomain === undefined ? undefined : config.redisDomainPort,
    },
    ...{ directory: databases.directory, administration: databases.administration, fleet: databases },
    ...{ otherNodes: databases.homes.otherNodes, replicasHere: databases.others.replicas },
    ...{ usage: databases.usage, home: databases.others.standbys },
    breakOff: (databaseId) => breakOff(fleet, databaseId, logger),
    hasSpace: () => fleet.hasSpace,
    onLackOfSpace: () => fleet.reportNoSpace(),
    ...{ clock, logger, version: VERSION, readiness, tracer },
    ...{ memory: foundations.clientMemory, strangers: foundations.strangers },
  })
  gatewayPort.bind(gateway)
  return {
    services: [...(tls ? [tls] : []), fleet, databases, databases.usage],
    backups: databases.backups,
    ...{ databases, fleet, gateway, memory, readiness },
    routes: databaseRoutes(databases),
  }
}

/** What the databases ask of the gateway. */
function trafficThrough(gateway: Port<Gateway>): Parameters<typeof createDatabases>[0]['traffic'] {
  return {
    meterOf: (databaseId) => gateway.target.usageOf(databaseId)?.meter,
    release: (databaseId, manner) => gateway.target.releaseEngines(databaseId, manner),
    hold: (databaseId) => gateway.target.holdEngines(databaseId),
    proceed: (databaseId) => gateway.target.proceed(databaseId),
    isReceiving: (databaseId) => gateway.target.isReceiving(databaseId),
    breakOff: (databaseId) => gateway.target.breakOff(databaseId),
    sendAway: (databaseId) => gateway.target.sendAway(databaseId),
    reads: {
      allow: (databaseId, outstanding) => gateway.target.allowReads(databaseId, outstanding),
      note: (databaseId, totals) => gateway.target.noteReads(databaseId, totals),
    },
  }
}

/** Restarts the engine of a database that a script blocks. Returns whether it did. */
function breakOff(fleet: Fleet, databaseId: string, logger: Logger): boolean {
  const isEnded = fleet.killPrimary(databaseId)
  if (isEnded) logger.warn('engine_script_ended', { databaseId })
  return isEnded
}
