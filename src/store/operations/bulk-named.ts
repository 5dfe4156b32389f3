import { sql } from 'kysely'
import { crossing, only, read, type Transaction } from '../operation.js'
import { query } from '../query.js'
import { ascending, type Numbers, numbersOf } from './bulk-select.js'

/** Which runs ids name. A list of hundreds of thousands comes in pieces, and is best not looked at before it is here. */

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
  /** How many ids were given. */
  readonly given: number
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
  const given = args.ids.length
  if (found.length === given) return { found, absent: [], given }
  const missing = new Set<string>(JSON.parse((yield* only(absentAmong, args)).ids))
  return { found, absent: args.ids.filter((id) => missing.has(id)), given }
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

/** Asks for the runs of ids as they were sent. */
export interface SentArgs extends Omit<NamedArgs, 'ids'> {
  /** Elements of a JSON list with the commas between them. */
  readonly elements: Uint8Array
}

/** The same for ids as they were sent; `undefined` when these are anything but texts, or one of them is empty. */
export const selectSent = read(
  'bulk.selectSent',
  function* ({ elements, ...others }: SentArgs): Transaction<NamedRuns | undefined> {
    const ids = textsOf(elements)
    return ids && (yield* namedAmong({ ids, ...others }))
  },
  {
    turn: 'background',
    crossing: crossing(
      (runs) => runs && packed(runs),
      (runs) => runs,
    ),
  },
)

const decoder = new TextDecoder('utf-8', { fatal: true })

/** The elements of a JSON list, given with the commas between them, when there are some and all are texts with content. */
export function textsOf(elements: Uint8Array): string[] | undefined {
  try {
    const list: unknown[] = JSON.parse(`[${decoder.decode(elements)}]`)
    return list.length > 0 && list.every(isText) ? list : undefined
  } catch {
    return undefined
  }
}

const isText = (item: unknown): item is string => typeof item === 'string' && item !== ''
