/**
 * The figures of `GET /metrics` and of the export by OpenTelemetry. They need several modules, so the composition root
 * collects them. Counters come from the meters of the modules. `SlicedCount` counts stored rows, at most every 15 seconds.
 *
 * The first account and the holder of `metricsToken` see the whole server. Any other account sees its own databases.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import type { Config } from '../config/index.js'
import { getDatabaseMetrics, getMetrics } from '../contract/databases/stats.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Databases, databaseFigures } from '../databases/index.js'
import type { EngineInfo } from '../fleet/index.js'
import { checkAddress } from '../gateway/index.js'
import { type Caller, type Route, reply, route } from '../http/index.js'
import type { Queue } from '../queue/index.js'
import * as messagesCensus from '../queue/transactions/messages-census.js'
import type { Store } from '../store/index.js'
import {
  byLabel,
  type Figures,
  METRICS_CONTENT_TYPE,
  MeterTotals,
  type MetricValue,
  type Problem,
  type Problems,
  ProcessMetrics,
  renderMetrics,
  type ServerMeters,
  SlicedCount,
} from '../telemetry/index.js'
import * as runsCensus from '../workflow/transactions/runs-census.js'

/** What metrics are read from. */
export interface MetricsDeps {
  readonly config: Pick<Config, 'dataDir' | 'metricsToken' | 'metricsDatabases'>
  readonly clock: Clock
  readonly engine: Pick<EngineInfo, 'kind' | 'version'>
  readonly store: Store
  readonly problems: Pick<Problems, 'all'>
  readonly databases: Pick<Databases, 'usage' | 'isAwake' | 'directory'>
  readonly queue: Pick<Queue, 'load'>
  readonly cluster: Pick<Cluster, 'isSingleNode' | 'isLeader' | 'owned' | 'peers'>
  readonly meters: ServerMeters
  readonly version: string
  /** Accounts whose messages are not delivered now. */
  readonly heldAccounts: () => ReadonlySet<string>
  /** Whether an account is the operator's. */
  readonly isOperator: (accountId: string) => boolean
}

/** Rows of one slice of a count: one to three milliseconds of work. */
const SLICE_ROWS = 20_000
const SCRAPER = 'METRICS_TOKEN'

/** The figures of a server, for scrapers and for the export by OpenTelemetry. */
export interface MetricsSource {
  /** Answers scrapers. */
  readonly route: Route
  /** The figures of the whole server and of the databases of all accounts. */
  export(): Promise<Figures>
}

/** The source of the metrics of a server. */
export function metricsSource(deps: MetricsDeps): MetricsSource {
  const server = new ServerMetrics(deps)
  // Event-loop delays are measured since the last reading, so each reader has its own instance.
  const exported = new ProcessMetrics()
  return { route: metricsRoute(deps, server), export: () => server.all(exported) }
}

function metricsRoute(deps: MetricsDeps, server: ServerMetrics): Route {
  const { metricsToken } = deps.config
  const expected = metricsToken === undefined ? undefined : digestOf(metricsToken)
  return {
    ...route(getMetrics, async ({ caller }) => {
      const text = await renderMetrics(await server.visibleTo(caller))
      return reply(200, Buffer.from(text), { 'content-type': METRICS_CONTENT_TYPE })
    }),
    recognise: (authorization, ip) => (isToken(authorization, expected) ? scraper(ip) : undefined),
  }
}

/**
 * The route that answers scrapers of a single database. Their credentials are tokens of the database itself, so that its
 * users need no API key of the account.
 */
export function databaseMetricsRoute({ databases }: Pick<MetricsDeps, 'databases'>): Route {
  const { directory, usage } = databases
  const handler = route(getDatabaseMetrics, async ({ caller, params: { id: databaseId }, ip }) => {
    const row = directory.rowOf(databaseId)
    const ledger = usage.ledgers.find((one) => one.row.database_id === databaseId)
    const isAllowed = caller.source.startsWith(DATABASE_TOKEN)
      ? caller.source === sourceOf(databaseId)
      : row?.account_id === caller.accountId
    if (!row || !ledger || !isAllowed) throw new HomeportError('database_not_found', { databaseId })
    const served = directory.find(databaseId)
    if (served && caller.source === sourceOf(databaseId)) checkAddress(served, ip)
    if (row.production_pack !== 1) throw new HomeportError('metrics_not_enabled', { databaseId })
    const metered = [{ ledger, isAwake: databases.isAwake(databaseId) }]
    const text = await renderMetrics(databaseFigures(metered, usage.nowMs))
    return reply(200, Buffer.from(text), { 'content-type': METRICS_CONTENT_TYPE })
  })
  return {
    ...handler,
    recognise: (authorization, ip) => {
      const token = bearerOf(authorization)
      const access = token === undefined ? undefined : directory.byRestToken(token)
      const row = access && directory.rowOf(access.database.databaseId)
      if (!access || !row || !['default', 'default_ro'].includes(access.user)) return undefined
      const source = sourceOf(row.database_id)
      return { accountId: row.account_id, email: '', accountType: 'paid', source, access: 'read', ip }
    },
  }
}

/** Prefix of `Caller.source` for a scraper of one database. */
const DATABASE_TOKEN = 'DATABASE_TOKEN - '
const sourceOf = (databaseId: string): string => DATABASE_TOKEN + databaseId

const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S{1,256}) *$/i.exec(authorization ?? '')?.[1]

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Digests have one length, so the comparison takes the same time for every wrong token. */
function isToken(authorization: string | undefined, expected: Buffer | undefined): boolean {
  const token = bearerOf(authorization)
  return expected !== undefined && token !== undefined && timingSafeEqual(digestOf(token), expected)
}

const scraper = (ip: string): Caller => ({
  accountId: '',
  email: '',
  accountType: 'paid',
  source: SCRAPER,
  access: 'read',
  ip,
})

/** Collects the figures of a scrape. */
class ServerMetrics {
  readonly #deps: MetricsDeps
  readonly #process = new ProcessMetrics()
  readonly #totals = new MeterTotals()
  readonly #counts: ReturnType<typeof countsOf>

  constructor(deps: MetricsDeps) {
    this.#deps = deps
    this.#counts = countsOf(deps)
  }

  /** The figures that a caller may see. */
  async visibleTo({ accountId, source }: Caller): Promise<Figures> {
    if (source === SCRAPER) return this.all(this.#process)
    const own = this.#databases(accountId)
    return this.#deps.isOperator(accountId) ? { ...(await this.#server(this.#process)), ...own } : own
  }

  /** The figures of the whole server, and of the databases of all accounts. */
  async all(process: ProcessMetrics): Promise<Figures> {
    const databases = this.#databases(undefined)
    return { ...(await this.#server(process)), ...databases }
  }

  /** Figures of single databases; of all accounts without an `accountId`. */
  #databases(accountId: string | undefined): Figures {
    const { databases, config } = this.#deps
    const ledgers = databases.usage.ledgers.filter(({ row }) => (accountId ?? row.account_id) === row.account_id)
    const shown = ledgers
      .sort((one, other) => other.meter.lastActivityAtMs - one.meter.lastActivityAtMs)
      .slice(0, config.metricsDatabases)
    const metered = shown.map((ledger) => ({ ledger, isAwake: databases.isAwake(ledger.row.database_id) }))
    return {
      homeport_metrics_databases_omitted: ledgers.length - shown.length,
      ...databaseFigures(metered, databases.usage.nowMs),
    }
  }

  async #server(ofProcess: ProcessMetrics): Promise<Figures> {
    const { queue, meters, databases } = this.#deps
    const { ledgers } = databases.usage
    this.#totals.look(ledgers.map(({ meter }) => meter))
    const isSuspended = ledgers.map(({ row }) => row.state === 'suspended')
    const awake = ledgers.filter(({ row }) => databases.isAwake(row.database_id)).length
    const suspended = isSuspended.filter(Boolean).length
    const [process, stored, disk] = await Promise.all([ofProcess.figures(), this.#stored(), this.#disk()])
    return {
      ...this.#about(),
      ...process,
      ...disk,
      ...stored,
      ...storeFigures(meters),
      ...queueFigures(meters, queue.load),
      ...workflowFigures(meters),
      ...this.#totals.figures,
      ...databasesFigures(meters),
      ...endpointFigures(meters),
      ...clusterFigures(meters, this.#deps.cluster),
      homeport_databases: byLabel('state', { awake, suspended, asleep: ledgers.length - awake - suspended }),
    }
  }

  #about(): Figures {
    const { version, engine, store, problems } = this.#deps
    const labels = { version, node: process.version, engine: engine.kind, engine_version: engine.version }
    return {
      homeport_build_info: [{ labels: { ...labels, store: store.describe().kind }, value: 1 }],
      homeport_problems: problemFigures(problems.all()),
    }
  }

  /** Figures that only the store knows. If the store does not answer, these figures are missing and the others are not. */
  async #stored(): Promise<Figures> {
    const { store, clock } = this.#deps
    const { pending, held, dead, active, deadRuns, waits } = this.#counts
    const [due, waiting, ...counts] = await Promise.all([
      store.run(messagesCensus.earliest, { except: [...this.#deps.heldAccounts()] }).catch(() => undefined),
      ...[waits, pending, held, dead, active, deadRuns].map((count) => count.read()),
    ])
    const messages = { pending: counts[0], held: counts[1], dead: counts[2] }
    const runs = { active: counts[3], dead: counts[4] }
    const lateSeconds = (at: number | null): number => (at === null ? 0 : Math.max(0, (clock.now() - at) / 1_000))
    return {
      homeport_queue_messages: knownByState(messages),
      homeport_workflow_runs: knownByState(runs),
      ...(waiting !== undefined && { homeport_workflow_waits: waiting }),
      ...(due && {
        homeport_queue_oldest_due_age_seconds: lateSeconds(due.message),
        homeport_queue_schedule_delay_seconds: lateSeconds(due.schedule),
      }),
    }
  }

  async #disk(): Promise<Figures> {
    const { config, store } = this.#deps
    const { bavail, blocks, bsize } = await statfs(config.dataDir)
    const disk = { homeport_disk_free_bytes: bavail * bsize, homeport_disk_size_bytes: blocks * bsize }
    if (store.describe().kind !== 'sqlite') return disk
    const file = join(config.dataDir, 'homeport.sqlite')
    const [data, log] = await Promise.all([sizeOf(file), sizeOf(`${file}-wal`)])
    return { ...disk, homeport_store_size_bytes: data, homeport_store_log_bytes: log }
  }
}

function countsOf({ store, clock }: MetricsDeps) {
  const messages = (what: messagesCensus.CountedMessages) =>
    new SlicedCount({
      clock,
      start: messagesCensus.CENSUS_START,
      slice: (after) => store.run(messagesCensus.slice, { what, after, size: SLICE_ROWS }),
    })
  const runs = (what: runsCensus.CountedRuns) =>
    new SlicedCount({
      clock,
      start: runsCensus.RUNS_START,
      slice: (after) => store.run(runsCensus.slice, { what, after, size: SLICE_ROWS }),
    })
  return {
    pending: messages('pending'),
    held: messages('held'),
    dead: messages('dead'),
    active: runs('active'),
    deadRuns: runs('dead'),
    waits: runs('waits'),
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

/** The values that are known. */
function knownByState(figures: Readonly<Record<string, number | undefined>>): readonly MetricValue[] {
  return Object.entries(figures).flatMap(([name, value]) =>
    value === undefined ? [] : [{ labels: { state: name }, value }],
  )
}

/** Problems by kind and severity. Store damage is always listed, even as 0, so that alerts on it always have a series. */
function problemFigures(problems: readonly Problem[]): readonly MetricValue[] {
  const counts = new Map([['store_damaged error', 0]])
  for (const { kind, severity } of problems) {
    const key = `${kind} ${severity}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts].map(([key, value]) => {
    const [kind = '', severity = ''] = key.split(' ')
    return { labels: { kind, severity }, value }
  })
}

function storeFigures({ store: { read, write, checkpoints } }: ServerMeters): Figures {
  return {
    homeport_store_transaction_duration_seconds: byLabel('access', { read: read.duration, write: write.duration }),
    homeport_store_transactions_pending: byLabel('access', { read: read.pending, write: write.pending }),
    homeport_store_failed_transactions_total: byLabel('access', { read: read.failed, write: write.failed }),
    homeport_store_checkpoints_total: checkpoints,
  }
}

function queueFigures({ queue }: ServerMeters, { sending, most, held }: Queue['load']): Figures {
  return {
    homeport_queue_published_total: queue.published,
    homeport_queue_deduplicated_total: queue.deduplicated,
    homeport_queue_deliveries_total: byLabel('outcome', queue.deliveries),
    homeport_queue_delivery_duration_seconds: queue.duration,
    homeport_queue_delivery_delay_seconds: queue.delay,
    homeport_queue_delivery_attempts: queue.attempts,
    homeport_queue_dead_letters_total: queue.deadLetters,
    homeport_queue_flow_control_waits_total: queue.flowWaits,
    homeport_queue_strays_total: queue.strays,
    homeport_queue_deliveries_in_flight: sending,
    homeport_queue_delivery_concurrency: most,
    homeport_queue_messages_in_memory: held,
    homeport_queue_schedule_fires_total: queue.fires,
    homeport_queue_schedule_failures_total: queue.failedFires,
  }
}

/** By destination host, if the option `metricsEndpoints` allows any. */
function endpointFigures({ queue: { endpoints } }: ServerMeters): Figures {
  const hosts = [...endpoints.all()]
  return {
    homeport_endpoint_deliveries_total: hosts.flatMap(([host, { delivered, retried, failed }]) =>
      Object.entries({ delivered, retried, failed }).map(([outcome, value]) => ({ labels: { host, outcome }, value })),
    ),
    homeport_endpoint_delivery_seconds_total: hosts.map(([host, { seconds }]) => ({
      labels: { host },
      value: seconds,
    })),
  }
}

function workflowFigures({ workflow, bulk }: ServerMeters): Figures {
  return {
    homeport_workflow_runs_started_total: workflow.started,
    homeport_workflow_runs_ended_total: byLabel('state', workflow.ended),
    homeport_workflow_steps_total: workflow.steps,
    homeport_workflow_step_duration_seconds: workflow.stepDuration,
    homeport_workflow_call_duration_seconds: workflow.callDuration,
    homeport_workflow_retries_total: workflow.retries,
    homeport_bulk_actions_active: bulk.active,
    homeport_bulk_items_total: byLabel('outcome', bulk.items),
  }
}

/** Figures of a node of a cluster; a server that is alone has none. */
function clusterFigures({ cluster: meter }: ServerMeters, cluster: MetricsDeps['cluster']): Figures {
  if (cluster.isSingleNode) return {}
  return {
    homeport_cluster_nodes: cluster.peers.length + 1,
    homeport_cluster_partitions: cluster.owned?.length ?? 0,
    homeport_cluster_leader: cluster.isLeader ? 1 : 0,
    homeport_cluster_beats_missed_total: meter.beatsMissed,
    homeport_cluster_declared_dead_total: meter.declaredDead,
    homeport_cluster_announcements_total: meter.announcements,
    homeport_cluster_handover_seconds: meter.handOver,
  }
}

function databasesFigures({ databases }: ServerMeters): Figures {
  return {
    homeport_database_wake_ups_total: databases.wakeUps,
    homeport_database_promotions_total: databases.promotions,
    homeport_engine_failures_total: databases.engineFailures,
    homeport_backups_total: byLabel('outcome', databases.backups),
  }
}
