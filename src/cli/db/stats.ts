import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { NO_LIMIT } from '../../contract/databases/plans.js'
import {
  type DatabaseStats,
  DEFAULT_STATS_PERIOD,
  getDatabaseStats,
  STATS_PERIODS,
  type StatsPeriod,
  type StatsPoint,
} from '../../contract/databases/stats.js'
import type { Io } from '../io.js'
import { remote } from '../remote/remote.js'
import { oneOf } from '../remote/values.js'
import { bytes, dollars, figure, sparkline, trimmed } from '../terminal/figures.js'
import { type Column, type Fact, renderFacts, renderTable } from '../terminal/table.js'
import { DATABASE, databaseNamed } from './find.js'

/** `homeport db stats`. */
export const statsCommand = remote<{ period: StatsPeriod }>({
  name: 'stats',
  summary: 'show the statistics of a database: totals of the month and a chart of each series',
  args: [DATABASE],
  flags: (command) =>
    command.option('--period <period>', STATS_PERIODS.join(', '), oneOf(STATS_PERIODS), DEFAULT_STATS_PERIOD),
  examples: ['homeport db stats shop --period 1d', 'homeport db stats shop --json | jq .total_monthly_billing'],
  run: async ({ api, io, show }, { period }, wanted) => {
    const database = await databaseNamed(api, wanted)
    const params = { id: database.database_id }
    const stats = await api.call(getDatabaseStats, { params, query: { period } })
    show(stats, () => `${renderFacts(io, monthOf(stats, database))}\n${seriesTable(io, stats, period)}`)
  },
})

const ofLimit = (count: number, limit: number): string =>
  limit >= NO_LIMIT ? `${figure(count)}, no limit` : `${figure(count)} of ${figure(limit)}`

const monthOf = (stats: DatabaseStats, limits: DatabaseRecord): Fact[] => [
  ['requests this month', ofLimit(stats.total_monthly_requests, limits.db_request_limit)],
  ['requests today', figure(stats.daily_net_commands)],
  ['size', `${bytes(stats.current_storage)} of ${bytes(largestSize(limits))}`],
  ['traffic this month', bytes(stats.total_monthly_bandwidth)],
  [
    'cost this month',
    dollars(stats.total_monthly_billing) + (limits.budget === 0 ? '' : ` of ${dollars(limits.budget)}`),
  ],
]

/** The largest size of the data set: the smaller of two limits. */
const largestSize = ({ db_disk_threshold, db_memory_threshold }: DatabaseRecord): number =>
  Math.min(db_disk_threshold, db_memory_threshold)

/** A series with the unit of its values. */
interface Series {
  readonly name: string
  readonly points: readonly StatsPoint[]
  readonly text: (value: number) => string
}

/** Formats a rate or latency: those of small databases are below 1 and need decimals. */
const plain = (value: number): string => (value < 100 ? trimmed(value) : figure(value))
const milliseconds = (value: number): string => `${plain(value)} ms`

const seriesOf = (stats: DatabaseStats): Series[] => [
  { name: 'commands per second', points: stats.throughput, text: plain },
  { name: 'reads per second', points: stats.read, text: plain },
  { name: 'writes per second', points: stats.write, text: plain },
  { name: 'latency, mean', points: stats.latencymean, text: milliseconds },
  { name: 'latency, 99 %', points: stats.latency_99, text: milliseconds },
  { name: 'connections', points: stats.connection_count, text: plain },
  { name: 'keys', points: stats.keyspace, text: plain },
  { name: 'hits per second', points: stats.hits, text: plain },
  { name: 'misses per second', points: stats.misses, text: plain },
  { name: 'disk', points: stats.diskusage, text: bytes },
]

const valuesOf = ({ points }: Series): number[] => points.map(({ y }) => y)

/** Width of the columns other than the chart. */
const OTHER_COLUMNS = 48
const MIN_BARS = 8

function seriesTable(io: Io, stats: DatabaseStats, period: StatsPeriod): string {
  // The chart must fit: if the table cut it, the newest values would be missing.
  const most = io.terminal?.out === true ? Math.max(MIN_BARS, io.terminal.columns() - OTHER_COLUMNS) : undefined
  const columns: Column<Series>[] = [
    { title: 'SERIES', value: ({ name }) => name },
    { title: `LAST ${period}`, value: (one) => sparkline(valuesOf(one), most) },
    { title: 'NOW', value: (one) => one.text(valuesOf(one).at(-1) ?? 0), align: 'right' },
    { title: 'MAXIMUM', value: (one) => one.text(Math.max(0, ...valuesOf(one))), align: 'right' },
  ]
  return renderTable(io, columns, seriesOf(stats))
}
