import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'

/** Stretches of time that statistics cover; each ends at the present. */
export const STATS_PERIODS = ['1h', '3h', '12h', '1d', '3d', '7d', '30d'] as const

/** One of the stretches. */
export type StatsPeriod = (typeof STATS_PERIODS)[number]

/** The period that is meant when none is named. */
export const DEFAULT_STATS_PERIOD: StatsPeriod = '1h'

/** Points of a series; for 30 days there are four times as many. */
export const STATS_POINTS = 60

/** How many days the series by day cover, today included. */
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
  data_points: series('How often it was sent in each interval.'),
})

/** What a database did and used (reference redis 1.8). */
export const DatabaseStatsSchema = Type.Object({
  monitor_count: PointSchema,
  connection_count: series('Client connections that each interval saw, those included that have ended in it.'),
  keyspace: series('Number of keys.'),
  throughput: series('Commands in a second.'),
  read: series('Reads in a second.'),
  write: series('Writes in a second.'),
  diskusage: series('Bytes on disk.'),
  latencymean: series('Mean time from sending a command to its reply, milliseconds.'),
  latency_99: series('Time in which 99 of 100 commands are answered, milliseconds.'),
  read_latency_mean: series('The same for reads.'),
  read_latency_99: series('The same for reads.'),
  write_latency_mean: series('The same for writes.'),
  write_latency_99: series('The same for writes.'),
  hits: series('Keys in a second that were looked up and found.'),
  misses: series('Keys in a second that were looked up and not found.'),
  dailyrequests: series('Requests of each day, as they are billed: a write also counts once for each read region.'),
  bandwidths: series('Bytes in and out on each day.'),
  dailybilling: series('Cost of each day, US dollars.'),
  days: Type.Array(Type.String(), { description: 'Weekdays of the series by day.' }),
  command_counts: Type.Array(CommandSeriesSchema, { description: 'Commands that were sent in the period, by name.' }),
  daily_net_commands: integer('Commands sent today.'),
  daily_read_requests: integer('Reads of today.'),
  daily_write_requests: integer('Writes of today.'),
  dailybandwidth: integer('Bytes in and out today.'),
  total_monthly_bandwidth: integer('Bytes in and out this month.'),
  total_monthly_requests: integer('Requests this month as they are billed; held against `db_request_limit`.'),
  total_monthly_read_requests: integer('Reads this month.'),
  total_monthly_write_requests: integer('Writes this month.'),
  total_monthly_script_requests: integer('Scripts and functions run this month.'),
  total_monthly_storage: integer('Mean size of the data set this month so far, bytes.'),
  current_storage: integer('Size of the data set, bytes, as it is held against the limit.'),
  total_monthly_billing: Type.Number({ description: 'Cost of this month so far, US dollars; held against `budget`.' }),
  queue_optimized: Type.Boolean({ description: 'Always false.' }),
})

/** What a database did and used. */
export type DatabaseStats = Static<typeof DatabaseStatsSchema>

/** Reads metrics in the form of Prometheus. */
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
    'Metrics of all databases of the account and of the server process, in the text form of Prometheus; use a read-only API key. Counters begin with the server process. Does not wake a database that sleeps.',
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The metrics.',
    body: Type.String(),
    contentType: 'text/plain',
  },
  errors: [],
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
  summary: 'Get the statistics of a database',
  description: `Series of ${STATS_POINTS} points over the period (240 for 30d), of days and of this month, up to the present moment. What is not known is 0. Does not wake a database that sleeps.`,
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) }),
  query: Type.Object({
    period: Type.Optional(
      Type.Enum([...STATS_PERIODS], { description: `Stretch of time. Default: ${DEFAULT_STATS_PERIOD}.` }),
    ),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The statistics.', body: DatabaseStatsSchema },
  errors: ['database_not_found', 'store_unavailable'],
})
