import type { Duplex } from 'node:stream'
import { Accounts, accountRoutes, type Credentials, StoreMark } from '../accounts/index.js'
import { activityRoutes } from '../activity/index.js'
import { createAlerts } from '../alerts/index.js'
import {
  type Clock,
  flattenServices,
  type IdleMemory,
  type ParallelServices,
  type Service,
  type SharedGrace,
  stopAll,
  systemClock,
} from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import type { Config } from '../config/index.js'
import { FORWARDED_SERVICES } from '../gateway/index.js'
import type { Readiness } from '../http/index.js'
import type { Exporting } from '../opentelemetry/index.js'
import type { OnAttempt, Queue, QueueRest } from '../queue/index.js'
import { composeActivity } from './activity-composition.js'
import { alertSources } from './alert-sources.js'
import { composeDatabases } from './database-composition.js'
import type { Foundations } from './foundations.js'
import { managementListener, queueListener } from './listeners.js'
import { type FoundationOptions, openFoundations } from './open-foundations.js'
import { composeOperator } from './operator-composition.js'
import { ProblemsOfNodes } from './problems-of-nodes.js'
import { composeQueue } from './queue-composition.js'

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
export interface AppOptions extends FoundationOptions {
  /** The time of backups, usage and sleep. Default: the system's clock. */
  readonly databaseClock?: Clock
  /** Called after each attempt to deliver a message. */
  readonly onAttempt?: OnAttempt
}

/**
 * Builds the server for a configuration. The caller must have locked the data directory.
 * @throws HomeportError when the engine, the plans or the store cannot be used; then nothing is left running.
 */
export async function createApp(config: Config, options: AppOptions): Promise<App> {
  const { foundations, exporting, closeStores } = await openFoundations(config, options)
  const composed = compose(foundations, options, exporting)
  return new Server({ ...composed, closeStores }, { clock: systemClock, graceMs: config.shutdownGraceMs })
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
    this.#composed.memory.reportIdle()
  }
}

function compose(foundations: Foundations, options: AppOptions, exporting: Exporting | undefined): Composed {
  const { cluster } = foundations
  const accounts = composeAccounts(foundations)
  const dataPlane = composeDatabases(foundations, accounts, options.databaseClock ?? systemClock)
  const { queue, workflow, bulk } = composeQueue(foundations, accounts, options)
  const activity = composeActivity(foundations, dataPlane, options)
  const alerts = createAlerts({
    ...alertSettings(foundations, options),
    queue,
    isFirst: (accountId) => accounts.isFirst(accountId),
    sources: alertSources({ ...foundations, ...dataPlane, dataDir: foundations.config.dataDir }),
  })
  const queueRoutes = [...queue.routes(), ...workflow.routes(), ...bulk.routes()]
  const problemsOfNodes = new ProblemsOfNodes(cluster, foundations.problems)
  const operator = composeOperator(foundations, { accounts, databases: dataPlane.databases, queue, problemsOfNodes })
  const own = [...accountRoutes(accounts), ...dataPlane.routes, ...activityRoutes(activity)]
  const routes = [...own, ...alerts.routes(), ...operator.routes]
  const listening = { ...foundations, ...dataPlane, problemsOfNodes }
  const management = managementListener(listening, accounts, routes, queueRoutes)
  const forQueue = queueListener(listening, accounts, queueRoutes)
  const accept = (stream: Duplex, ip: string): void => management.accept(stream, ip)
  cluster.serve('management', accept, () => management.isServing)
  const { gateway, backups, memory, readiness } = dataPlane
  for (const service of FORWARDED_SERVICES) {
    const pass = (stream: Duplex, ip: string, detail: string): void => gateway.accept(service, stream, ip, detail)
    cluster.serve(service, pass, () => gateway.isServing)
  }
  const busy = [gateway, queue, workflow, management, forQueue, bulk, alerts, backups, ...operator.services]
  exporting?.bind({ figures: () => operator.metrics.export() })
  // First, so that the export stops last and includes what the other services did while they stopped.
  const first = exporting ? [exporting] : []
  const { store, config, logger, problems } = foundations
  const mark = new StoreMark({ store, dataDir: config.dataDir, clock: systemClock, logger, problems })
  // The cluster first: a node registers before any module reads data that other nodes may change. The activity starts
  // before the services whose actions it counts.
  const services = [...first, cluster, [accounts, mark, activity], ...dataPlane.services, busy]
  return { accounts, memory, queue, cluster, readiness, services }
}

function composeAccounts({ config, store, logger, cluster }: Foundations): Accounts {
  return new Accounts({
    store,
    dataDir: config.dataDir,
    clock: systemClock,
    logger,
    freeDailyMessages: config.freeAccountDailyMessages,
    cluster,
    foreignStore: config.acceptUnknownData === 'quarantine' ? 'take-over' : 'refuse',
  })
}

/** The foundations that alerts use unchanged. */
function alertSettings({ config, store, logger, problems, cluster }: Foundations, { queueClock }: AppOptions) {
  return {
    store,
    clock: queueClock ?? systemClock,
    logger,
    problems,
    cluster,
    node: config.node,
    publicUrl: config.publicApiUrl,
    targets: config.deliveryTargets,
  }
}
