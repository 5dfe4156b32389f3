import { type Compilable, type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../../store/dialect.js'
import { encodeResult, read } from '../../store/operation.js'
import { type Building, type Query, queriesByShape, query } from '../../store/query.js'
import type { MessageState } from '../../store/schema/messages.js'
import { all, only, type Transaction } from '../../store/statement.js'
import { packSeqs } from './bulk-pack.js'

/**
 * Selects the active runs of an account in the order of their creation. A page reads a bounded number of runs however
 * few of them match, so no reader of the store waits long.
 */

/** Filter of runs. All given fields must match; a list matches if any element does. Comparison is case-sensitive. */
export interface RunFilter {
  readonly urlPrefix?: readonly string[]
  readonly url?: readonly string[]
  readonly label?: readonly string[]
  readonly host?: readonly string[]
  readonly path?: readonly string[]
  readonly callerIp?: readonly string[]
  readonly flowKey?: readonly string[]
  /** `true`: only paused runs. `false`: only others. `with-workflow`: only runs that are paused with their workflow. */
  readonly paused?: boolean | 'with-workflow'
  /** Created strictly after, Unix milliseconds. */
  readonly createdAfter?: number
  /** Created strictly before, Unix milliseconds. */
  readonly createdBefore?: number
}

/** A packed chunk of a set. */
export interface PackedSeqs {
  readonly items: number
  /** Encoded by `packSeqs`. */
  readonly seqs: Uint8Array
}

/** A page of matching runs. */
export interface SelectedPage {
  /** `runs.seq` of the matches, ascending. */
  readonly seqs: readonly number[]
  /** Start of the next page; `undefined` when nothing is left. */
  readonly next: number | undefined
}

/** Arguments for a page of matching runs. */
export interface SelectPageArgs {
  readonly accountId: string
  readonly filter: RunFilter
  /** `runs.seq` of the last run of the previous page; 0 at first. */
  readonly after: number
  /** The newest run that may be selected: `runs.seq`. */
  readonly bound: number
  /** Maximum number of runs to read. */
  readonly scan: number
  /** Maximum number of matches. */
  readonly most: number
}

const newestRun = query<object, { seq: number }>(({ db }) =>
  db.selectFrom('runs').select((eb) => eb.fn.coalesce(eb.fn.max('seq'), sql<number>`0`).as('seq')),
)

/** Number of the newest run in the store, the upper bound of a set: runs triggered later have larger numbers. */
export const newest = read('bulk.newestRun', function* (_: object): Transaction<number> {
  return (yield* only(newestRun, {})).seq
})

/**
 * Parameters of the matching query. A single prefix or label is compared directly: a list lookup for each run would
 * cost more than the rest of the query.
 */
interface MatchParams extends RunFilter {
  readonly accountId: string
  readonly after: number
  readonly bound: number
  readonly scan: number
  readonly onePrefix?: string | undefined
  readonly oneLabel?: string | undefined
  readonly onlyPaused?: true | undefined
  readonly notPaused?: true | undefined
  /** A part of the JSON of a pause. */
  readonly heldBy?: string | undefined
}

type Condition = (d: Dialect, p: Required<MatchParams>) => RawBuilder<boolean>

const CONDITIONS = {
  onePrefix: (d, p) => d.startsWith('url', p.onePrefix ?? ''),
  urlPrefix: (d, p) => d.someText(p.urlPrefix, (item) => d.startsWith('url', item)),
  url: (d, p) => d.inTexts('url', p.url),
  oneLabel: (d, p) => d.contains('labels', p.oneLabel ?? ''),
  label: (d, p) => d.someText(p.label, (item) => d.contains('labels', item)),
  host: (d, p) => d.inTexts('host', p.host),
  path: (d, p) => d.inTexts('path', p.path),
  callerIp: (d, p) => d.inTexts('caller_ip', p.callerIp),
  flowKey: (d, p) => d.inTexts('flow_key', p.flowKey),
  onlyPaused: () => sql<boolean>`paused_at is not null`,
  heldBy: (d, p) => d.contains('pause', p.heldBy),
  notPaused: () => sql<boolean>`paused_at is null`,
  createdAfter: (_, p) => sql<boolean>`created_at > ${p.createdAfter}`,
  createdBefore: (_, p) => sql<boolean>`created_at < ${p.createdBefore}`,
} satisfies Record<string, Condition>

/** The conditions of a query; its text depends on nothing else. */
type Shape = readonly (keyof typeof CONDITIONS)[]

/** Row numbers as one JSON text, from `Dialect.listOf`. */
export interface Numbers {
  readonly seqs: string
}

/** Reads all row numbers as one value. */
export function* numbersOf<Params extends object>(
  numbers: Query<Params, Numbers>,
  params: Params,
): Transaction<number[]> {
  const { seqs } = yield* only(numbers, params)
  return JSON.parse(seqs)
}

/** A page that was read: the number of its runs, the last of them, and the matching ones. */
interface Page extends Numbers {
  readonly seen: number
  readonly last: number
}

/** A page is dense if its range of numbers is at most this many times its number of runs. */
const DENSE = 3

/**
 * Builds the query of a page. On SQLite it is one pass over the view, which has the columns itself. On PostgreSQL, a dense
 * page is one range of the table: that takes a third of the time of a look-up for each run, and reads at most `DENSE` times
 * as many rows. It is not a join, because PostgreSQL might read all runs for a join. `account_id || ''` keeps PostgreSQL
 * from using the index of the account, whose runs may be spread over the whole table.
 */
function pageOf({ db, p, d }: Building<MatchParams>, matches: RawBuilder<boolean>): Compilable<Page> {
  const open = db
    .selectFrom('open_runs')
    .where('account_id', '=', p.accountId)
    .where('seq', '>', p.after)
    .where('seq', '<=', p.bound)
    .orderBy('seq')
    .limit(p.scan)
  const seen = [sql<number>`count(*)`.as('seen'), sql<number>`coalesce(max(seq), 0)`.as('last')] as const
  if (d.name === 'sqlite') {
    const tested = open.select(['seq', sql<number | null>`case when ${matches} then seq end`.as('matching')])
    return db.selectFrom(tested.as('page')).select(seen).select(d.listOfKnown('matching').as('seqs'))
  }
  const inRange = db
    .selectFrom('runs')
    .select(d.listOf('seq').as('seqs'))
    .where('seq', '>', p.after)
    .where('seq', '<=', sql.ref<number>('page.last'))
    .where(sql<boolean>`account_id || '' = ${p.accountId} and state || '' = 'RUN_STARTED' and ${matches}`)
  const lookup = sql<number | null>`(select runs.seq from runs where runs.seq = open_runs.seq and ${matches})`
  const each = db
    .selectFrom(open.select(lookup.as('matching')).as('found'))
    .select(d.listOfKnown('matching').as('seqs'))
  const isDense = sql<boolean>`page.last - ${p.after} <= page.seen * ${sql.lit(DENSE)}`
  return db
    .selectFrom(db.selectFrom(open.select('seq').as('open')).select(seen).as('page'))
    .select(['seen', 'last', sql<string>`case when ${isDense} then ${inRange} else ${each} end`.as('seqs')])
}

/** Reads a page and tests its runs. */
const matching = queriesByShape<[Shape], MatchParams, Page>((building, shape) => {
  const tests = shape.map((condition) => CONDITIONS[condition](building.d, building.p))
  return pageOf(building, tests.length > 0 ? sql<boolean>`(${sql.join(tests, sql` and `)})` : sql<boolean>`(1 = 1)`)
})

const single = (list: readonly string[] | undefined): string | undefined => (list?.length === 1 ? list[0] : undefined)

function* readPage(args: SelectPageArgs): Transaction<Page> {
  // Labels are stored between bars, `|a|b|`, so searching for `|a|` matches whole labels.
  const label = args.filter.label?.map((text) => `|${text}|`)
  const filter = { ...args.filter, label, onePrefix: single(args.filter.urlPrefix), oneLabel: single(label) }
  const given = {
    ...filter,
    urlPrefix: filter.onePrefix === undefined ? filter.urlPrefix : undefined,
    label: filter.oneLabel === undefined ? label : undefined,
    onlyPaused: filter.paused === true ? true : undefined,
    notPaused: filter.paused === false ? true : undefined,
    heldBy: filter.paused === 'with-workflow' ? '"ofWorkflow":true' : undefined,
  } as const
  const names = Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]
  const shape = names.filter((name) => given[name] !== undefined)
  const { accountId, after, bound, scan } = args
  return yield* only(matching(shape), { ...given, accountId, after, bound, scan })
}

/**
 * Sorts numbers ascending. Most lists are sorted already; for the rest, `Float64Array` sorts without a comparator
 * function.
 */
export function ascending(seqs: number[]): number[] {
  const isSorted = seqs.every((seq, index) => index === 0 || seq >= (seqs[index - 1] ?? 0))
  return isSorted ? seqs : Array.from(Float64Array.from(seqs).sort())
}

/** Cuts ascending numbers into packed chunks. */
export function packChunks(seqs: readonly number[], chunkItems: number): PackedSeqs[] {
  const chunks: PackedSeqs[] = []
  for (let start = 0; start < seqs.length; start += chunkItems) {
    const chunk = seqs.slice(start, start + chunkItems)
    chunks.push({ items: chunk.length, seqs: packSeqs(chunk) })
  }
  return chunks
}

/** Selects the next page of matching active runs, oldest first, from one snapshot. */
export const selectPage = read(
  'bulk.selectPage',
  function* (args: SelectPageArgs): Transaction<SelectedPage> {
    const { seen, last, seqs } = yield* readPage(args)
    return { seqs: ascending(JSON.parse(seqs)).slice(0, args.most), next: seen < args.scan ? undefined : last }
  },
  { turn: 'background', isSingle: () => true },
)

/** A message found by id. */
export interface NamedMessage {
  readonly seq: number
  readonly message_id: string
  readonly state: MessageState
}

const namedMessages = query<{ accountId: string; kind: string; ids: readonly string[] }, NamedMessage>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'message_id', 'state'])
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('message_id', p.ids))
    .where('kind', '=', p.kind),
)

/** Finds the messages of an account by id, in no order, ended ones too. */
export const selectNamedMessages = read(
  'bulk.selectNamedMessages',
  function* (args: { accountId: string; kind: string; ids: readonly string[] }): Transaction<NamedMessage[]> {
    return yield* all(namedMessages, args)
  },
)

/** Arguments to find runs by id. */
export interface NamedArgs {
  readonly accountId: string
  readonly ids: readonly string[]
  /** The newest run that may be selected: `runs.seq`. */
  readonly bound: number
}

/** Runs found by id. */
export interface NamedRuns {
  /** Run numbers in no order, one for each id, so duplicates are possible. */
  readonly found: ArrayLike<number>
  /** Ids that match nothing, as given. */
  readonly absent: readonly string[]
}

/** The left join makes SQLite look up each id. With an inner join it would scan all runs of the account. */
const named = query<NamedArgs, { seqs: string }>(({ db, p, d }) =>
  db
    .selectFrom(d.textRows(p.ids))
    .leftJoin('runs', (join) =>
      join.onRef('run_id', '=', 'item.value').on('account_id', '=', p.accountId).on('seq', '<=', p.bound),
    )
    .select(d.listOf('seq').as('seqs')),
)
const absentIds = query<NamedArgs, { ids: string }>(({ db, p, d }) =>
  db
    .selectFrom(d.textRows(p.ids))
    .leftJoin('runs', (join) =>
      join.onRef('run_id', '=', 'item.value').on('account_id', '=', p.accountId).on('seq', '<=', p.bound),
    )
    .select(d.listOf('item.value').as('ids'))
    .where('seq', 'is', null),
)

function* findNamed(args: NamedArgs): Transaction<NamedRuns> {
  const seqs: (number | null)[] = JSON.parse((yield* only(named, args)).seqs)
  const found = seqs.filter((seq) => seq !== null)
  if (found.length === args.ids.length) return { found, absent: [] }
  const missing = new Set<string>(JSON.parse((yield* only(absentIds, args)).ids))
  return { found, absent: args.ids.filter((id) => missing.has(id)) }
}

/** Numbers cross to the other thread as one block of memory. */
const packed = (runs: NamedRuns): NamedRuns => ({ ...runs, found: Float64Array.from(runs.found) })

/** Finds runs of an account by id. Usually all are found and the second query is skipped. */
export const selectNamed = read('bulk.selectNamed', (args: NamedArgs) => findNamed(args), {
  turn: 'background',
  encoding: encodeResult(packed, (runs) => runs),
})

const activeAmong = query<{ seqs: readonly number[] }, Numbers>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(d.listOf('seq').as('seqs'))
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('RUN_STARTED')),
)

/** Which of these runs are active, ascending. */
export const selectActive = read(
  'bulk.selectActive',
  function* (args: { seqs: readonly number[] }): Transaction<number[]> {
    return ascending(yield* numbersOf(activeAmong, args))
  },
  { turn: 'background' },
)
