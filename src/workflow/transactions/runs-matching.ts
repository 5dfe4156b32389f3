import { sql } from 'kysely'
import { isPending } from '../../queue/transactions/messages.js'
import { firstFitting, inOrderOf } from '../../queue/transactions/messages-sizes.js'
import { queriesByShape, query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import type { RunRow } from './runs-rows.js'
import { CONDITIONS, endAt, type Params, type RunLogArgs, type SearchEnd, type Shape, walkOf } from './runs-walk.js'

interface Sized {
  readonly seq: number
  readonly bytes: number
}

type Direction = 'asc' | 'desc'

/** Total size of columns. */
function bytesOf(...columns: readonly string[]) {
  const sizes = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`)
  return sql<number>`${sql.join(sizes, sql` + `)}`
}

const sumOf = (...columns: readonly string[]) => sql<number>`sum(${bytesOf(...columns)})`.as('bytes')

/** Bytes that the row of a run adds to a page. */
const OWN_BYTES = bytesOf('response', 'failure').as('bytes')

const matching = queriesByShape<[Direction, Shape], Params, Sized>(({ db, p, d }, direction, shape) => {
  let runs = db.selectFrom('runs').select(['seq', OWN_BYTES]).where('seq', '<', p.before)
  for (const condition of shape) runs = runs.where(CONDITIONS[condition](d, p))
  return runs.orderBy('seq', direction).limit(p.limit)
})

interface OfRuns {
  readonly seqs: readonly number[]
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

/** A page of runs. */
export interface MatchingRuns {
  /** As many as fit, but at least one if any match. */
  readonly runs: RunRow[]
  /** Whether others may follow. */
  readonly more: boolean
  readonly searchedTo?: SearchEnd
}

/** The runs of a page, newest first unless asked otherwise. */
export function* matchingRuns(args: RunLogArgs): Transaction<MatchingRuns> {
  const isFiltered = Object.keys(args.filter).length > 0
  const { shape, params, end } = yield* walkOf(args, isFiltered ? 'bounded' : 'all')
  const query = matching(args.direction ?? 'desc', shape)
  const found = yield* all(query, { ...params, limit: args.limit + 1 })
  const runs = yield* fittingRuns(found.slice(0, args.limit))
  const isCut = runs.length < found.length
  return {
    runs,
    more: isCut || end !== undefined,
    ...(!isCut && end !== undefined && { searchedTo: yield* endAt(args.accountId, end) }),
  }
}

const sizedRuns = query<OfRuns, Sized>(({ db, p, d }) =>
  db.selectFrom('runs').select(['seq', OWN_BYTES]).where(d.inNumbers('seq', p.seqs)),
)

/** Reads runs in this order: as many as fit into a page, but at least one. `more`: not all of them fit. */
export function* runsInOrder(seqs: readonly number[]): Transaction<MatchingRuns> {
  const found = inOrderOf(
    seqs.map((seq) => ({ seq })),
    yield* all(sizedRuns, { seqs }),
  )
  const runs = yield* fittingRuns(found)
  return { runs, more: runs.length < found.length }
}

/** The first of these runs that fit into a page, but at least one. */
function* fittingRuns(page: readonly Sized[]): Transaction<RunRow[]> {
  const fitting = page.length > 1 ? firstFitting(yield* withContents(page)) : page
  return inOrderOf(fitting, yield* all(rowsOf, { seqs: fitting.map(({ seq }) => seq) }))
}
