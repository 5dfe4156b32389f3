/**
 * The operations behind the console that need several modules at once: the server's settings, the overview of Home, usage
 * and regions. They are in `server/`, because no module sees all the others. `consoleSite` finds the built pages.
 */

import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import * as consoleCounts from '../bulk/transactions/console-counts.js'
import type { Config } from '../config/index.js'
import {
  type ConsoleSettings,
  getConsoleSettings,
  getOverview,
  getRegionStatus,
  getUsage,
  listDatabaseSummaries,
  MAX_COUNTED,
  type Overview,
  type RegionStatus,
} from '../contract/console/console.js'
import { PLAN_NAMES, type PlanTable } from '../contract/databases/plans.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Databases, summariesOf, tallyOf, usageOf, withHomes } from '../databases/index.js'
import type { EngineInfo, Fleet, MemberStatus } from '../fleet/index.js'
import { type Route, route, Site } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { ProblemsOfNodes } from './problems-of-nodes.js'

/** Collaborators of the console's operations. */
export interface ConsoleDeps {
  readonly config: Config
  readonly engine: EngineInfo
  readonly plans: PlanTable
  readonly store: Store
  /** Certificate of the Redis ports, PEM; undefined while there is no usable one. */
  readonly certificate: string | undefined
  readonly databases: Pick<Databases, 'directory' | 'homes' | 'known' | 'others' | 'placement'>
  readonly fleet: Pick<Fleet, 'observe' | 'replication'>
  readonly problemsOfNodes: Pick<ProblemsOfNodes, 'visibleTo'>
  readonly version: string
  /** Unix milliseconds. */
  readonly startedAt: number
}

/** The operations that only the console uses. */
export function consoleRoutes(deps: ConsoleDeps): Route[] {
  const settings = settingsOf(deps)
  return [
    route(getConsoleSettings, async () => {
      const regions = await deps.databases.placement.regions()
      return regions ? { ...settings, regions: [...regions] } : settings
    }),
    route(listDatabaseSummaries, async ({ caller, query }) => {
      const { known, settings } = await deps.databases.known(caller.accountId)
      return summariesOf(known, query, settings)
    }),
    route(getUsage, async ({ caller }) => usageOf(await deps.databases.known(caller.accountId))),
    ...withHomes(deps.databases.homes, [
      route(getRegionStatus, ({ caller, params }) => regions(deps, caller.accountId, params.id)),
    ]),
    route(getOverview, ({ caller }) => overview(deps, caller.accountId)),
  ]
}

/** A folder of the build: beside this program, or in `dist/` for one that runs from sources. */
function builtFolder(name: string): string | undefined {
  return [`./${name}/`, `../../dist/${name}/`]
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find((place) => existsSync(place))
}

/** The files of the page `/docs`; `undefined` if they have not been built. */
export const docsFolder = (): string | undefined => builtFolder('docs')

/** The pages of the console; `undefined` if they have not been built. */
export function consoleSite({ publicRestUrl }: Config): Site | undefined {
  const folder = builtFolder('console')
  return folder === undefined ? undefined : Site.read({ folder, connectTo: [new URL(publicRestUrl).origin] })
}

function settingsOf({ config, engine, plans, version }: ConsoleDeps): ConsoleSettings {
  return {
    version,
    api_url: config.publicApiUrl,
    rest_url: config.publicRestUrl,
    queue_url: config.publicQueueUrl,
    redis_host: config.redisDomain ?? config.publicRedisHost,
    tls_by_default: config.redisTlsByDefault,
    engine_capabilities: [...engine.capabilities],
    plans: PLAN_NAMES.map((plan) => ({ ...plans[plan], plan })),
  }
}

async function overview(deps: ConsoleDeps, accountId: string): Promise<Overview> {
  const { config, engine, store, version, startedAt } = deps
  const [problems, counts, disk, { known, settings }] = await Promise.all([
    deps.problemsOfNodes.visibleTo(accountId),
    store.run(consoleCounts.ofAccount, { accountId, most: MAX_COUNTED }),
    statfs(config.dataDir),
    deps.databases.known(accountId),
  ])
  return {
    version,
    started_at: Math.floor(startedAt / 1000),
    engine: { kind: engine.kind, version: engine.version, problems: [...engine.problems] },
    store: store.describe(),
    tls: { by_default: config.redisTlsByDefault, ...expiryOf(deps.certificate) },
    disk: { free_bytes: disk.bavail * disk.bsize, total_bytes: disk.blocks * disk.bsize },
    memory: { resident_bytes: process.memoryUsage.rss() },
    problems,
    databases: tallyOf(known, settings),
    messages: {
      waiting: counts.pendingMessages,
      ...(counts.morePending && { waiting_at_least: true }),
      dead: counts.deadMessages,
    },
    runs: { unfinished: counts.activeRuns, dead: counts.deadRuns },
    bulk_actions: { unfinished: counts.activeActions },
  }
}

const expiryOf = (certificate: string | undefined): { certificate_expires_at?: number } =>
  certificate === undefined
    ? {}
    : { certificate_expires_at: Math.floor(Date.parse(new X509Certificate(certificate).validTo) / 1000) }

async function regions({ databases, fleet }: ConsoleDeps, accountId: string, id: string): Promise<RegionStatus[]> {
  if (databases.directory.rowOf(id)?.account_id !== accountId)
    throw new HomeportError('database_not_found', { databaseId: id })
  const replication = await fleet.replication(id)
  const members = fleet.observe(id).filter(({ state }) => state !== 'stopped')
  const elsewhere = (await databases.others.replicas?.statuses(id)) ?? []
  const atOtherNodes = elsewhere.map(({ region, isServing, lagBytes, heardSecondsAgo }) => ({
    region,
    role: 'replica' as const,
    state: isServing ? ('serving' as const) : ('starting' as const),
    ...(isServing && { lag_bytes: lagBytes, heard_seconds_ago: heardSecondsAgo }),
  }))
  const here = members.map(({ region, role, state }) => {
    const seen = replication.find((status) => status.region === region)
    const progress = seen && { lag_bytes: seen.lagBytes, heard_seconds_ago: seen.heardSecondsAgo }
    return { region, role, state: STATES[state], ...progress }
  })
  return [...here, ...atOtherNodes]
}

const STATES: Readonly<Record<MemberStatus['state'], RegionStatus['state']>> = {
  starting: 'starting',
  answering: 'starting',
  'backing-off': 'starting',
  running: 'serving',
  stopping: 'stopping',
  deleting: 'stopping',
  stopped: 'stopping',
}
