import type { DATABASE_METRICS } from '../../contract/metrics/database-metrics.js'
import type { Figures, MetricValue } from '../../telemetry/index.js'
import { planNameOf } from '../desired-engine.js'
import { NANO } from './cost.js'
import type { UsageLedger } from './ledger.js'

/** A database with what its metrics need. */
export interface MeteredDatabase {
  readonly ledger: UsageLedger
  readonly isAwake: boolean
}

type Name = keyof typeof DATABASE_METRICS
/** The figure of a database, or its figures by the value of the label `kind`. */
type Read = (database: MeteredDatabase, nowMs: number) => number | Readonly<Record<string, number>>

const READS: Readonly<Record<Name, Read>> = {
  homeport_database_commands_total: ({ ledger }) => ({ ...ledger.meter.totals() }),
  homeport_database_latency_seconds_total: ({ ledger: { meter } }) => ({
    reads: meter.readLatency.sumUs / 1e6,
    writes: meter.writeLatency.sumUs / 1e6,
  }),
  homeport_database_latency_samples_total: ({ ledger: { meter } }) => ({
    reads: meter.readLatency.count,
    writes: meter.writeLatency.count,
  }),
  homeport_database_bytes_total: ({ ledger: { meter } }) => ({ in: meter.bytesIn, out: meter.bytesOut }),
  homeport_database_connections_accepted_total: ({ ledger }) => ledger.meter.connectionsTotal,
  homeport_database_connections: ({ ledger }) => ledger.meter.connections,
  homeport_database_refused_for_space_total: ({ ledger }) => ledger.meter.refusedForSpace,
  homeport_database_awake: ({ isAwake }) => Number(isAwake),
  homeport_database_suspended: ({ ledger }) => Number(ledger.isSuspended),
  homeport_database_keys: ({ ledger }) => ledger.gauges.keys,
  homeport_database_used_bytes: ({ ledger }) => ledger.usedBytes,
  homeport_database_disk_bytes: ({ ledger }) => ledger.gauges.diskBytes,
  homeport_database_month_requests: ({ ledger }, nowMs) => ledger.monthRequests(nowMs),
  homeport_database_month_cost_dollars: ({ ledger }, nowMs) => ledger.monthCostNano(nowMs) / NANO,
  homeport_database_budget_dollars: ({ ledger }) => ledger.row.budget,
}

/** Metrics of these databases, one series or more of each for every database. */
export function databaseFigures(databases: readonly MeteredDatabase[], nowMs: number): Figures {
  const figures = Object.entries(READS).map(([name, read]) => [
    name,
    databases.flatMap((database) => valuesOf(database, read(database, nowMs))),
  ])
  return Object.fromEntries(figures)
}

function valuesOf(database: MeteredDatabase, read: ReturnType<Read>): readonly MetricValue[] {
  const labels = labelsOf(database)
  if (typeof read === 'number') return [{ labels, value: read }]
  return Object.entries(read).map(([kind, value]) => ({ labels: { ...labels, kind }, value }))
}

function labelsOf({ ledger: { row } }: MeteredDatabase): MetricValue['labels'] {
  return { database_id: row.database_id, database_name: row.name, plan: planNameOf(row) }
}
