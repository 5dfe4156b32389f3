import type { Metric, MetricValue } from '../../telemetry/index.js'
import { planNameOf } from '../desired-engine.js'
import { NANO } from './cost.js'
import type { UsageLedger } from './ledger.js'

/** A database with what its metrics need. */
export interface MeteredDatabase {
  readonly ledger: UsageLedger
  readonly isAwake: boolean
}

type Read = (database: MeteredDatabase) => number

/** Prometheus metrics of these databases. Counters start at 0 with each start of the server. */
export function databaseMetrics(databases: readonly MeteredDatabase[], nowMs: number): readonly Metric[] {
  return [...commandMetrics(databases), ...trafficMetrics(databases), ...standingMetrics(databases, nowMs)]
}

function metric(
  kind: Metric['kind'],
  name: string,
  help: string,
  databases: readonly MeteredDatabase[],
  read: Read,
): Metric {
  const values = databases.map((one) => ({ labels: labelsOf(one), value: read(one) }))
  return { kind, name: `homeport_database_${name}`, help, values }
}

function split<Kind extends string>(
  name: string,
  help: string,
  databases: readonly MeteredDatabase[],
  read: (database: MeteredDatabase) => Readonly<Record<Kind, number>>,
): Metric {
  const values = databases.flatMap((one) =>
    Object.entries<number>(read(one)).map(
      ([kind, value]): MetricValue => ({ labels: { ...labelsOf(one), kind }, value }),
    ),
  )
  return { kind: 'counter', name: `homeport_database_${name}`, help, values }
}

function labelsOf({ ledger: { row } }: MeteredDatabase): MetricValue['labels'] {
  return { database_id: row.database_id, database_name: row.name, plan: planNameOf(row) }
}

function commandMetrics(all: readonly MeteredDatabase[]): readonly Metric[] {
  return [
    split('commands_total', 'Commands sent to the engine, by kind.', all, ({ ledger }) => ({
      ...ledger.meter.totals(),
    })),
    split('latency_seconds_total', 'Sum of the latencies of the measured commands, seconds.', all, ({ ledger }) => ({
      reads: ledger.meter.readLatency.sumUs / 1e6,
      writes: ledger.meter.writeLatency.sumUs / 1e6,
    })),
    split('latency_samples_total', 'Commands whose latency was measured.', all, ({ ledger }) => ({
      reads: ledger.meter.readLatency.count,
      writes: ledger.meter.writeLatency.count,
    })),
  ]
}

function trafficMetrics(all: readonly MeteredDatabase[]): readonly Metric[] {
  return [
    split('bytes_total', 'Bytes received from clients (in) and sent to them (out).', all, ({ ledger: { meter } }) => ({
      in: meter.bytesIn,
      out: meter.bytesOut,
    })),
    metric(
      'counter',
      'connections_accepted_total',
      'Client connections accepted.',
      all,
      ({ ledger }) => ledger.meter.connectionsTotal,
    ),
    metric('gauge', 'connections', 'Open client connections.', all, ({ ledger }) => ledger.meter.connections),
    metric(
      'counter',
      'refused_for_space_total',
      'Commands refused because the data set was full.',
      all,
      ({ ledger }) => ledger.meter.refusedForSpace,
    ),
  ]
}

function standingMetrics(all: readonly MeteredDatabase[], nowMs: number): readonly Metric[] {
  return [
    metric('gauge', 'awake', '1 while its engines run.', all, ({ isAwake }) => Number(isAwake)),
    metric('gauge', 'suspended', '1 while it is suspended because its budget is spent.', all, ({ ledger }) =>
      Number(ledger.row.state === 'suspended'),
    ),
    metric('gauge', 'keys', 'Keys at the last sample of its engine.', all, ({ ledger }) => ledger.gauges.keys),
    metric('gauge', 'used_bytes', 'Size of the data set at the last sample.', all, ({ ledger }) => ledger.usedBytes),
    metric(
      'gauge',
      'disk_bytes',
      'Size of its files at the last sample.',
      all,
      ({ ledger }) => ledger.gauges.diskBytes,
    ),
    metric(
      'gauge',
      'month_requests',
      'Requests of this month, as billed.',
      all,
      ({ ledger }) => ledger.meter.month.requests,
    ),
    metric(
      'gauge',
      'month_cost_dollars',
      'Cost of this month.',
      all,
      ({ ledger }) => ledger.monthCostNano(nowMs) / NANO,
    ),
    metric('gauge', 'budget_dollars', 'Budget of a month; 0 means none.', all, ({ ledger }) => ledger.row.budget),
  ]
}
