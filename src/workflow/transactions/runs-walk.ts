import { type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../../store/dialect.js'
import { query } from '../../store/query.js'
import type { RunState } from '../../store/schema/runs.js'
import { all, first, type Transaction } from '../../store/statement.js'
import type { RunRow } from './runs-rows.js'

/** Filter of runs. All given fields must match; a list matches if any value does. Ranges are inclusive. */
export interface RunLogFilter {
  readonly runIds?: readonly string[]
  /** Runs by id and creation time: an id can be reused once the log of its run is deleted. */
  readonly identities?: readonly RunIdentity[]
  readonly states?: readonly RunState[]
  /** Only paused runs. A run that ended while it was paused is not paused. */
  readonly paused?: true
  /** Only runs that are not paused. */
  readonly unpaused?: true
  readonly urls?: readonly string[]
  readonly labels?: readonly string[]
  readonly hosts?: readonly string[]
  readonly paths?: readonly string[]
  readonly callerIps?: readonly string[]
  readonly flowKeys?: readonly string[]
  /** A message that delivers, or has delivered, an element of the run. */
  readonly messageId?: string
  /** In small letters (`searchText`): the id, URL, labels or the error of the failure contain it. */
  readonly search?: string
  /** Creation, Unix milliseconds. */
  readonly from?: number
  readonly to?: number
  /** End, Unix milliseconds. Runs that have not ended do not match. */
  readonly endedFrom?: number
  readonly endedTo?: number
  /** Minimum time from creation to the end, or to now. Milliseconds. */
  readonly minDurationMs?: number
}

/** A run by id and creation time, Unix milliseconds. */
export interface RunIdentity {
  readonly runId: string
  readonly createdAt: number
}

/** Selects runs and their order. */
export interface RunLogArgs {
  readonly accountId: string
  readonly filter: RunLogFilter
  /** Only runs with a smaller `runs.seq`. */
  readonly before: number
  /** Only runs with this `runs.seq` or a larger one. Default: all. */
  readonly least?: number
  /** `asc`: oldest first. Default: newest first. */
  readonly direction?: 'asc' | 'desc'
  readonly limit: number
  /** Unix milliseconds. Messages due by then have a position under their flow-control key. Needed with `minDurationMs`. */
  readonly now?: number
  /** Bytes of elements of a page; for tests. */
  readonly maxBytes?: number
}

/** The parameters of the conditions. Filters by id are resolved to `seqs` first. */
export type Params = Omit<RunLogFilter, 'runIds' | 'identities' | 'messageId'> &
  Omit<RunLogArgs, 'least' | 'maxBytes'> & {
    readonly seqs?: readonly number[]
    readonly active?: true
    readonly least: number
  }
type Condition = (d: Dialect, p: Required<Params>) => RawBuilder<boolean>

/** Whether a run contains a text. The error of a failure is the member `text` of its record. */
function mentionedIn(d: Dialect, text: string): RawBuilder<boolean> {
  const columns = ['run_id', 'url', 'labels'].map((column) => d.mentions(column, text))
  const error = sql`(failure is not null and ${d.mentions(d.member('failure', 'text'), text)})`
  return sql<boolean>`(${sql.join([...columns, error], sql` or `)})`
}

/** The conditions of filters, by the parameter that each needs. */
export const CONDITIONS = {
  accountId: (_, p) => sql<boolean>`account_id = ${p.accountId}`,
  seqs: (d, p) => d.inNumbers('seq', p.seqs),
  active: (_, p) => sql<boolean>`seq in (select seq from open_runs
    where account_id = ${p.accountId} and seq < ${p.before} and seq >= ${p.least})`,
  states: (d, p) => d.inTexts('state', p.states),
  // A cancel leaves `paused_at` in place, so that an undo brings the run back paused.
  paused: () => sql<boolean>`(paused_at is not null and state = 'RUN_STARTED')`,
  unpaused: () => sql<boolean>`(paused_at is null or state <> 'RUN_STARTED')`,
  urls: (d, p) => d.inTexts('url', p.urls),
  labels: (d, p) => d.someText(p.labels, (item) => d.contains('labels', item)),
  hosts: (d, p) => d.inTexts('host', p.hosts),
  paths: (d, p) => d.inTexts('path', p.paths),
  callerIps: (d, p) => d.inTexts('caller_ip', p.callerIps),
  flowKeys: (d, p) => d.inTexts('flow_key', p.flowKeys),
  search: (d, p) => mentionedIn(d, p.search),
  least: (_, p) => sql<boolean>`seq >= ${p.least}`,
  from: (_, p) => sql<boolean>`created_at >= ${p.from}`,
  to: (_, p) => sql<boolean>`created_at <= ${p.to}`,
  endedFrom: (_, p) => sql<boolean>`finished_at >= ${p.endedFrom}`,
  endedTo: (_, p) => sql<boolean>`finished_at <= ${p.endedTo}`,
  minDurationMs: (_, p) => sql<boolean>`coalesce(finished_at, ${p.now}) - created_at >= ${p.minDurationMs}`,
} satisfies Record<string, Condition>

/** A combination of conditions. The query of each combination is built once. */
export type Shape = readonly (keyof typeof CONDITIONS)[]

type NamedRun = Pick<RunRow, 'seq' | 'run_id' | 'created_at'>

const runsOfIds = query<{ accountId: string; runIds: readonly string[] }, NamedRun>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id', 'created_at'])
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('run_id', p.runIds)),
)
const seqsOfMessage = query<{ accountId: string; messageId: string }, { seq: number }>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .innerJoin('runs', 'runs.seq', 'steps.run_seq')
    .select('runs.seq')
    .where('steps.message_id', '=', p.messageId)
    .where(d.alsoIs('runs.account_id', p.accountId)),
)

/** `runs.seq` of the runs that match all filters by id; `undefined` if there is no such filter. */
function* namedSeqs({ accountId, filter }: RunLogArgs): Transaction<number[] | undefined> {
  const { runIds, identities, messageId } = filter
  const matches: number[][] = []
  if (runIds) matches.push((yield* all(runsOfIds, { accountId, runIds })).map(({ seq }) => seq))
  if (identities) matches.push(yield* seqsOfIdentities(accountId, identities))
  if (messageId !== undefined) matches.push((yield* all(seqsOfMessage, { accountId, messageId })).map(({ seq }) => seq))
  const [first, ...others] = matches
  return first?.filter((seq) => others.every((match) => match.includes(seq)))
}

function* seqsOfIdentities(accountId: string, runs: readonly RunIdentity[]): Transaction<number[]> {
  const named = yield* all(runsOfIds, { accountId, runIds: runs.map(({ runId }) => runId) })
  const isMatch = ({ run_id, created_at }: NamedRun) =>
    runs.some(({ runId, createdAt }) => runId === run_id && createdAt === created_at)
  return named.filter(isMatch).map(({ seq }) => seq)
}

/** Runs that one read examines, even if few of them match, so that other reads do not wait long. */
export const MAX_SEARCHED = 5_000

type Ahead = { accountId: string; before: number; least: number }

const aheadIn = (table: 'runs' | 'open_runs', direction: 'asc' | 'desc') =>
  query<Ahead, { seq: number }>(({ db, p }) =>
    db
      .selectFrom(table)
      .select('seq')
      .where('account_id', '=', p.accountId)
      .where('seq', '<', p.before)
      .where('seq', '>=', p.least)
      .orderBy('seq', direction)
      .offset(sql.lit(MAX_SEARCHED - 1))
      .limit(1),
  )

const AHEAD = {
  desc: { all: aheadIn('runs', 'desc'), active: aheadIn('open_runs', 'desc') },
  asc: { all: aheadIn('runs', 'asc'), active: aheadIn('open_runs', 'asc') },
}

/** The newest run of an account up to a number. */
export const newestUpTo = query<{ accountId: string; upTo: number }, { seq: number; created_at: number }>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'created_at'])
    .where('account_id', '=', p.accountId)
    .where('seq', '<=', p.upTo)
    .orderBy('seq', 'desc')
    .limit(1),
)

/**
 * Margin of the binary search for a time. Runs are numbered in the order of their creation. But the clock may have been set
 * back by this much, so that a run with a larger number has an earlier time.
 */
const CLOCK_MARGIN_MS = 600_000

/** Finds the largest number up to which all runs were created by this time: a binary search of about twenty lookups. */
function* numberAt(accountId: string, at: number): Transaction<number> {
  const newest = yield* first(newestUpTo, { accountId, upTo: Number.MAX_SAFE_INTEGER })
  let [low, high] = [0, newest?.seq ?? 0]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const run = yield* first(newestUpTo, { accountId, upTo: middle })
    if (!run || run.created_at <= at) low = middle
    else high = run.seq - 1
  }
  return low
}

/** The range of numbers of the runs that were created in the time range of the filter, with the margin. */
function* numbersInTime({
  accountId,
  before,
  least = 0,
  filter: { from, to },
}: RunLogArgs): Transaction<Omit<Ahead, 'accountId'>> {
  const end = to === undefined ? before : (yield* numberAt(accountId, to + CLOCK_MARGIN_MS)) + 1
  const begin = from === undefined ? least : (yield* numberAt(accountId, from - CLOCK_MARGIN_MS)) + 1
  return { before: Math.min(before, end), least: Math.max(least, begin) }
}

/** The last run that a search has examined, if runs remain. */
export interface SearchEnd {
  /** `runs.seq`. */
  readonly seq: number
  /** When it was created, Unix milliseconds. */
  readonly at: number
}

/** The end of a search, with the time when its last run was created. */
export function* endAt(accountId: string, seq: number): Transaction<SearchEnd> {
  const run = yield* first(newestUpTo, { accountId, upTo: seq })
  return { seq, at: run?.created_at ?? 0 }
}

const isActive = (states: RunLogFilter['states'] = []): boolean =>
  states.length > 0 && states.every((state) => state === 'RUN_STARTED')

/** The conditions and parameters that find matching runs. */
export interface Walk {
  readonly shape: Shape
  readonly params: Params
  /** The number of the last run that this read examines, if others remain. */
  readonly end: number | undefined
}

/**
 * Plans how to find matching runs. Looks up runs that are named by ids. Otherwise walks the runs of the account.
 * @param reach `bounded`: at most `MAX_SEARCHED` runs. `all`: to the end; only if each run matches.
 */
export function* walkOf(args: RunLogArgs, reach: 'all' | 'bounded'): Transaction<Walk> {
  const { accountId, direction = 'desc' } = args
  const { runIds: _, identities: __, messageId: ___, labels, states, ...filter } = args.filter
  const seqs = yield* namedSeqs(args)
  const active = isActive(states) && seqs === undefined
  const { before, least } = seqs ? { least: 0, ...args } : yield* numbersInTime(args)
  const ahead = AHEAD[direction][active ? 'active' : 'all']
  const isBounded = seqs === undefined && reach === 'bounded'
  const end = isBounded ? (yield* first(ahead, { accountId, before, least }))?.seq : undefined
  const given = {
    ...filter,
    ...(labels && { labels: labels.map((label) => `|${label}|`) }),
    ...(active ? { active } : states && { states }),
    ...(seqs && { seqs }),
    ...(direction === 'asc'
      ? { least, before: end === undefined ? before : end + 1 }
      : { least: end ?? least, before }),
  }
  // Runs found by id belong to the account. Another condition on the account would make the database scan all its runs.
  const asked: Partial<Params> = seqs ? given : { ...given, accountId }
  const names = Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]
  return { shape: names.filter((name) => asked[name] !== undefined), params: { ...args, ...given }, end }
}
