import { type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../../store/dialect.js'
import { read, write } from '../../store/operation.js'
import { type Building, queriesByShape, query } from '../../store/query.js'
import type { FailureState } from '../../store/schema/runs.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { dropRemains } from './runs-remains.js'
import type { RunRow } from './runs-rows.js'

/** Filter of dead letters. All given fields must match; a list matches if any value does. Ranges are inclusive. */
export interface DeadRunFilter {
  readonly dlqIds?: readonly string[]
  /** Prefixes of run ids. */
  readonly runIdPrefixes?: readonly string[]
  readonly urls?: readonly string[]
  readonly labels?: readonly string[]
  readonly callerIps?: readonly string[]
  readonly flowKeys?: readonly string[]
  /** HTTP statuses of the response that failed the run. */
  readonly statuses?: readonly number[]
  readonly failureStates?: readonly FailureState[]
  /** Exact creation time of the run. */
  readonly createdAt?: number
  /** When the run failed. */
  readonly from?: number
  readonly to?: number
}

/** By the time of the failure. */
export type DeadRunOrder = 'earliestFirst' | 'latestFirst'

/** Position of a dead letter in the order of failures. */
export interface DeadRunPlace {
  readonly at: number
  readonly seq: number
}

/** A page of dead letters of one account. */
export interface DeadRunSelector {
  readonly accountId: string
  readonly filter: DeadRunFilter
  readonly order: DeadRunOrder
  /** The page begins after this one. */
  readonly after?: DeadRunPlace
  readonly limit: number
}

/** A page of dead letters. It may be empty and still have a next one. */
export interface DeadRunPage {
  readonly runs: readonly RunRow[]
  /** The next page begins after this one; absent after the last. */
  readonly next?: DeadRunPlace
}

interface Range {
  readonly afterAt: number
  readonly afterSeq: number
  readonly untilAt: number
  readonly untilSeq: number
}

type Params = DeadRunFilter & Range & { accountId: string; limit: number }
type Condition = (d: Dialect, p: Required<Params>) => RawBuilder<boolean>

const CONDITIONS = {
  dlqIds: (d, p) => d.inTexts('dlq_id', p.dlqIds),
  runIdPrefixes: (d, p) => d.someText(p.runIdPrefixes, (prefix) => d.startsWith('run_id', prefix)),
  urls: (d, p) => d.inTexts('url', p.urls),
  labels: (d, p) => d.someText(p.labels, (label) => d.contains('labels', label)),
  callerIps: (d, p) => d.inTexts('caller_ip', p.callerIps),
  flowKeys: (d, p) => d.inTexts('flow_key', p.flowKeys),
  statuses: (d, p) => d.inNumbers('failure_status', p.statuses),
  failureStates: (d, p) => d.inTexts('failure_state', p.failureStates),
  createdAt: (_, p) => sql<boolean>`created_at = ${p.createdAt}`,
  from: (_, p) => sql<boolean>`died_at >= ${p.from}`,
  to: (_, p) => sql<boolean>`died_at <= ${p.to}`,
} satisfies Record<keyof DeadRunFilter, Condition>

type ConditionName = keyof typeof CONDITIONS
// The table declares every key.
const NAMES = Object.keys(CONDITIONS) as ConditionName[]

type Access = 'reading' | 'locking'

function pageOf(order: DeadRunOrder, shape: readonly ConditionName[], { db, p, d }: Building<Params>) {
  const forward = order === 'earliestFirst'
  let runs = db
    .selectFrom('runs')
    .where('dlq_id', 'is not', null)
    .where('account_id', '=', p.accountId)
    .where(sql<boolean>`(died_at, seq) ${forward ? sql`>` : sql`<`} (${p.afterAt}, ${p.afterSeq})`)
    .where(sql<boolean>`(died_at, seq) ${forward ? sql`<=` : sql`>=`} (${p.untilAt}, ${p.untilSeq})`)
  for (const condition of shape) runs = runs.where(CONDITIONS[condition](d, p))
  const direction = forward ? 'asc' : 'desc'
  return runs.orderBy('died_at', direction).orderBy('seq', direction).limit(p.limit)
}

const matching = queriesByShape<[DeadRunOrder, readonly ConditionName[], Access], Params, RunRow>(
  (building, order, shape, access) => {
    const page = pageOf(order, shape, building).selectAll()
    return access === 'locking' ? building.d.forUpdate(page) : page
  },
)

/** The position of a dead letter, without the record of its failure, which may be large. */
type PlaceRow = Pick<RunRow, 'seq' | 'died_at'>

const places = queriesByShape<[DeadRunOrder, readonly ConditionName[]], Params, PlaceRow>((building, order, shape) =>
  pageOf(order, shape, building).select(['seq', 'died_at']),
)

/**
 * The range of times at which these dead letters failed: an id starts with its time. Other text is no id and matches
 * nothing.
 */
function failedBetween(dlqIds: readonly string[]): { readonly from: number; readonly to: number } {
  const times = dlqIds.map((id) => Number.parseInt(id, 10)).filter(Number.isSafeInteger)
  return times.reduce(({ from, to }, at) => ({ from: Math.min(from, at), to: Math.max(to, at) }), {
    from: Number.MAX_SAFE_INTEGER,
    to: -1,
  })
}

/** Dead letters that one read examines, even if few of them match; more if the page is larger. */
const MAX_SEARCHED = 2_000
const EVER = Number.MAX_SAFE_INTEGER

const aheadQuery = (order: DeadRunOrder) =>
  query<DeadRunPlace & { accountId: string; ahead: number }, DeadRunPlace>(({ db, p }) => {
    const forward = order === 'earliestFirst'
    const direction = forward ? 'asc' : 'desc'
    return db
      .selectFrom('runs')
      .select([sql<number>`died_at`.as('at'), 'seq'])
      .where('dlq_id', 'is not', null)
      .where('account_id', '=', p.accountId)
      .where(sql<boolean>`(died_at, seq) ${forward ? sql`>` : sql`<`} (${p.at}, ${p.seq})`)
      .orderBy('died_at', direction)
      .orderBy('seq', direction)
      .offset(p.ahead)
      .limit(1)
  })

const AHEAD = { earliestFirst: aheadQuery('earliestFirst'), latestFirst: aheadQuery('latestFirst') }

function isBehind(order: DeadRunOrder, one: DeadRunPlace, other: DeadRunPlace): boolean {
  const difference = one.at - other.at || one.seq - other.seq
  return order === 'earliestFirst' ? difference > 0 : difference < 0
}

/** The query of a page, and where the next page begins if this one does not find enough. */
interface Search {
  readonly params: Params
  readonly shape: readonly ConditionName[]
  readonly end: DeadRunPlace | undefined
}

/** Builds the query of a page. It reads one row more than the page has, which shows whether others follow. */
function* searchOf({ accountId, filter, order, limit, after }: DeadRunSelector): Transaction<Search> {
  const labels = filter.labels?.map((label) => `|${label}|`)
  const bounded = filter.dlqIds ? { ...filter, ...failedBetween(filter.dlqIds) } : filter
  const oldest = { at: (bounded.from ?? 0) - 1, seq: EVER }
  const newest = { at: bounded.to ?? EVER, seq: EVER }
  const [begin, last] = order === 'earliestFirst' ? [oldest, newest] : [newest, oldest]
  const place = after && isBehind(order, after, begin) ? after : begin
  const distance = Math.max(MAX_SEARCHED, limit + 1) - 1
  // A request that names its letters gets all of them at once.
  const ahead = filter.dlqIds ? undefined : yield* first(AHEAD[order], { ...place, accountId, ahead: distance })
  const end = ahead && isBehind(order, last, ahead) ? ahead : undefined
  const { at: untilAt, seq: untilSeq } = end ?? last
  const range = { afterAt: place.at, afterSeq: place.seq, untilAt, untilSeq }
  const params = { ...bounded, ...(labels && { labels }), ...range, accountId, limit: limit + 1 }
  return { params, shape: NAMES.filter((name) => bounded[name] !== undefined), end }
}

/** The rows of a page, and where the next page begins. */
function pageOfRows<Row extends PlaceRow>(found: readonly Row[], limit: number, end: DeadRunPlace | undefined) {
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const next = found.length > limit && last ? { at: last.died_at ?? 0, seq: last.seq } : end
  return { rows, ...(next && { next }) }
}

/** Reads a page of dead letters. */
export function* selectDead(selector: DeadRunSelector, access: Access): Transaction<DeadRunPage> {
  const { params, shape, end } = yield* searchOf(selector)
  const found = yield* all(matching(selector.order, shape, access), params)
  const { rows: runs, ...rest } = pageOfRows(found, selector.limit, end)
  return { runs, ...rest }
}

/** The positions of a page of dead letters, in order. */
export function* selectPlaces(
  selector: DeadRunSelector,
): Transaction<{ places: PlaceRow[]; next?: DeadRunPlace | undefined }> {
  const { params, shape, end } = yield* searchOf(selector)
  const found = yield* all(places(selector.order, shape), params)
  const { rows, ...rest } = pageOfRows(found, selector.limit, end)
  return { places: rows, ...rest }
}

/** A dead letter found by id, without the record of its failure, which may be large. */
export type NamedDeadRun = Pick<RunRow, 'seq' | 'dlq_id' | 'failure_state'>

type Named = ReturnType<typeof failedBetween> & { accountId: string; dlqIds: readonly string[] }

const named = query<Named, NamedDeadRun>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'dlq_id', 'failure_state'])
    .where(d.inTexts('dlq_id', p.dlqIds))
    .where('account_id', '=', p.accountId)
    .where('dlq_id', 'is not', null)
    .where('died_at', '>=', p.from)
    .where('died_at', '<=', p.to)
    .orderBy('died_at')
    .orderBy('seq'),
)

/** Finds dead letters of an account by id, earliest failure first. Fastest if the ids are close in time. */
export const deadNamed = read(
  'runs.deadNamed',
  function* (args: { accountId: string; dlqIds: readonly string[] }): Transaction<NamedDeadRun[]> {
    return yield* all(named, { ...args, ...failedBetween(args.dlqIds) })
  },
)

const unsetDlqIds = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.updateTable('runs').set({ dlq_id: null }).where(d.inNumbers('seq', p.seqs)).where('dlq_id', 'is not', null),
)

/** Removes runs from the dead letters, as part of another transaction; the runs stay in the logs. */
export function* removeDeadLetters(seqs: readonly number[]): Transaction<void> {
  if (seqs.length > 0) yield* change(unsetDlqIds, { seqs })
}

const stillDead = query<{ seqs: readonly number[]; accountId: string }, { seq: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select('seq')
      .where(d.inNumbers('seq', p.seqs))
      .where('account_id', '=', p.accountId)
      .where('dlq_id', 'is not', null)
      .orderBy('seq', 'desc'),
  ),
)

/** Locks the runs that are dead letters. @returns their numbers. */
export function* deadAmong(seqs: readonly number[], accountId: string): Transaction<number[]> {
  return (yield* all(stillDead, { seqs, accountId })).map((row) => row.seq)
}

/** `runs.seq` of a page of dead letters, and where the next page begins. */
export const deadSeqs = read('runs.deadSeqs', function* (selector: DeadRunSelector): Transaction<{
  seqs: number[]
  next: DeadRunPlace | undefined
}> {
  const { places, next } = yield* selectPlaces(selector)
  return { seqs: places.map(({ seq }) => seq), next }
})

/** Deletes a page of dead letters. The runs stay in the logs as failed, and can no longer be resumed. */
export const deleteDeadRuns = write('runs.deleteDead', function* (selector: DeadRunSelector): Transaction<DeadRunPage> {
  const page = yield* selectDead(selector, 'locking')
  const seqs = page.runs.map((run) => run.seq)
  yield* removeDeadLetters(seqs)
  yield* dropRemains(seqs)
  return page
})
