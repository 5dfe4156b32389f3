import { type RawBuilder, sql } from 'kysely'
import { isPending } from '../../queue/transactions/messages.js'
import { firstFitting, inOrderOf } from '../../queue/transactions/messages-sizes.js'
import type { Dialect } from '../../store/dialect.js'
import { all, first, type Transaction } from '../../store/operation.js'
import { type Query, query } from '../../store/query.js'
import type { RunState } from '../../store/schema/runs.js'
import type { RunRow } from './runs-rows.js'

/** Filter of runs. All given fields must match; of a list, any value. Ranges are inclusive. */
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
  /** From creation to the end, or to now. Milliseconds. */
  readonly minDurationMs?: number
}

/** A run by id and creation time, Unix milliseconds. */
export interface RunIdentity {
  readonly runId: string
  readonly createdAt: number
}

/** Parameters of a page of run logs, newest runs first. */
export interface RunLogArgs {
  readonly accountId: string
  readonly filter: RunLogFilter
  /** Only runs with a smaller `runs.seq`. */
  readonly before: number
  readonly limit: number
  /** Unix milliseconds; only messages due by then have a position under their flow-control key. Needed with `minDurationMs`. */
  readonly now?: number
}

/** Filters by id are resolved to `seqs` first. */
type Params = Omit<RunLogFilter, 'runIds' | 'identities' | 'messageId'> &
  RunLogArgs & { readonly seqs?: readonly number[]; readonly active?: true; readonly least: number }
type Condition = (d: Dialect, p: Required<Params>) => RawBuilder<boolean>

/** The error of a failure is the member `text` of its record. */
function mentionedIn(d: Dialect, text: string): RawBuilder<boolean> {
  const columns = ['run_id', 'url', 'labels'].map((column) => d.mentions(column, text))
  const error = sql`(failure is not null and ${d.mentions(d.member('failure', 'text'), text)})`
  return sql<boolean>`(${sql.join([...columns, error], sql` or `)})`
}

const CONDITIONS = {
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

type Shape = readonly (keyof typeof CONDITIONS)[]

interface Sized {
  readonly seq: number
  readonly bytes: number
}

const byShape = new Map<string, Query<Params, Sized>>()

/** The query for a combination of conditions; each is built once. */
function matching(shape: Shape): Query<Params, Sized> {
  const known = byShape.get(shape.join()) ?? buildMatching(shape)
  byShape.set(shape.join(), known)
  return known
}

/** Total size of columns. */
function bytesOf(...columns: readonly string[]) {
  const sizes = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`)
  return sql<number>`${sql.join(sizes, sql` + `)}`
}

const sumOf = (...columns: readonly string[]) => sql<number>`sum(${bytesOf(...columns)})`.as('bytes')

function buildMatching(shape: Shape): Query<Params, Sized> {
  return query<Params, Sized>(({ db, p, d }) => {
    let runs = db
      .selectFrom('runs')
      .select(['seq', bytesOf('response', 'failure').as('bytes')])
      .where('seq', '<', p.before)
    for (const condition of shape) runs = runs.where(CONDITIONS[condition](d, p))
    return runs.orderBy('seq', 'desc').limit(p.limit)
  })
}

interface OfRuns {
  readonly seqs: readonly number[]
}

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

const rowsOf = query<OfRuns, RunRow>(({ db, p, d }) =>
  db.selectFrom('runs').selectAll().where(d.inNumbers('seq', p.seqs)),
)
const sizesOfSteps = query<OfRuns, Sized>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .select(['run_seq as seq', sumOf('body', 'meta')])
    .where(d.inNumbers('run_seq', p.seqs))
    .groupBy('run_seq'),
)
const sizesOfAttempts = query<OfRuns, Sized>(({ db, p, d }) =>
  db
    .selectFrom('run_attempts')
    .select(['run_seq as seq', sumOf('body', 'headers')])
    .where(d.inNumbers('run_seq', p.seqs))
    .groupBy('run_seq'),
)
const sizesOfPending = query<OfRuns, Sized>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .innerJoin('message_attempts as a', 'a.message_seq', 'messages.seq')
    .select([sql<number>`group_key`.as('seq'), sumOf('a.body', 'a.headers')])
    .where(d.inNumbers('group_key', p.seqs))
    .where(isPending)
    .groupBy('group_key'),
)

/** Adds the sizes of everything that the logs of runs show. */
function* withContents(runs: readonly Sized[]): Transaction<Sized[]> {
  const seqs = runs.map(({ seq }) => seq)
  const totals = new Map(runs.map(({ seq, bytes }) => [seq, bytes]))
  for (const sizes of [sizesOfSteps, sizesOfAttempts, sizesOfPending]) {
    for (const { seq, bytes } of yield* all(sizes, { seqs })) totals.set(seq, (totals.get(seq) ?? 0) + bytes)
  }
  return runs.map(({ seq }) => ({ seq, bytes: totals.get(seq) ?? 0 }))
}

/** Runs that one read looks at, however few of them match: other reads must not wait for more. */
const MOST_SEARCHED = 5_000

type Ahead = { accountId: string; before: number; least: number }

const aheadIn = (table: 'runs' | 'open_runs') =>
  query<Ahead, { seq: number }>(({ db, p }) =>
    db
      .selectFrom(table)
      .select('seq')
      .where('account_id', '=', p.accountId)
      .where('seq', '<', p.before)
      .where('seq', '>=', p.least)
      .orderBy('seq', 'desc')
      .offset(sql.lit(MOST_SEARCHED - 1))
      .limit(1),
  )

const AHEAD = { all: aheadIn('runs'), active: aheadIn('open_runs') }

const newestUpTo = query<{ accountId: string; upTo: number }, { seq: number; created_at: number }>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'created_at'])
    .where('account_id', '=', p.accountId)
    .where('seq', '<=', p.upTo)
    .orderBy('seq', 'desc')
    .limit(1),
)

/**
 * Runs are numbered in the order of their creation, so a time is found by halving. The clock may have been set back by this
 * much: then runs with larger numbers are older by that.
 */
const CLOCK_MARGIN_MS = 600_000

/** The largest number up to which all runs were created by this time: about twenty look-ups. */
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

/** Between which numbers the runs are that were created in time, with those of the margin. */
function* numbersInTime({
  accountId,
  before,
  filter: { from, to },
}: RunLogArgs): Transaction<Omit<Ahead, 'accountId'>> {
  const end = to === undefined ? before : (yield* numberAt(accountId, to + CLOCK_MARGIN_MS)) + 1
  const least = from === undefined ? 0 : (yield* numberAt(accountId, from - CLOCK_MARGIN_MS)) + 1
  return { before: Math.min(before, end), least }
}

/** The last run that a search has looked at, where it has not looked at all. */
export interface SearchEnd {
  /** `runs.seq`. */
  readonly seq: number
  /** When it was created, Unix milliseconds. */
  readonly at: number
}

/** A page of runs. */
export interface MatchingRuns {
  /** As many as fit, but at least one if any match. */
  readonly runs: RunRow[]
  /** Whether others may follow. */
  readonly more: boolean
  readonly searchedTo?: SearchEnd
}

function* endAt(accountId: string, seq: number): Transaction<SearchEnd> {
  const run = yield* first(newestUpTo, { accountId, upTo: seq })
  return { seq, at: run?.created_at ?? 0 }
}

const isActive = (states: RunLogFilter['states'] = []): boolean =>
  states.length > 0 && states.every((state) => state === 'RUN_STARTED')

/**
 * The runs of a page. Runs that are named by ids are looked up. Otherwise the runs of the account are walked, newest first: as
 * many as other reads may wait for.
 */
export function* matchingRuns(args: RunLogArgs): Transaction<MatchingRuns> {
  const { accountId } = args
  const { runIds: _, identities: __, messageId: ___, labels, states, ...filter } = args.filter
  const seqs = yield* namedSeqs(args)
  const active = isActive(states) && seqs === undefined
  const range = seqs ? { before: args.before, least: 0 } : yield* numbersInTime(args)
  const isWalk = seqs === undefined && Object.keys(args.filter).length > 0
  const ahead = isWalk ? (yield* first(AHEAD[active ? 'active' : 'all'], { accountId, ...range }))?.seq : undefined
  const given = {
    ...filter,
    ...(labels && { labels: labels.map((label) => `|${label}|`) }),
    ...(active ? { active } : states && { states }),
    ...(seqs && { seqs }),
    least: ahead ?? range.least,
  }
  // Runs found by id belong to the account already. The condition again would make the database scan all its runs.
  const asked: Partial<Params> = seqs ? given : { ...given, accountId }
  const names = Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]
  const shape = names.filter((name) => asked[name] !== undefined)
  const found = yield* all(matching(shape), { ...args, ...given, before: range.before, limit: args.limit + 1 })
  const page = found.slice(0, args.limit)
  const fitting = page.length > 1 ? firstFitting(yield* withContents(page)) : page
  const rows = yield* all(rowsOf, { seqs: fitting.map(({ seq }) => seq) })
  const isCut = fitting.length < found.length
  return {
    runs: inOrderOf(fitting, rows),
    more: isCut || ahead !== undefined,
    ...(!isCut && ahead !== undefined && { searchedTo: yield* endAt(accountId, ahead) }),
  }
}
