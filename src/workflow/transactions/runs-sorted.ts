import { type RawBuilder, sql } from 'kysely'
import type { RunSort, SortDirection } from '../../contract/workflow/run-order.js'
import { read } from '../../store/operation.js'
import { queriesByShape } from '../../store/query.js'
import { all, first, type Transaction } from '../../store/statement.js'
import {
  CONDITIONS,
  endAt,
  newestUpTo,
  type Params,
  type RunLogArgs,
  type SearchEnd,
  type Shape,
  walkOf,
} from './runs-walk.js'

/**
 * Runs in another order than that of their creation. No index has these orders, because each index would cost a write when
 * a run ends. So each read examines some thousands of runs, and answers the first ones in the order.
 */

/** The values that runs are sorted by, except their creation. */
export type ValueSort = Exclude<RunSort, 'created'>

/** The value that a run is sorted by. */
export type SortValue = number | string

/** A run, with the value that it is sorted by. */
export interface SortedRun {
  readonly seq: number
  readonly value: SortValue
}

/** Parameters of a read that sorts runs. */
export interface SortedArgs extends Omit<RunLogArgs, 'direction'> {
  readonly sort: ValueSort
  readonly direction: SortDirection
  /** The durations of active runs end at this time, Unix milliseconds. */
  readonly now: number
  /** Only runs after this one in the order. */
  readonly after?: SortedRun
}

/** The first runs, in the order, of those that one read examined. */
export interface SortedPart {
  readonly runs: readonly SortedRun[]
  /** Where the read ended, if runs remain that it has not examined. */
  readonly end?: SearchEnd
}

type SortParams = Params & { readonly value: SortValue; readonly seq: number }

/** Values that sort after every time in milliseconds, and after every letter. */
const LAST = { time: sql.lit(Number.MAX_SAFE_INTEGER), text: sql.lit('\u{10ffff}') }

/** Letters of a text that are compared. Limited, because a cursor contains the text. */
const COMPARED = sql.lit(100)

/** Runs without an end or label come last in both directions. */
const VALUES = {
  ended: (direction) => sql`coalesce(finished_at, ${direction === 'asc' ? LAST.time : sql.lit(-1)})`,
  duration: (_, p) => sql`(coalesce(finished_at, ${p.now}) - created_at)`,
  state: () =>
    sql`(case state when 'RUN_STARTED' then 0 when 'RUN_CANCELED' then 1 when 'RUN_FAILED' then 2 else 3 end)`,
  id: () => sql`substr(run_id, 1, ${COMPARED})`,
  url: () => sql`substr(url, 1, ${COMPARED})`,
  label: (direction) =>
    direction === 'asc'
      ? sql`(case labels when '' then ${LAST.text} else substr(labels, 1, ${COMPARED}) end)`
      : sql`substr(labels, 1, ${COMPARED})`,
} satisfies Record<ValueSort, (direction: SortDirection, p: SortParams) => RawBuilder<unknown>>

/** Where a read begins: at the start of the order, or after a run. */
type Place = 'first page' | 'next page'

const sorting = queriesByShape<[ValueSort, SortDirection, Place, Shape], SortParams, SortedRun>(
  ({ db, p, d }, sort, direction, place, shape) => {
    const value = VALUES[sort](direction, p) as RawBuilder<SortValue>
    let runs = db
      .selectFrom('runs')
      .select(['seq', value.as('value')])
      .where('seq', '<', p.before)
    for (const condition of shape) runs = runs.where(CONDITIONS[condition](d, p))
    const beyond = direction === 'asc' ? sql`>` : sql`<`
    if (place === 'next page') {
      runs = runs.where(sql<boolean>`(${value} ${beyond} ${p.value} or (${value} = ${p.value} and seq < ${p.seq}))`)
    }
    return runs.orderBy('value', direction).orderBy('seq', 'desc').limit(p.limit)
  },
)

/** Sorts as many runs as one read may examine, from the newest on. */
export const sortedPart = read(
  'runs.sortedPart',
  function* ({ sort, direction, after, ...args }: SortedArgs): Transaction<SortedPart> {
    const { shape, params, end } = yield* walkOf(args, 'bounded')
    const place = after ? 'next page' : 'first page'
    const { value, seq } = after ?? { value: 0, seq: 0 }
    const runs = yield* all(sorting(sort, direction, place, shape), { ...params, value, seq })
    return { runs, ...(end !== undefined && { end: yield* endAt(args.accountId, end) }) }
  },
  { turn: 'background' },
)

/** `runs.seq` of the newest run of an account; 0 without one. */
export const newestRun = read('runs.newestRun', function* ({ accountId }: { accountId: string }): Transaction<number> {
  return (yield* first(newestUpTo, { accountId, upTo: Number.MAX_SAFE_INTEGER }))?.seq ?? 0
})

/** The first runs of an order, from those of two reads. */
export function mergeSorted(
  one: readonly SortedRun[],
  other: readonly SortedRun[],
  { direction, limit }: Pick<SortedArgs, 'direction' | 'limit'>,
): SortedRun[] {
  const sign = direction === 'asc' ? 1 : -1
  return [...one, ...other].sort((a, b) => sign * compared(a.value, b.value) || b.seq - a.seq).slice(0, limit)
}

/** Texts in the order of their bytes, as the databases compare them. */
function compared(one: SortValue, other: SortValue): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other
  return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
}
