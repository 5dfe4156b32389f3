import type { AwakeRecord } from '../../contract/databases/awake.js'
import type { EngineOccupancy } from '../../fleet/index.js'
import type { Traffic } from '../deps.js'
import { hasTasks, isDesiredUp, type Sleeper, type Task } from './sleeper.js'

/** What can keep a database awake: a task, clients with state on its engine, or a recent request. */
export type ReasonKind = Task | 'blocking' | 'subscription' | 'monitor' | 'tracking' | 'transaction' | 'request'

/** A reason that keeps a database awake, and how many tasks or clients it counts. */
export interface Reason {
  readonly kind: ReasonKind
  readonly count: number
}

/** What keeps a database awake, or since when it sleeps. Times are Unix milliseconds. */
export interface WhyAwake {
  readonly state: 'awake' | 'asleep'
  readonly sinceMs: number
  /** Undefined when there was no request since the server started. */
  readonly lastRequestAtMs: number | undefined
  /** Undefined while it sleeps, and while something other than a request keeps it awake. */
  readonly sleepsAtMs: number | undefined
  /** Open client connections; alone they do not keep it awake. */
  readonly connections: number
  readonly reasons: readonly Reason[]
}

/** What `explain` needs besides the sleeper. */
export interface ExplainDeps {
  readonly meter: ReturnType<Traffic['meterOf']>
  readonly idleMs: number
  /** Queries the engines, which must run. */
  readonly occupancy: () => Promise<EngineOccupancy>
}

const NOBODY: EngineOccupancy = { blocked: 0, subscribed: 0, monitoring: 0, tracking: 0, inTransaction: 0 }

/** Explains why a database is awake. Queries the engines only when clients are connected. */
export async function explain(sleeper: Sleeper, { meter, idleMs, occupancy }: ExplainDeps): Promise<WhyAwake> {
  const lastRequestAtMs = meter && meter.lastActivityAtMs > 0 ? meter.lastActivityAtMs : undefined
  const { sinceMs, usedAtMs } = sleeper
  const shared = { sinceMs, lastRequestAtMs, connections: meter?.connections ?? 0 }
  if (!isDesiredUp(sleeper)) return { ...shared, state: 'asleep', sleepsAtMs: undefined, reasons: [] }
  const hasClients = meter !== undefined && (meter.connections > 0 || meter.holds > 0)
  const clients = hasClients ? await occupancy().catch(() => NOBODY) : NOBODY
  const reasons = [...tasksOf(sleeper), ...clientsOf(clients)]
  if (hasTasks(sleeper) || reasons.length > 0) return { ...shared, state: 'awake', sleepsAtMs: undefined, reasons }
  const sleepsAtMs = Math.max(usedAtMs, lastRequestAtMs ?? 0) + idleMs
  return { ...shared, state: 'awake', sleepsAtMs, reasons: [{ kind: 'request', count: 1 }] }
}

function tasksOf({ tasks }: Sleeper): Reason[] {
  return (Object.entries(tasks) as [Task, number][]).map(([kind, count]) => ({ kind, count }))
}

function clientsOf({ blocked, subscribed, monitoring, tracking, inTransaction }: EngineOccupancy): Reason[] {
  const counted: readonly (readonly [ReasonKind, number])[] = [
    ['blocking', blocked],
    ['subscription', subscribed],
    ['monitor', monitoring],
    ['tracking', tracking],
    ['transaction', inTransaction],
  ]
  return counted.filter(([, count]) => count > 0).map(([kind, count]) => ({ kind, count }))
}

const seconds = (atMs: number | undefined): number => (atMs === undefined ? 0 : Math.floor(atMs / 1000))

/** The explanation as the management API answers it. */
export function renderAwake(databaseId: string, state: AwakeRecord['state'], why: WhyAwake): AwakeRecord {
  return {
    database_id: databaseId,
    state,
    awake: why.state === 'awake',
    since: seconds(why.sinceMs),
    last_request: seconds(why.lastRequestAtMs),
    sleeps_at: seconds(why.sleepsAtMs),
    connections: why.connections,
    reasons: [...why.reasons],
  }
}
