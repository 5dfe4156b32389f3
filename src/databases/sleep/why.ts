import type { AwakeRecord } from '../../contract/databases/awake.js'
import type { EngineOccupancy } from '../../fleet/index.js'
import type { Traffic } from '../deps.js'
import { isUp, isWorkedOn, type Sleeper, type Task } from './sleeper.js'

/** What can keep a database awake: work of ours, clients that wait for its engine, or a request not long ago. */
export type ReasonKind = Task | 'blocking' | 'subscription' | 'monitor' | 'tracking' | 'transaction' | 'request'

/** One thing that keeps a database awake, and how many there are of it. */
export interface Reason {
  readonly kind: ReasonKind
  readonly count: number
}

/** What keeps a database awake, or since when it sleeps. Times are Unix milliseconds. */
export interface WhyAwake {
  readonly state: 'awake' | 'asleep'
  readonly sinceMs: number
  /** Undefined when no request has come since the server was started. */
  readonly lastRequestAtMs: number | undefined
  /** Undefined while it sleeps, and while something else than a request keeps it awake. */
  readonly sleepsAtMs: number | undefined
  /** Open client connections; by themselves they keep nothing awake. */
  readonly connections: number
  readonly reasons: readonly Reason[]
}

/** What an explanation is made from besides the sleeper itself. */
export interface ExplainDeps {
  readonly meter: ReturnType<Traffic['meterOf']>
  readonly idleMs: number
  /** Asks the engines; only while they run. */
  readonly occupancy: () => Promise<EngineOccupancy>
}

const NOBODY: EngineOccupancy = { blocked: 0, subscribed: 0, monitoring: 0, tracking: 0, inTransaction: 0 }

/** Explains why a database is awake. The engines are only asked when clients are there. */
export async function explain(sleeper: Sleeper, { meter, idleMs, occupancy }: ExplainDeps): Promise<WhyAwake> {
  const lastRequestAtMs = meter && meter.lastActivityAtMs > 0 ? meter.lastActivityAtMs : undefined
  const { sinceMs, usedAtMs } = sleeper
  const shared = { sinceMs, lastRequestAtMs, connections: meter?.connections ?? 0 }
  if (!isUp(sleeper)) return { ...shared, state: 'asleep', sleepsAtMs: undefined, reasons: [] }
  const hasClients = meter !== undefined && (meter.connections > 0 || meter.holds > 0)
  const clients = hasClients ? await occupancy().catch(() => NOBODY) : NOBODY
  const reasons = [...tasksOf(sleeper), ...clientsOf(clients)]
  if (isWorkedOn(sleeper) || reasons.length > 0) return { ...shared, state: 'awake', sleepsAtMs: undefined, reasons }
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

/** What the management API answers to the question why a database is awake. */
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
