import type { Accounts } from '../accounts/index.js'
import { type Clock, IdleMemory, systemClock, VERSION } from '../base/index.js'
import { createDatabases, type Databases, databaseRoutes } from '../databases/index.js'
import { createFleet, type Fleet } from '../fleet/index.js'
import { createGateway, type Gateway } from '../gateway/index.js'
import type { Caller, Readiness } from '../http/index.js'
import type { Logger } from '../telemetry/index.js'
import { countUse } from './activity-composition.js'
import type { Foundations } from './foundations.js'
import { readinessOf, servedNames } from './listeners.js'

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

/**
 * The fleet below the databases, the databases, and the gateway in front of them.
 * @param databaseClock the time of backups, usage and sleep.
 */
export function composeDatabases(foundations: Foundations, accounts: Accounts, databaseClock: Clock) {
  const databasesPort = new Port<Databases>()
  const gatewayPort = new Port<Gateway>()
  const fleet = composeFleet(foundations, databasesPort)
  const readiness = readinessOf(foundations, fleet)
  const memory = new IdleMemory({ clock: systemClock, isIdle: () => !databasesPort.target.isAnyAwake })
  const databases = createDatabases({
    ...settingsOf(foundations),
    ...rulesOf(accounts),
    fleet,
    clock: databaseClock,
    onCounted: countUse(foundations.meters.activity),
    onServing: (databaseId) => gatewayPort.target.openDatabase(databaseId),
    onAsleep: () => memory.reportIdle(),
    traffic: trafficThrough(gatewayPort),
  })
  databasesPort.bind(databases)
  const gateway = composeGateway(foundations, { fleet, databases, readiness })
  gatewayPort.bind(gateway)
  const { tls } = foundations
  return {
    databases,
    fleet,
    gateway,
    memory,
    readiness,
    backups: databases.backups,
    routes: databaseRoutes(databases),
    services: [...(tls ? [tls] : []), fleet, databases, databases.usage],
  }
}

function composeFleet({ config, engine, logger, problems, meters }: Foundations, databases: Port<Databases>): Fleet {
  return createFleet({
    dataDir: config.dataDir,
    engine,
    allowUnsafeVersion: config.engineAllowUnsafeVersion,
    stopGraceMs: config.shutdownGraceMs,
    clock: systemClock,
    logger,
    problems,
    meter: meters.databases,
    onData: (databaseId, report) => databases.target.recordDataReport(databaseId, report),
  })
}

/** The foundations that databases use unchanged. */
function settingsOf({ config, engine, meters, cluster, ...foundations }: Foundations) {
  const { store, logger, problems, plans, objectStorage } = foundations
  return {
    dataDir: config.dataDir,
    settings: config,
    store,
    logger,
    problems,
    plans,
    meter: meters.databases,
    objectStorage,
    hasNewer: (name: string) => engine.commands.has(name),
    engineSettings: engine.settings,
    ...(config.node !== undefined && { cluster }),
  }
}

/** What databases ask about accounts. */
function rulesOf(accounts: Accounts) {
  return {
    emailOf: (accountId: string) => accounts.account(accountId)?.email ?? '',
    isOperator: (accountId: string) => accounts.isFirst(accountId),
    isAccountSuspended: (accountId: string) => accounts.standingOf(accountId) !== 'active',
    isStillMember: (caller: Caller) => accounts.isStillMember(caller),
    databaseLimitOf: (accountId: string) => accounts.databaseLimitOf(accountId),
  }
}

/** The functions of the gateway that databases call. */
function trafficThrough(gateway: Port<Gateway>): Parameters<typeof createDatabases>[0]['traffic'] {
  return {
    meterOf: (databaseId) => gateway.target.usageOf(databaseId)?.meter,
    release: (databaseId, manner) => gateway.target.releaseEngines(databaseId, manner),
    hold: (databaseId) => gateway.target.holdEngines(databaseId),
    proceed: (databaseId) => gateway.target.proceed(databaseId),
    isReceiving: (databaseId) => gateway.target.isReceiving(databaseId),
    abortIncomplete: (databaseId) => gateway.target.abortIncomplete(databaseId),
    disconnectClients: (databaseId) => gateway.target.disconnectClients(databaseId),
    reads: {
      allow: (databaseId, outstanding) => gateway.target.allowReads(databaseId, outstanding),
      note: (databaseId, totals) => gateway.target.countReads(databaseId, totals),
    },
  }
}

/** What is built below the gateway. */
interface BelowGateway {
  readonly fleet: Fleet
  readonly databases: Databases
  readonly readiness: Readiness
}

function composeGateway(foundations: Foundations, { fleet, databases, readiness }: BelowGateway): Gateway {
  const { config, logger, tls } = foundations
  const domainPort = config.redisDomain === undefined ? undefined : config.redisDomainPort
  return createGateway({
    settings: { ...config, tls, hosts: servedNames(config), domainPort },
    directory: databases.directory,
    administration: databases.administration,
    fleet: databases,
    otherNodes: databases.homes.otherNodes,
    replicasHere: databases.others.replicas,
    usage: databases.usage,
    home: databases.others.standbys,
    restartEngine: (databaseId) => restartEngine(fleet, databaseId, logger),
    hasSpace: () => fleet.hasSpace,
    onLackOfSpace: () => fleet.reportNoSpace(),
    clock: systemClock,
    logger,
    version: VERSION,
    readiness,
    tracer: foundations.tracer,
    memory: foundations.clientMemory,
    connectionLimiter: foundations.connectionLimiter,
  })
}

/** Ends the engine of a database that a script blocks; the fleet restarts it. Returns whether an engine was ended. */
function restartEngine(fleet: Fleet, databaseId: string, logger: Logger): boolean {
  const isEnded = fleet.killPrimary(databaseId)
  if (isEnded) logger.warn('engine_script_ended', { databaseId })
  return isEnded
}
