import { ClientMemoryBudget, type Clock, ConnectionLimiter, systemClock } from '../base/index.js'
import type { Config } from '../config/index.js'
import { loadPlans, refuseLostStore } from '../databases/index.js'
import { type EngineInfo, probeEngine } from '../fleet/index.js'
import { HeavyRequests } from '../http/index.js'
import type { StorageVariables } from '../objects/index.js'
import { type Environment, type Exporting, openTelemetry } from '../opentelemetry/index.js'
import { openStore, type Store, type StoreDamage } from '../store/index.js'
import {
  createLogger,
  type Logger,
  lastCrash,
  type ProblemReport,
  Problems,
  RecentLines,
  ServerMeters,
} from '../telemetry/index.js'
import { activityMeter } from './activity-composition.js'
import { openCertificate } from './certificate-composition.js'
import { openCluster } from './cluster-composition.js'
import type { Foundations } from './foundations.js'
import { openBackupStorage, serviceBackupPlaces } from './object-composition.js'

/** What the process that runs the server provides for its foundations. */
export interface FoundationOptions {
  /** Called when the store has failed for good and the server has to end. Acknowledged writes are safe. */
  readonly onFailure: (error: Error) => void
  /** The engine, if it was probed before. Default: Homeport starts its program briefly and asks it. */
  readonly engine?: EngineInfo
  /** The standard variables of OpenTelemetry. Default: none, so nothing is exported. */
  readonly telemetry?: Environment
  /** The variables with the credentials of an object storage. Default: none. */
  readonly storageVariables?: StorageVariables
  /** The time of messages, schedules, workflows, bulk actions and alerts. Default: the system's clock. */
  readonly queueClock?: Clock
}

/** The foundations, and what is opened with them. */
interface OpenedFoundations {
  readonly foundations: Foundations
  /** Absent while nothing is exported. */
  readonly exporting: Exporting | undefined
  /** Closes the stores, once every service has stopped. */
  closeStores(): Promise<void>
}

/**
 * Reads the settings that are files, asks the engine, and opens the store and the cluster.
 * @throws HomeportError when the engine, the plans or the store cannot be used; then nothing is left running.
 */
export async function openFoundations(config: Config, options: FoundationOptions): Promise<OpenedFoundations> {
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
  const store = await openStoreOf(config, options.onFailure, { problems, meters })
  const clientMemory = new ClientMemoryBudget(undefined, (error) =>
    logger.error('client_memory_eviction_failed', { error }),
  )
  const shared = { config, plans, logger, meters, memory: clientMemory, store }
  const { cluster, notReady, close } = await openCluster({ ...shared, ...options })
  const storageVariables = options.storageVariables ?? {}
  const foundations: Foundations = {
    config,
    logger,
    recentLines,
    problems,
    engine,
    plans,
    tls,
    store,
    cluster,
    notReady,
    heavy: new HeavyRequests(),
    meters,
    clientMemory,
    connectionLimiter: strangersOf(logger),
    tracer: exporting?.tracer,
    objectStorage: await openBackupStorage(config, storageVariables, problems, logger),
    serviceBackupPlace: serviceBackupPlaces(config, storageVariables),
  }
  return { foundations, exporting, closeStores: close }
}

function strangersOf(logger: Logger): ConnectionLimiter {
  return new ConnectionLimiter({
    onUnauthenticatedClosed: (connections) => logger.warn('strangers_closed', { connections }),
    // The owner of a connection to a database at another node is a token, because its account is not known here.
    onOwnerLimited: (owner, connections) =>
      logger.warn('connections_limited', { connections, ...(owner.startsWith('acc_') && { accountId: owner }) }),
  })
}

function openStoreOf(
  config: Config,
  onFailure: (error: Error) => void,
  { problems, meters }: Pick<Foundations, 'problems' | 'meters'>,
): Promise<Store> {
  return openStore({
    location: config.store.kind === 'sqlite' ? 'sqlite' : config.store.url,
    dataDir: config.dataDir,
    sharing: config.node === undefined ? 'alone' : 'cluster',
    onFailure,
    onDamage: (damage) => problems.report(damagedStore(damage)),
    onFull: () => problems.reportUntilCalm(FULL_STORE, FULL_SHOWN_MS),
    onClock: (aheadMs, isTooFar) =>
      isTooFar ? problems.report(otherTime(aheadMs, config)) : problems.resolve('store_clock', 'postgres'),
    meter: meters.store,
  })
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

const WRONG_CLOCK_OF_NODE =
  ' Until then, messages that this node accepts and others send, and schedules while it leads, are early or late by this difference.'

const FULL_STORE: ProblemReport = {
  kind: 'store_full',
  subject: 'postgres',
  severity: 'error',
  title: 'PostgreSQL refuses writes, because its disk is full.',
  advice: 'Free space on the disk of PostgreSQL. This notice ends ten minutes after the last refused write.',
}
/** How long the problem is shown after the last refused write. Small writes may succeed while larger ones still fail. */
const FULL_SHOWN_MS = 600_000

function otherTime(aheadMs: number, { node }: Config): ProblemReport {
  const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1)
  return {
    kind: 'store_clock',
    subject: 'postgres',
    severity: 'warning',
    title: `The clock of PostgreSQL is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine.`,
    advice: `Synchronise both clocks (NTP). The server does not start again while they differ by more than 2 s.${node === undefined ? '' : WRONG_CLOCK_OF_NODE}`,
  }
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
