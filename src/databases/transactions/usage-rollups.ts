/**
 * Keeps the series of usage bounded. When a stretch of a longer tier is over, the samples of the shorter tier in it are
 * put together, for a bounded number of databases at a time; then what is past its time is deleted, a slice at a time.
 *
 * A crash between two steps does no harm: a stretch is made anew from what the shorter tier still holds, and that is
 * deleted only when `rolled_to` says that it has been used.
 */
import { all, change, first, insertAll, only, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { TIERS_MS, type TierMs } from './usage.js'
import { mergeSamples, packSample, type UsageSample, unpackSample } from './usage-sample.js'

interface Stretch {
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
const databasesIn = query<Stretch & { after: string; limit: number }, { database_id: string }>(({ db, p }) =>
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
const samplesIn = query<Stretch & { ids: readonly string[] }, { database_id: string; sample: string }>(({ db, p, d }) =>
  db
    .selectFrom('usage_buckets')
    .select(['database_id', 'sample'])
    .where(d.inTexts('database_id', p.ids))
    .where('tier_ms', '=', p.tierMs)
    .where('start', '>=', p.from)
    .where('start', '<', p.to)
    .orderBy('start'),
)
const dropIn = query<Stretch & { ids: readonly string[] }>(({ db, p, d }) =>
  db
    .deleteFrom('usage_buckets')
    .where(d.inTexts('database_id', p.ids))
    .where('tier_ms', '=', p.tierMs)
    .where('start', '>=', p.from)
    .where('start', '<', p.to),
)

/** Up to when the stretches of a tier are made; 0 for never. The first tier is made by writing. */
export function* rolledToOf(tierMs: TierMs): Transaction<number> {
  return (yield* first(rolledTo, { tierMs }))?.rolled_to ?? 0
}

function* setRolledTo(tierMs: TierMs, to: number): Transaction<void> {
  yield* change(dropRolledTo, { tierMs })
  yield* insertAll('usage_rollups', [{ tier_ms: tierMs, rolled_to: to }])
}

/** Where a tier stands: `more` has to be asked again, with `after`. */
export type RollUpOutcome = { readonly kind: 'done' } | { readonly kind: 'more'; readonly after: string }

/**
 * Makes the next stretch of the tier number `tier` that ended before `endedBefore`, for at most `limit` databases whose
 * ids come after `after`.
 */
export const rollUp = write(
  'usage.rollUp',
  function* (args: { tier: 1 | 2; endedBefore: number; after: string; limit: number }): Transaction<RollUpOutcome> {
    const [sourceMs, targetMs] = [TIERS_MS[args.tier - 1], TIERS_MS[args.tier]]
    if (sourceMs === undefined || targetMs === undefined) return { kind: 'done' }
    const { start } = yield* only(earliest, { tierMs: sourceMs, from: yield* rolledToOf(targetMs) })
    if (start === null) return { kind: 'done' }
    const from = start - (start % targetMs)
    const to = from + targetMs
    if (to > args.endedBefore) return { kind: 'done' }
    const source: Stretch = { tierMs: sourceMs, from, to }
    const { after, limit } = args
    const ids = (yield* all(databasesIn, { ...source, after, limit })).map((row) => row.database_id)
    yield* makeStretch(source, { tierMs: targetMs, from, to }, ids)
    if (ids.length === limit) return { kind: 'more', after: ids.at(-1) ?? '' }
    yield* setRolledTo(targetMs, to)
    return { kind: 'more', after: '' }
  },
)

function* makeStretch(source: Stretch, target: Stretch, ids: readonly string[]): Transaction<void> {
  if (ids.length === 0) return
  const made = new Map<string, UsageSample>()
  for (const { database_id, sample } of yield* all(samplesIn, { ...source, ids })) {
    const before = made.get(database_id)
    made.set(database_id, before ? mergeSamples(before, unpackSample(sample)) : unpackSample(sample))
  }
  yield* change(dropIn, { ...target, ids })
  yield* insertAll(
    'usage_buckets',
    [...made].map(([database_id, sample]) => ({
      database_id,
      tier_ms: target.tierMs,
      start: target.from,
      sample: packSample(sample),
    })),
  )
}

/** How many stretches of a tier one step deletes at most. */
const STRETCHES_AT_ONCE = 60

const dropSlice = query<Stretch>(({ db, p }) =>
  db.deleteFrom('usage_buckets').where('tier_ms', '=', p.tierMs).where('start', '>=', p.from).where('start', '<', p.to),
)
const dropDaysBefore = query<{ day: number }>(({ db, p }) => db.deleteFrom('usage_days').where('day', '<', p.day))

/** Where transactions run side by side, usage may be written at the very moment at which its database is deleted. */
const dropOrphans = query<object>(({ db }) =>
  db.deleteFrom('usage_standings').where('database_id', 'not in', db.selectFrom('databases').select('database_id')),
)

/** Before which time each tier, by its place, and the totals of days are past their time. */
export interface Expiry {
  readonly tiers: readonly [number, number, number]
  readonly days: number
}

/** Deletes a slice of what is past its time and not needed for a longer tier any more; `more` when there may be more. */
export const expire = write('usage.expire', function* (args: Expiry): Transaction<'done' | 'more'> {
  for (const [place, tierMs] of TIERS_MS.entries()) {
    const { start } = yield* only(earliest, { tierMs, from: 0 })
    const target = TIERS_MS[place + 1]
    const used = target === undefined ? Number.MAX_SAFE_INTEGER : yield* rolledToOf(target)
    const before = Math.min(args.tiers[place] ?? 0, used)
    if (start === null || start >= before) continue
    yield* change(dropSlice, { tierMs, from: start, to: Math.min(before, start + STRETCHES_AT_ONCE * tierMs) })
    return 'more'
  }
  yield* change(dropDaysBefore, { day: args.days })
  yield* change(dropOrphans, {})
  return 'done'
})
