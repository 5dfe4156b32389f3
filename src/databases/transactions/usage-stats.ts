/** Reads the usage of one database for statistics: its series in equal steps, its days, and its current standing. */
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, first, type Transaction } from '../../store/statement.js'
import type { DatabaseRow } from './database-row.js'
import { type StandingRow, TIERS_MS, type TierMs, type UsageDayRow } from './usage.js'
import { rolledToOf } from './usage-rollups.js'
import { mergeSamples, type UsageGauges, type UsageSample, unpackSample } from './usage-sample.js'

/** A time range in steps. `from` is a multiple of `stepMs`, which is a multiple of the tier. */
export interface SeriesWindow {
  readonly from: number
  readonly stepMs: number
  readonly count: number
  /** The tier to read; where it is not merged yet, shorter tiers are read. */
  readonly tierMs: TierMs
}

/** See the top of this file. */
export interface UsageReport {
  readonly database: DatabaseRow
  readonly standing: StandingRow | undefined
  /** One for each step; undefined where nothing was stored. */
  readonly steps: readonly (UsageSample | undefined)[]
  /** The last known gauges before the first step. */
  readonly before: { readonly at: number; readonly gauges: UsageGauges } | undefined
  readonly days: readonly UsageDayRow[]
}

interface Range {
  readonly databaseId: string
  readonly tierMs: number
  readonly from: number
  readonly to: number
}

const samplesIn = query<Range, { start: number; sample: string }>(({ db, p }) =>
  db
    .selectFrom('usage_buckets')
    .select(['start', 'sample'])
    .where('database_id', '=', p.databaseId)
    .where('tier_ms', '=', p.tierMs)
    .where('start', '>=', p.from)
    .where('start', '<', p.to)
    .orderBy('start'),
)
/** The newest bucket of a tier that ends before a time: its gauges are those at its end. */
const lastBefore = query<Omit<Range, 'from'>, { start: number; sample: string }>(({ db, p }) =>
  db
    .selectFrom('usage_buckets')
    .select(['start', 'sample'])
    .where('database_id', '=', p.databaseId)
    .where('tier_ms', '=', p.tierMs)
    .where('start', '<', p.to)
    .orderBy('start', 'desc')
    .limit(1),
)
const standingOf = query<{ databaseId: string }, StandingRow>(({ db, p }) =>
  db.selectFrom('usage_standings').selectAll().where('database_id', '=', p.databaseId),
)
const daysSince = query<{ databaseId: string; day: number }, UsageDayRow>(({ db, p }) =>
  db
    .selectFrom('usage_days')
    .selectAll()
    .where('database_id', '=', p.databaseId)
    .where('day', '>=', p.day)
    .orderBy('day'),
)

/** The samples of a window: from its tier as far as that is merged, from shorter tiers after that. */
function* seriesOf(databaseId: string, window: SeriesWindow): Transaction<(UsageSample | undefined)[]> {
  const end = window.from + window.count * window.stepMs
  const steps: (UsageSample | undefined)[] = Array.from({ length: window.count })
  let from = window.from
  for (const tierMs of TIERS_MS.filter((length) => length <= window.tierMs).reverse()) {
    const to = tierMs === TIERS_MS[0] ? end : Math.min(end, yield* rolledToOf(tierMs))
    for (const { start, sample } of yield* all(samplesIn, { databaseId, tierMs, from, to })) {
      const step = Math.floor((start - window.from) / window.stepMs)
      const present = steps[step]
      steps[step] = present ? mergeSamples(present, unpackSample(sample)) : unpackSample(sample)
    }
    from = Math.max(from, to)
  }
  return steps
}

function* gaugesBefore(databaseId: string, to: number): Transaction<UsageReport['before']> {
  let latest: { start: number; sample: string } | undefined
  for (const tierMs of TIERS_MS) {
    const row = yield* first(lastBefore, { databaseId, tierMs, to: to - tierMs + 1 })
    if (row && row.start > (latest?.start ?? 0)) latest = row
  }
  return latest && { at: latest.start, gauges: unpackSample(latest.sample).gauges }
}

const rowOf = query<{ databaseId: string }, DatabaseRow>(({ db, p }) =>
  db.selectFrom('databases').selectAll().where('database_id', '=', p.databaseId),
)

/** The database with this id, if the account has it. */
function* ownedRow(accountId: string, databaseId: string): Transaction<DatabaseRow | undefined> {
  const row = yield* first(rowOf, { databaseId })
  return row?.account_id === accountId ? row : undefined
}

/** The usage of a database; `undefined` when the account has no such database. */
export const report = read(
  'usage.report',
  function* (args: {
    accountId: string
    databaseId: string
    window: SeriesWindow
    sinceDay: number
  }): Transaction<UsageReport | undefined> {
    const { accountId, databaseId, window, sinceDay } = args
    const database = yield* ownedRow(accountId, databaseId)
    if (!database) return undefined
    return {
      database,
      standing: yield* first(standingOf, { databaseId }),
      steps: yield* seriesOf(databaseId, window),
      before: yield* gaugesBefore(databaseId, window.from),
      days: yield* all(daysSince, { databaseId, day: sinceDay }),
    }
  },
)
