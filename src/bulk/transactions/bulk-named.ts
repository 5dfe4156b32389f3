import { sql } from 'kysely'
import { crossing, only, read, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { ascending, type Numbers, numbersOf } from './bulk-select.js'

/** Which runs ids name. */

/** Asks for the runs of some ids. */
export interface NamedArgs {
  readonly accountId: string
  readonly ids: readonly string[]
  /** The newest run that may be selected: `runs.seq`. */
  readonly bound: number
}

/** The runs that ids name. */
export interface NamedRuns {
  /** Their numbers, in no order, each as often as its id was given. */
  readonly found: ArrayLike<number>
  /** Ids that name nothing, as they were given. */
  readonly absent: readonly string[]
}

/**
 * A left join goes through the ids and looks each of them up. For an inner one SQLite would go through the runs of the
 * account.
 */
const named = query<NamedArgs, { seqs: string }>(({ db, p, d }) =>
  db
    .selectFrom(d.textRows(p.ids))
    .leftJoin('runs', (join) =>
      join.onRef('run_id', '=', 'item.value').on('account_id', '=', p.accountId).on('seq', '<=', p.bound),
    )
    .select(d.listOf('seq').as('seqs')),
)
const absentAmong = query<NamedArgs, { ids: string }>(({ db, p, d }) =>
  db
    .selectFrom(d.textRows(p.ids))
    .leftJoin('runs', (join) =>
      join.onRef('run_id', '=', 'item.value').on('account_id', '=', p.accountId).on('seq', '<=', p.bound),
    )
    .select(d.listOf('item.value').as('ids'))
    .where('seq', 'is', null),
)

function* namedAmong(args: NamedArgs): Transaction<NamedRuns> {
  const seqs: (number | null)[] = JSON.parse((yield* only(named, args)).seqs)
  const found = seqs.filter((seq) => seq !== null)
  if (found.length === args.ids.length) return { found, absent: [] }
  const missing = new Set<string>(JSON.parse((yield* only(absentAmong, args)).ids))
  return { found, absent: args.ids.filter((id) => missing.has(id)) }
}

/** Thousands of numbers are copied as one piece of memory. */
const packed = (runs: NamedRuns): NamedRuns => ({ ...runs, found: Float64Array.from(runs.found) })

/** Selects the runs of an account that ids name. Most often all of them are found at once, and nothing else is looked up. */
export const selectNamed = read('bulk.selectNamed', (args: NamedArgs) => namedAmong(args), {
  turn: 'background',
  crossing: crossing(packed, (runs) => runs),
})

const unfinishedAmong = query<{ seqs: readonly number[] }, Numbers>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(d.listOf('seq').as('seqs'))
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('RUN_STARTED')),
)

/** Those of some runs that have not ended, in the order of their numbers. */
export const selectUnfinished = read(
  'bulk.selectUnfinished',
  function* (args: { seqs: readonly number[] }): Transaction<number[]> {
    return ascending(yield* numbersOf(unfinishedAmong, args))
  },
  { turn: 'background' },
)
