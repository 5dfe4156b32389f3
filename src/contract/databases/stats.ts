import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'

/** Periods of statistics; each ends now. */
export const STATS_PERIODS = ['1h', '3h', '12h', '1d', '3d', '7d', '30d'] as const

/** A period of statistics. */
export type StatsPeriod = (typeof STATS_PERIODS)[number]

/** The period of a request without one. */
export const DEFAULT_STATS_PERIOD: StatsPeriod = '1h'

/** Number of points of a series; a series of 30 days has four times as many. */
export const STATS_POINTS = 60

/** Days of the daily series, including today. */
export const STATS_DAYS = 7

const PointSchema = Type.Object({
  x: Type.String({ description: 'Time, such as `2025-08-31 15:12:00 +0000 UTC`.' }),
  y: Type.Number(),
})

/** A value at a time. */
export type StatsPoint = Static<typeof PointSchema>

const series = (description: string) => Type.Array(PointSchema, { description })
const integer = (description: string) => Type.Integer({ description })

const CommandSeriesSchema = Type.Object({
  metric_identifier: Type.String({ description: 'Name of the command in upper case.' }),
  data_points: series('Calls in each interval.'),
})

/** Statistics of a database (reference redis 1.8). */
export const DatabaseStatsSchema = Type.Object({
  monitor_count: PointSchema,
  connection_count: series('Client connections in each interval, including connections that ended in it.'),
  keyspace: series('Number of keys.'),
  throughput: series('Commands per second.'),
  read: series('Reads per second.'),
  write: series('Writes per second.'),
  diskusage: series('Bytes on disk.'),
  latencymean: series('Mean time from sending a command to its reply, milliseconds.'),
  latency_99: series('Time in which 99 of 100 commands are answered, milliseconds.'),
  read_latency_mean: series('`latencymean` of reads.'),
  read_latency_99: series('`latency_99` of reads.'),
  write_latency_mean: series('`latencymean` of writes.'),
  write_latency_99: series('`latency_99` of writes.'),
  hits: series('Keys looked up and found, per second.'),
  misses: series('Keys looked up and not found, per second.'),
  dailyrequests: series('Billed requests of each day: a write also counts once for each read region.'),
  bandwidths: series('Bytes in and out on each day.'),
  dailybilling: series('Cost of each day, US dollars.'),
  days: Type.Array(Type.String(), { description: 'Weekdays of the daily series.' }),
  command_counts: Type.Array(CommandSeriesSchema, { description: 'Commands of the period, by name.' }),
  daily_net_commands: integer('Commands sent today.'),
  daily_read_requests: integer('Reads of today.'),
  daily_write_requests: integer('Writes of today.'),
  dailybandwidth: integer('Bytes in and out today.'),
  total_monthly_bandwidth: integer('Bytes in and out this month.'),
  total_monthly_requests: integer('Billed requests this month, compared with `db_request_limit`.'),
  total_monthly_read_requests: integer('Reads this month.'),
  total_monthly_write_requests: integer('Writes this month.'),
  total_monthly_script_requests: integer('Scripts and functions run this month.'),
  total_monthly_storage: integer('Mean size of the data this month so far, bytes.'),
  current_storage: integer('Size of the data, bytes: the size that is compared with the limit.'),
  total_monthly_billing: Type.Number({ description: 'Cost this month so far, US dollars, compared with `budget`.' }),
  queue_optimized: Type.Boolean({ description: 'Always false.' }),
})

/** Statistics of a database. */
export type DatabaseStats = Static<typeof DatabaseStatsSchema>

/** Reads metrics in the text format of Prometheus. */
export const getMetrics = endpoint({
  id: 'getMetrics',
  service: 'management',
  topic: 'Server',
  method: 'GET',
  path: '/metrics',
  auth: 'basic',
  access: 'read',
  summary: 'Scrape metrics',
  description:
    'Metrics in the text format of Prometheus: of the databases of the account and, for the first account, of the whole server. Use a read-only API key, or the value of the option metricsToken as a bearer token, which shows the databases of all accounts. Counters start at zero when the server starts. Does not wake a database that is asleep.',
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The metrics.',
    body: Type.String(),
    contentType: 'text/plain',
  },
  errors: [],
})

/** Reads the metrics of one database in the text format of Prometheus. */
export const getDatabaseMetrics = endpoint({
  id: 'getDatabaseMetrics',
  service: 'management',
  topic: 'Databases',
  method: 'GET',
  path: '/metrics/databases/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Scrape the metrics of one database',
  description:
    'The metrics of one database, in the text format of Prometheus. Send its `read_only_rest_token` or `rest_token` as a bearer token, from an address of its allow list; an API key of its account works as well. Only for databases with the production pack; their record has `prometheus_enabled: "true"`. Does not wake a database that is asleep.',
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) }),
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The metrics.',
    body: Type.String(),
    contentType: 'text/plain',
  },
  errors: ['database_not_found', 'metrics_not_enabled', 'address_not_allowed'],
})

/** Reads the statistics of a database. */
export const getDatabaseStats = endpoint({
  id: 'getDatabaseStats',
  service: 'management',
  topic: 'Databases',
  method: 'GET',
  path: '/v2/redis/stats/{id}',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'Get the statistics of a database',
  description: `Series of ${STATS_POINTS} points over the period (240 for 30d), daily series and totals of this month, up to now. Unknown values are 0. Does not wake a database that is asleep.`,
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) }),
  query: Type.Object({
    period: Type.Optional(Type.Enum([...STATS_PERIODS], { description: `Period. Default: ${DEFAULT_STATS_PERIOD}.` })),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The statistics.', body: DatabaseStatsSchema },
  errors: ['database_not_found', 'store_unavailable'],
})
