/**
 * The stored usage of databases. One writer adds to it once per flush interval, for many databases in one transaction.
 * Nothing is written for an idle database.
 *
 * - `usage_buckets`: time series, in tiers. New samples go to the shortest tier; `usage-rollups.ts` merges the others.
 * - `usage_days`: totals by day, for monthly limits and costs.
 * - `usage_standings`: the current state of each database.
 */
import type { Selectable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { UsageBucketsTable, UsageDaysTable, UsageStandingsTable } from '../../store/schema/usage.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { mergeSamples, packSample, type UsageSample, unpackSample } from './usage-sample.js'

/** Lengths of the tiers, milliseconds, shortest first. Each is a multiple of the one before. */
export const TIERS_MS = [60_000, 12 * 60_000, 60 * 60_000] as const

/** One of the lengths. */
export type TierMs = (typeof TIERS_MS)[number]

/** The tier that samples are written to. */
export const FIRST_TIER_MS: TierMs = TIERS_MS[0]

/** The usage of a database on one day. */
export type UsageDayRow = Selectable<UsageDaysTable>
/** Totals that are added to a day. */
export type DayTotals = Omit<UsageDayRow, 'database_id'>
/** The current state of a database's usage. */
export type StandingRow = Selectable<UsageStandingsTable>
type BucketRow = Selectable<UsageBucketsTable>

/** The new usage of one database. */
export interface UsageUpdate {
  readonly standing: StandingRow
  readonly days: readonly DayTotals[]
  /** Its new sample; absent when only storage has cost something. */
  readonly sample?: UsageSample | undefined
}

/**
 * The lock makes transactions that add to the usage of one database take turns: each reads what the others have added.
 */
const existing = query<{ ids: readonly string[] }, { database_id: string }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('databases')
      .select('database_id')
      .where(d.inTexts('database_id', p.ids))
      .where('modifying_state', '!=', 'deleting')
      .orderBy('database_id'),
  ),
)

interface BucketsAt {
  readonly ids: readonly string[]
  readonly tierMs: number
  readonly start: number
}

const bucketsAt = query<BucketsAt, BucketRow>(({ db, p, d }) =>
  db
    .selectFrom('usage_buckets')
    .selectAll()
    .where(d.inTexts('database_id', p.ids))
    .where('tier_ms', '=', p.tierMs)
    .where('start', '=', p.start),
)
const dropBucketsAt = query<BucketsAt>(({ db, p, d }) =>
  db
    .deleteFrom('usage_buckets')
    .where(d.inTexts('database_id', p.ids))
    .where('tier_ms', '=', p.tierMs)
    .where('start', '=', p.start),
)

/** Writes samples, merged with those that are stored for the same bucket. */
function* writeBuckets(tierMs: TierMs, start: number, samples: ReadonlyMap<string, UsageSample>): Transaction<void> {
  const at: BucketsAt = { ids: [...samples.keys()], tierMs, start }
  if (at.ids.length === 0) return
  const present = new Map((yield* all(bucketsAt, at)).map((row) => [row.database_id, unpackSample(row.sample)]))
  yield* change(dropBucketsAt, at)
  yield* insertAll(
    'usage_buckets',
    [...samples].map(([database_id, sample]) => {
      const before = present.get(database_id)
      return { database_id, tier_ms: tierMs, start, sample: packSample(before ? mergeSamples(before, sample) : sample) }
    }),
  )
}

interface DaysOf {
  readonly ids: readonly string[]
  readonly days: readonly number[]
}

const daysOf = query<DaysOf, UsageDayRow>(({ db, p, d }) =>
  db.selectFrom('usage_days').selectAll().where(d.inTexts('database_id', p.ids)).where(d.inNumbers('day', p.days)),
)
const dropDaysOf = query<DaysOf>(({ db, p, d }) =>
  db.deleteFrom('usage_days').where(d.inTexts('database_id', p.ids)).where(d.inNumbers('day', p.days)),
)

/** Adds two totals of the same day. */
export function addDays<Totals extends DayTotals>(one: Totals, other: DayTotals): Totals {
  return {
    ...one,
    requests: one.requests + other.requests,
    reads: one.reads + other.reads,
    writes: one.writes + other.writes,
    scripts: one.scripts + other.scripts,
    others: one.others + other.others,
    bytes_in: one.bytes_in + other.bytes_in,
    bytes_out: one.bytes_out + other.bytes_out,
    cost_nano: one.cost_nano + other.cost_nano,
    held_kib_s: one.held_kib_s + other.held_kib_s,
  }
}

function* writeDays(updates: readonly UsageUpdate[]): Transaction<void> {
  const added = updates.flatMap(({ standing, days }) =>
    days.map((day) => ({ ...day, database_id: standing.database_id })),
  )
  if (added.length === 0) return
  const where: DaysOf = {
    ids: [...new Set(added.map((row) => row.database_id))],
    days: [...new Set(added.map((row) => row.day))],
  }
  const rows = new Map<string, UsageDayRow>()
  for (const row of [...(yield* all(daysOf, where)), ...added]) {
    const key = `${row.database_id} ${row.day}`
    const before = rows.get(key)
    rows.set(key, before ? addDays(before, row) : row)
  }
  yield* change(dropDaysOf, where)
  yield* insertAll('usage_days', [...rows.values()])
}

const dropStandings = query<{ ids: readonly string[] }>(({ db, p, d }) =>
  db.deleteFrom('usage_standings').where(d.inTexts('database_id', p.ids)),
)

/**
 * Adds new usage. `start` is the start of the first-tier bucket that the samples belong to. Usage of databases that are
 * deleted or being deleted is skipped.
 */
export const add = write(
  'usage.add',
  function* (args: { start: number; updates: readonly UsageUpdate[] }): Transaction<void> {
    const known = yield* all(existing, { ids: args.updates.map(({ standing }) => standing.database_id) })
    const ids = new Set(known.map((row) => row.database_id))
    const updates = args.updates.filter(({ standing }) => ids.has(standing.database_id))
    const samples = new Map<string, UsageSample>()
    for (const { standing, sample } of updates) if (sample) samples.set(standing.database_id, sample)
    yield* writeBuckets(FIRST_TIER_MS, args.start, samples)
    yield* writeDays(updates)
    yield* change(dropStandings, { ids: known.map((row) => row.database_id) })
    yield* insertAll(
      'usage_standings',
      updates.map(({ standing }) => standing),
    )
  },
)

/** The usage of one database since a day. */
export interface UsageSince {
  readonly database_id: string
  readonly requests: number
  readonly cost_nano: number
  /** In and out. */
  readonly bytes: number
}

/** The days of a month. Usage of later days, counted while the clock was ahead, belongs to a later month. */
interface Month {
  readonly monthStart: number
  readonly monthEnd: number
}

const sumsOfMonth = query<Month, UsageSince>(({ db, p }) =>
  db
    .selectFrom('usage_days')
    .select(({ fn, eb }) => [
      'database_id',
      fn.sum<number>(eb('bytes_in', '+', eb.ref('bytes_out'))).as('bytes'),
      fn.sum<number>('requests').as('requests'),
      fn.sum<number>('cost_nano').as('cost_nano'),
    ])
    .where('day', '>=', p.monthStart)
    .where('day', '<', p.monthEnd)
    .groupBy('database_id'),
)
const allStandings = query<object, StandingRow>(({ db }) => db.selectFrom('usage_standings').selectAll())

/** What a start loads into memory: the standing of each database and its usage in a month. */
export const load = read('usage.load', function* (args: Month): Transaction<{
  standings: StandingRow[]
  month: UsageSince[]
}> {
  const month = yield* all(sumsOfMonth, args)
  return { standings: yield* all(allStandings, {}), month }
})

const sumsOfOne = query<Month & { databaseId: string }, UsageSince>(({ db, p }) =>
  db
    .selectFrom('usage_days')
    .select(({ fn, eb }) => [
      'database_id',
      fn.sum<number>(eb('bytes_in', '+', eb.ref('bytes_out'))).as('bytes'),
      fn.sum<number>('requests').as('requests'),
      fn.sum<number>('cost_nano').as('cost_nano'),
    ])
    .where('day', '>=', p.monthStart)
    .where('day', '<', p.monthEnd)
    .where('database_id', '=', p.databaseId)
    .groupBy('database_id'),
)
const standingOf = query<{ databaseId: string }, StandingRow>(({ db, p }) =>
  db.selectFrom('usage_standings').selectAll().where('database_id', '=', p.databaseId),
)

/** Like `load`, for one database. */
export const loadOne = read('usage.loadOne', function* (args: Month & { databaseId: string }): Transaction<{
  standing: StandingRow | undefined
  month: UsageSince | undefined
}> {
  const standing = yield* first(standingOf, { databaseId: args.databaseId })
  return { standing, month: yield* first(sumsOfOne, args) }
})

const dropBuckets = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('usage_buckets').where('database_id', '=', p.databaseId),
)
const dropDays = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('usage_days').where('database_id', '=', p.databaseId),
)

/** Deletes the usage of a database; the transaction that deletes the database calls this. */
export function* forgetUsage(databaseId: string): Transaction<void> {
  yield* change(dropBuckets, { databaseId })
  yield* change(dropDays, { databaseId })
  yield* change(dropStandings, { ids: [databaseId] })
}
