import type { Metric, MetricValue } from '../../telemetry/index.js'
import { planNameOf } from '../desired-engine.js'
import type { DatabaseBook } from './book.js'
import { NANO } from './cost.js'

/** What the metrics say of a database besides its book. */
export interface MeteredDatabase {
  readonly book: DatabaseBook
  readonly isAwake: boolean
}

type Read = (database: MeteredDatabase) => number

/** Metrics of these databases, for Prometheus. Counters are those of this life of the server. */
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

function labelsOf({ book: { row } }: MeteredDatabase): MetricValue['labels'] {
  return { database_id: row.database_id, database_name: row.name, plan: planNameOf(row) }
}

function commandMetrics(all: readonly MeteredDatabase[]): readonly Metric[] {
  return [
    split('commands_total', 'Commands sent to the engine, by what they do.', all, ({ book }) => ({
      ...book.meter.totals(),
    })),
    split(
      'latency_seconds_total',
      'Sum of the times to the reply, of the commands that were measured.',
      all,
      ({ book }) => ({
        reads: book.meter.readLatency.sumUs / 1e6,
        writes: book.meter.writeLatency.sumUs / 1e6,
      }),
    ),
    split('latency_samples_total', 'Commands whose time to the reply was measured.', all, ({ book }) => ({
      reads: book.meter.readLatency.count,
      writes: book.meter.writeLatency.count,
    })),
  ]
}

function trafficMetrics(all: readonly MeteredDatabase[]): readonly Metric[] {
  return [
    split('bytes_total', 'Bytes that clients sent and were sent.', all, ({ book: { meter } }) => ({
      in: meter.bytesIn,
      out: meter.bytesOut,
    })),
    metric(
      'counter',
      'connections_accepted_total',
      'Client connections.',
      all,
      ({ book }) => book.meter.connectionsTotal,
    ),
    metric('gauge', 'connections', 'Client connections now.', all, ({ book }) => book.meter.connections),
    metric(
      'counter',
      'refused_for_space_total',
      'Commands refused by a full engine.',
      all,
      ({ book }) => book.meter.refusedForSpace,
    ),
  ]
}

function standingMetrics(all: readonly MeteredDatabase[], nowMs: number): readonly Metric[] {
  return [
    metric('gauge', 'awake', '1 while its engines run.', all, ({ isAwake }) => Number(isAwake)),
    metric('gauge', 'suspended', '1 while its budget is spent.', all, ({ book }) =>
      Number(book.row.state === 'suspended'),
    ),
    metric('gauge', 'keys', 'Keys, when its engine was last looked at.', all, ({ book }) => book.gauges.keys),
    metric('gauge', 'used_bytes', 'Size of the data set, likewise.', all, ({ book }) => book.usedBytes),
    metric('gauge', 'disk_bytes', 'Size of its files, likewise.', all, ({ book }) => book.gauges.diskBytes),
    metric('gauge', 'month_requests', 'Requests this month as billed.', all, ({ book }) => book.meter.month.requests),
    metric('gauge', 'month_cost_dollars', 'Cost of this month.', all, ({ book }) => book.monthCostNano(nowMs) / NANO),
    metric('gauge', 'budget_dollars', 'Budget of a month; 0 means none.', all, ({ book }) => book.row.budget),
  ]
}
