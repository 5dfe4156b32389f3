/**
 * Keeps the usage series bounded. When a bucket of a longer tier has ended, the samples of the shorter tier in it are
 * merged, in batches of databases. Then samples past their retention are deleted, in batches of time.
 *
 * A crash between two batches does no harm: the next run merges the bucket for the remaining databases. Samples of the
 * shorter tier are deleted only after `rolled_to` says that they were merged. After the clock was set back, merging
 * continues from there: buckets that were merged before stay as they are.
 */
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, only, type Transaction } from '../../store/statement.js'
import { TIERS_MS, type TierMs } from './usage.js'
import { mergeSamples, packSample, type UsageSample, unpackSample } from './usage-sample.js'

interface TimeRange {
  readonly tierMs: number
  readonly from: number
  readonly to: number
}

const rolledTo = query<{ tierMs: number }, { rolled_to: number }>(({ db, p }) =>
  db.selectFrom('usage_rollups').select('rolled_to').where('tier_ms', '=', p.tierMs),
)
const dropRolledTo = query<{ tierMs: number }>(({ db, p }) =>
  db.deleteFrom('usage_rollups').where('tier_ms', '=', p.tierMs),
)
const earliest = query<{ tierMs: number; from: number }, { start: number | null }>(({ db, p }) =>
  db
    .selectFrom('usage_buckets')
    .select(({ fn }) => fn.min<number | null>('start').as('start'))
    .where('tier_ms', '=', p.tierMs)
    .where('start', '>=', p.from),
)
const databasesIn = query<TimeRange & { after: string; limit: number }, { database_id: string }>(({ db, p }) =>
  db
    .selectFrom('usage_buckets')
    .select('database_id')
    .distinct()
    .where('tier_ms', '=', p.tierMs)
    .where('start', '>=', p.from)
    .where('start', '<', p.to)
    .where('database_id', '>', p.after)
    .orderBy('database_id')
    .limit(p.limit),
)
const samplesIn = query<TimeRange & { ids: readonly string[] }, { database_id: string; sample: string }>(
  ({ db, p, d }) =>
    db
      .selectFrom('usage_buckets')
      .select(['database_id', 'sample'])
      .where(d.inTexts('database_id', p.ids))
      .where('tier_ms', '=', p.tierMs)
      .where('start', '>=', p.from)
      .where('start', '<', p.to)
      .orderBy('start'),
)
const mergedIn = query<{ tierMs: number; from: number; ids: readonly string[] }, { database_id: string }>(
  ({ db, p, d }) =>
    db
      .selectFrom('usage_buckets')
      .select('database_id')
      .where(d.inTexts('database_id', p.ids))
      .where('tier_ms', '=', p.tierMs)
      .where('start', '=', p.from),
)

/** Up to when the buckets of a tier are merged; 0 for never. Samples are written to the first tier directly. */
export function* rolledToOf(tierMs: TierMs): Transaction<number> {
  return (yield* first(rolledTo, { tierMs }))?.rolled_to ?? 0
}

function* setRolledTo(tierMs: TierMs, to: number): Transaction<void> {
  yield* change(dropRolledTo, { tierMs })
  yield* insertAll('usage_rollups', [{ tier_ms: tierMs, rolled_to: to }])
}

/**
 * The time from which buckets of a tier are merged. A time in the future, from before the clock was set back, is moved to
 * the present.
 */
function* mergeFrom(tierMs: TierMs, endedBefore: number): Transaction<number> {
  const merged = yield* rolledToOf(tierMs)
  if (merged <= endedBefore) return merged
  const present = endedBefore - (endedBefore % tierMs)
  yield* setRolledTo(tierMs, present)
  return present
}

/** The outcome of a batch; after `more`, call again with `after`. */
export type RollUpOutcome = { readonly kind: 'done' } | { readonly kind: 'more'; readonly after: string }

/**
 * Merges the next bucket of tier number `tier` that ended before `endedBefore`, for at most `limit` databases with ids
 * after `after`.
 */
export const rollUp = write(
  'usage.rollUp',
  function* (args: { tier: 1 | 2; endedBefore: number; after: string; limit: number }): Transaction<RollUpOutcome> {
    const [sourceMs, targetMs] = [TIERS_MS[args.tier - 1], TIERS_MS[args.tier]]
    if (sourceMs === undefined || targetMs === undefined) return { kind: 'done' }
    const merged = yield* mergeFrom(targetMs, args.endedBefore)
    const { start } = yield* only(earliest, { tierMs: sourceMs, from: merged })
    if (start === null) return { kind: 'done' }
    const from = start - (start % targetMs)
    const to = from + targetMs
    if (to > args.endedBefore) return { kind: 'done' }
    const source: TimeRange = { tierMs: sourceMs, from, to }
    const { after, limit } = args
    const ids = (yield* all(databasesIn, { ...source, after, limit })).map((row) => row.database_id)
    yield* mergeBucket(source, targetMs, ids)
    if (ids.length === limit) return { kind: 'more', after: ids.at(-1) ?? '' }
    yield* setRolledTo(targetMs, to)
    return { kind: 'more', after: '' }
  },
)

function* mergeBucket(source: TimeRange, tierMs: TierMs, ids: readonly string[]): Transaction<void> {
  if (ids.length === 0) return
  const { from } = source
  const merged = new Set((yield* all(mergedIn, { tierMs, from, ids })).map((row) => row.database_id))
  const made = new Map<string, UsageSample>()
  for (const { database_id, sample } of yield* all(samplesIn, { ...source, ids })) {
    if (merged.has(database_id)) continue
    const before = made.get(database_id)
    made.set(database_id, before ? mergeSamples(before, unpackSample(sample)) : unpackSample(sample))
  }
  const rows = [...made].map(([database_id, sample]) => {
    return { database_id, tier_ms: tierMs, start: from, sample: packSample(sample) }
  })
  yield* insertAll('usage_buckets', rows)
}

/** The most buckets of a tier that one batch deletes. */
const BUCKETS_PER_BATCH = 60

const dropSlice = query<TimeRange>(({ db, p }) =>
  db.deleteFrom('usage_buckets').where('tier_ms', '=', p.tierMs).where('start', '>=', p.from).where('start', '<', p.to),
)
const dropDaysBefore = query<{ day: number }>(({ db, p }) => db.deleteFrom('usage_days').where('day', '<', p.day))

/** Usage without a database: with concurrent transactions, usage may be written while its database is deleted. */
const dropOrphans = query<object>(({ db }) =>
  db.deleteFrom('usage_standings').where('database_id', 'not in', db.selectFrom('databases').select('database_id')),
)

/** The times before which the samples of each tier and the totals by day are deleted, Unix milliseconds. */
export interface Expiry {
  readonly tiers: readonly [number, number, number]
  readonly days: number
}

/** Deletes a batch of samples that are past their retention and merged into the longer tier; `more`: there may be more. */
export const expire = write('usage.expire', function* (args: Expiry): Transaction<'done' | 'more'> {
  for (const [place, tierMs] of TIERS_MS.entries()) {
    const { start } = yield* only(earliest, { tierMs, from: 0 })
    const target = TIERS_MS[place + 1]
    const used = target === undefined ? Number.MAX_SAFE_INTEGER : yield* rolledToOf(target)
    const before = Math.min(args.tiers[place] ?? 0, used)
    if (start === null || start >= before) continue
    yield* change(dropSlice, { tierMs, from: start, to: Math.min(before, start + BUCKETS_PER_BATCH * tierMs) })
    return 'more'
  }
  yield* change(dropDaysBefore, { day: args.days })
  yield* change(dropOrphans, {})
  return 'done'
})
