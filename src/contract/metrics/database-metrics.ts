import type { MetricDeclaration } from './declaration.js'

/** Labels of every metric of a single database. */
const LABELS = ['database_id', 'database_name', 'plan'] as const

const one = (kind: MetricDeclaration['kind'], help: string, ...more: readonly string[]): MetricDeclaration => ({
  area: 'Single databases',
  kind,
  help,
  labels: [...LABELS, ...more],
})

/** Metrics of single databases. The option `metricsDatabases` bounds how many have them. */
export const DATABASE_METRICS = {
  homeport_database_commands_total: one(
    'counter',
    'Commands sent to the engine. kind: reads, writes, scripts, others.',
    'kind',
  ),
  homeport_database_latency_seconds_total: one(
    'counter',
    'Sum of the latencies of the measured commands. kind: reads, writes.',
    'kind',
  ),
  homeport_database_latency_samples_total: one(
    'counter',
    'Commands whose latency was measured. kind: reads, writes.',
    'kind',
  ),
  homeport_database_bytes_total: one('counter', 'Bytes received from clients and sent to them. kind: in, out.', 'kind'),
  homeport_database_connections_accepted_total: one('counter', 'Client connections accepted.'),
  homeport_database_connections: one('gauge', 'Open client connections.'),
  homeport_database_refused_for_space_total: one('counter', 'Commands refused because the data set was full.'),
  homeport_database_awake: one('gauge', '1 while the engines of the database run.'),
  homeport_database_suspended: one(
    'gauge',
    '1 while the database is suspended by its owner, its account or its budget.',
  ),
  homeport_database_keys: one('gauge', 'Keys at the last sample of the engine.'),
  homeport_database_used_bytes: one('gauge', 'Size of the data set at the last sample.'),
  homeport_database_disk_bytes: one('gauge', 'Size of the files at the last sample.'),
  homeport_database_month_requests: one('gauge', 'Requests of this month, as billed.'),
  homeport_database_month_cost_dollars: one('gauge', 'Cost of this month, US dollars.'),
  homeport_database_budget_dollars: one('gauge', 'Monthly budget, US dollars; 0 means none.'),
} as const satisfies Readonly<Record<string, MetricDeclaration>>
