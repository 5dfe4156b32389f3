/** The usage statistics of a database in the management API (reference redis 1.8). */

import { goTime } from '../../base/index.js'
import {
  type DatabaseStats,
  STATS_DAYS,
  STATS_POINTS,
  type StatsPeriod,
  type StatsPoint,
} from '../../contract/databases/stats.js'
import { nextMonthMs, percentileOfSteps } from '../../telemetry/index.js'
import * as usageTransactions from '../transactions/usage.js'
import * as usageSample from '../transactions/usage-sample.js'
import * as usageStats from '../transactions/usage-stats.js'
import { DAY_MS, dayOf, monthStartOf, NANO } from './cost.js'
import type { UsageLedger } from './ledger.js'
import { emptyDay } from './pending.js'
import { found, type Usage } from './usage.js'

type DayTotals = usageTransactions.DayTotals
type UsageSample = usageSample.UsageSample
type UsageGauges = usageSample.UsageGauges
type LatencyCounts = usageSample.LatencyCounts
type SeriesWindow = usageStats.SeriesWindow
type UsageReport = usageStats.UsageReport

const { TIERS_MS, FIRST_TIER_MS } = usageTransactions
const { NO_LATENCY, mergeLatency, mergeSamples } = usageSample

const MINUTE_MS = 60_000

/** Lengths of the intervals of each period, milliseconds. */
const STEPS_MS: Readonly<Record<StatsPeriod, number>> = {
  '1h': MINUTE_MS,
  '3h': 3 * MINUTE_MS,
  '12h': 12 * MINUTE_MS,
  '1d': 24 * MINUTE_MS,
  '3d': 72 * MINUTE_MS,
  '7d': 168 * MINUTE_MS,
  '30d': 180 * MINUTE_MS,
}

const NO_GAUGES: UsageGauges = { open: 0, monitors: 0, keys: 0, usedBytes: 0, diskBytes: 0 }

/** One interval of a period. */
interface Interval {
  readonly start: number
  /** Seconds of it that have passed; at least 1. */
  readonly seconds: number
  readonly sample: UsageSample | undefined
  /** The gauges at its end, as far as they are known. */
  readonly gauges: UsageGauges
}

/** Reads the statistics of a database of an account; rejects with `database_not_found`. */
export async function readStats(
  usage: Usage,
  of: { readonly accountId: string; readonly databaseId: string },
  period: StatsPeriod,
): Promise<DatabaseStats> {
  const { nowMs, store, startedAtMs } = usage
  const window = windowOf(period, nowMs)
  const sinceDay = Math.min(monthStartOf(nowMs), dayOf(nowMs) - (STATS_DAYS - 1) * DAY_MS)
  const read = (): Promise<UsageReport | undefined> => store.run(usageStats.report, { ...of, window, sinceDay })
  return usage.report(of.databaseId, read, (report, ledger) =>
    statsOf(found(report, of.databaseId), ledger, { nowMs, startedAtMs, window }),
  )
}

/** The intervals of a period; the last one contains the current time. */
function windowOf(period: StatsPeriod, nowMs: number): SeriesWindow {
  const stepMs = STEPS_MS[period]
  const count = period === '30d' ? 4 * STATS_POINTS : STATS_POINTS
  const tierMs = TIERS_MS.findLast((length) => stepMs % length === 0) ?? FIRST_TIER_MS
  return { from: nowMs - (nowMs % stepMs) - (count - 1) * stepMs, stepMs, count, tierMs }
}

interface Present {
  readonly nowMs: number
  readonly startedAtMs: number
  readonly window: SeriesWindow
}

function statsOf(report: UsageReport, ledger: UsageLedger | undefined, present: Present): DatabaseStats {
  const intervals = intervalsOf(report, ledger, present)
  const days = daysOf(report, ledger, present.nowMs)
  return {
    ...gaugeSeries(intervals),
    ...rateSeries(intervals),
    ...latencySeries(intervals),
    monitor_count: { x: goTime(present.nowMs), y: ledger?.gauges.monitors ?? 0 },
    command_counts: commandSeries(intervals),
    ...daySeries(days, present.nowMs),
    ...totals(report, ledger, days, present.nowMs),
    queue_optimized: false,
  }
}

function intervalsOf(report: UsageReport, ledger: UsageLedger | undefined, present: Present): readonly Interval[] {
  const { window, nowMs, startedAtMs } = present
  const last = window.count - 1
  let held = gaugesBefore(report, window.from)
  return report.steps.map((written, index) => {
    const start = window.from + index * window.stepMs
    const sample = index === last ? withPending(written, ledger) : written
    const gauges = index === last && ledger ? ledger.gauges : sample?.gauges
    if (gauges) held = { at: start, gauges }
    // Connections end with the process.
    else if (held.at < startedAtMs && start >= startedAtMs) held = { at: start, gauges: { ...held.gauges, open: 0 } }
    const passedMs = Math.min(window.stepMs, nowMs - start)
    return { start, seconds: Math.max(passedMs, 1000) / 1000, sample, gauges: held.gauges }
  })
}

function gaugesBefore({ before, standing }: UsageReport, from: number): { at: number; gauges: UsageGauges } {
  if (before) return before
  if (!standing || standing.looked_at === 0 || standing.looked_at >= from) return { at: 0, gauges: NO_GAUGES }
  const { keys, used_bytes: usedBytes, disk_bytes: diskBytes } = standing
  return { at: standing.looked_at, gauges: { ...NO_GAUGES, keys, usedBytes, diskBytes } }
}

function withPending(written: UsageSample | undefined, ledger: UsageLedger | undefined): UsageSample | undefined {
  const pending = ledger?.pending.sample
  return written && pending ? mergeSamples(written, pending) : (pending ?? written)
}

/**
 * Six significant digits. Never negative: the gateway takes back a command that it counted and then did not send, so an
 * interval may count fewer than zero.
 */
const rounded = (value: number): number => Number(Math.max(0, value).toPrecision(6))

function points(intervals: readonly Interval[], read: (interval: Interval) => number): StatsPoint[] {
  return intervals.map((interval) => ({ x: goTime(interval.start), y: rounded(read(interval)) }))
}

function gaugeSeries(intervals: readonly Interval[]) {
  return {
    connection_count: points(intervals, ({ sample, gauges }) => sample?.connections ?? gauges.open),
    keyspace: points(intervals, ({ gauges }) => gauges.keys),
    diskusage: points(intervals, ({ gauges }) => gauges.diskBytes),
  }
}

function rateSeries(intervals: readonly Interval[]) {
  type Counters = UsageSample['counters']
  const perSecond = (count: (counters: Counters) => number): StatsPoint[] =>
    points(intervals, ({ sample, seconds }) => (sample ? count(sample.counters) / seconds : 0))
  return {
    throughput: perSecond(({ reads, writes, scripts, others }) => reads + writes + scripts + others),
    read: perSecond(({ reads }) => reads),
    write: perSecond(({ writes }) => writes),
    hits: perSecond(({ hits }) => hits),
    misses: perSecond(({ misses }) => misses),
  }
}

function latencySeries(intervals: readonly Interval[]) {
  const both = ({ readLatency, writeLatency }: UsageSample): LatencyCounts => mergeLatency(readLatency, writeLatency)
  const pair = (latencyOf: (sample: UsageSample) => LatencyCounts): [mean: StatsPoint[], share99: StatsPoint[]] => {
    const counts = ({ sample }: Interval): LatencyCounts => (sample ? latencyOf(sample) : NO_LATENCY)
    const mean = points(intervals, (interval) => meanMs(counts(interval)))
    return [mean, points(intervals, (interval) => percentileOfSteps(counts(interval).steps, 0.99) / 1000)]
  }
  const [latencymean, latency_99] = pair(both)
  const [read_latency_mean, read_latency_99] = pair(({ readLatency }) => readLatency)
  const [write_latency_mean, write_latency_99] = pair(({ writeLatency }) => writeLatency)
  return { latencymean, latency_99, read_latency_mean, read_latency_99, write_latency_mean, write_latency_99 }
}

function meanMs({ count, sumUs }: LatencyCounts): number {
  return count === 0 ? 0 : sumUs / count / 1000
}

function commandSeries(intervals: readonly Interval[]): DatabaseStats['command_counts'] {
  const names = new Set(intervals.flatMap(({ sample }) => Object.keys(sample?.commands ?? {})))
  return [...names].sort().map((name) => ({
    metric_identifier: name,
    data_points: points(intervals, ({ sample }) => sample?.commands[name] ?? 0),
  }))
}

/** Totals by start of day, including usage that is not stored yet. */
function daysOf({ days }: UsageReport, ledger: UsageLedger | undefined, nowMs: number): ReadonlyMap<number, DayTotals> {
  const byDay = new Map<number, DayTotals>(days.map((row) => [row.day, row]))
  for (const more of ledger?.pendingDays(nowMs) ?? []) {
    const known = byDay.get(more.day)
    byDay.set(more.day, known ? usageTransactions.addDays(known, more) : more)
  }
  return byDay
}

function daySeries(days: ReadonlyMap<number, DayTotals>, nowMs: number) {
  const first = dayOf(nowMs) - (STATS_DAYS - 1) * DAY_MS
  const shown = Array.from({ length: STATS_DAYS }, (_, index) => first + index * DAY_MS)
  const byDay = (read: (day: DayTotals) => number): StatsPoint[] =>
    shown.map((day) => ({ x: goTime(day), y: read(days.get(day) ?? emptyDay(day)) }))
  return {
    dailyrequests: byDay(({ requests }) => requests),
    bandwidths: byDay(bandwidthOf),
    dailybilling: byDay(({ cost_nano }) => dollars(cost_nano)),
    days: shown.map((day) => WEEKDAYS[new Date(day).getUTCDay()] ?? ''),
  }
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

const bandwidthOf = ({ bytes_in, bytes_out }: DayTotals): number => bytes_in + bytes_out

/** US dollars to the millionth. */
const dollars = (nano: number): number => Math.round(nano / (NANO / 1_000_000)) / 1_000_000

function totals(
  { database, standing }: UsageReport,
  ledger: UsageLedger | undefined,
  days: ReadonlyMap<number, DayTotals>,
  nowMs: number,
) {
  const monthStart = monthStartOf(nowMs)
  const today = days.get(dayOf(nowMs)) ?? emptyDay(dayOf(nowMs))
  const ofMonth = [...days.values()].filter(({ day }) => day >= monthStart && day < nextMonthMs(nowMs))
  const month = ofMonth.reduce(usageTransactions.addDays, emptyDay(monthStart))
  const heldSeconds = Math.max(1, (nowMs - Math.max(monthStart, database.created_at)) / 1000)
  return {
    daily_net_commands: today.reads + today.writes + today.scripts + today.others,
    daily_read_requests: today.reads,
    daily_write_requests: today.writes,
    dailybandwidth: bandwidthOf(today),
    total_monthly_bandwidth: bandwidthOf(month),
    total_monthly_requests: month.requests,
    total_monthly_read_requests: month.reads,
    total_monthly_write_requests: month.writes,
    total_monthly_script_requests: month.scripts,
    total_monthly_storage: Math.round((month.held_kib_s * 1024) / heldSeconds),
    current_storage: ledger?.usedBytes ?? standing?.used_bytes ?? 0,
    total_monthly_billing: dollars(month.cost_nano),
  }
}
