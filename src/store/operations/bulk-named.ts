import { sql } from 'kysely'
import { all, crossing, read, type Transaction } from '../operation.js'
import { query } from '../query.js'
import type { RunState } from '../schema/runs.js'
import { type Numbers, numbersOf } from './bulk-select.js'

/** Which runs ids name. A list of hundreds of thousands comes in pieces, and is best not looked at before it is here. */

/** Which of the runs that ids name are wanted; to tell those that have ended apart, each has to be looked at. */
export type WantedRuns = 'all' | 'unfinished'

/** Asks for the runs of some ids. */
export interface NamedArgs {
  readonly accountId: string
  readonly ids: readonly string[]
  /** The newest run that may be selected: `runs.seq`. */
  readonly bound: number
  readonly wanted: WantedRuns
}

/** The runs that ids name, each once, in no order. */
export interface NamedRuns {
  /** Those that were wanted. */
  readonly found: ArrayLike<number>
  /** The others: they have ended. */
  readonly ended: ArrayLike<number>
  /** Ids that name nothing, as often as they were given. */
  readonly absent: readonly string[]
  /** How many ids were given. */
  readonly given: number
}

const namedAll = query<NamedArgs, Numbers>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(d.numbersOf('seq').as('seqs'))
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('run_id', p.ids))
    .where('seq', '<=', p.bound),
)
const namedUnfinished = query<NamedArgs, Numbers>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(d.numbersOf('seq').as('seqs'))
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('run_id', p.ids))
    .where('seq', '<=', p.bound)
    .where('state', '=', sql.lit('RUN_STARTED')),
)
const named = query<NamedArgs, { seq: number; run_id: string; state: RunState }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id', 'state'])
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('run_id', p.ids))
    .where('seq', '<=', p.bound),
)

function* namedAmong(args: NamedArgs): Transaction<NamedRuns> {
  const found = yield* numbersOf(args.wanted === 'all' ? namedAll : namedUnfinished, args)
  const given = args.ids.length
  if (found.length === given) return { found, ended: [], absent: [], given }
  const rows = yield* all(named, args)
  const known = new Set(rows.map((row) => row.run_id))
  const ended = args.wanted === 'all' ? [] : rows.filter((row) => row.state !== 'RUN_STARTED')
  const absent = args.ids.filter((id) => !known.has(id))
  return { found, ended: ended.map((row) => row.seq), absent, given }
}

/** Thousands of numbers are copied as one piece of memory. */
const packed = (runs: NamedRuns): NamedRuns => ({
  ...runs,
  found: Float64Array.from(runs.found),
  ended: Float64Array.from(runs.ended),
})

/** Selects the runs of an account that ids name. Most often all of them are found at once, and nothing else is looked up. */
export const selectNamed = read('bulk.selectNamed', (args: NamedArgs) => namedAmong(args), {
  turn: 'background',
  crossing: crossing(packed, (runs) => runs),
})

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
