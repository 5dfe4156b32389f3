import { sql } from 'kysely'
import { deletePendingOfGroups } from '../../queue/transactions/messages.js'
import {
  type BudgetResult,
  type BudgetStep,
  isYoung,
  measureAgainst,
} from '../../queue/transactions/messages-retention.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, type Transaction } from '../../store/statement.js'
import { dropRemains } from './runs-remains.js'

/** One batch of a sweep. */
export interface SweepRunsArgs {
  /** `runs.seq` of the last run of the previous batch; 0 at first. */
  readonly after: number
  readonly finishedBefore: number
  /** Unix milliseconds. */
  readonly now: number
  readonly limit: number
}

interface Seqs {
  seqs: readonly number[]
}

/** The next runs by `seq`, in any state: a sweep scans all runs in batches of one size. */
const nextRuns = query<
  { after: number; limit: number },
  { seq: number; created_at: number; finished_at: number | null }
>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'created_at', 'finished_at'])
    .where('seq', '>', p.after)
    .orderBy('seq')
    .limit(p.limit),
)
const removeSteps = query<Seqs>(({ db, p, d }) => db.deleteFrom('steps').where(d.inNumbers('run_seq', p.seqs)))
const removeEvents = query<Seqs>(({ db, p, d }) => db.deleteFrom('run_events').where(d.inNumbers('run_seq', p.seqs)))
const removeWebhooks = query<Seqs>(({ db, p, d }) =>
  db.deleteFrom('run_webhooks').where(d.inNumbers('run_seq', p.seqs)),
)
const removeAttempts = query<Seqs>(({ db, p, d }) =>
  db.deleteFrom('run_attempts').where(d.inNumbers('run_seq', p.seqs)),
)
const removeReturns = query<Seqs>(({ db, p, d }) => db.deleteFrom('run_returns').where(d.inNumbers('run_seq', p.seqs)))
const removeRuns = query<Seqs>(({ db, p, d }) => db.deleteFrom('runs').where(d.inNumbers('seq', p.seqs)))

/** Such a run is kept, because its id and its webhooks lead to the run that has resumed it. */
const isResumed = sql<boolean>`exists (select 1 from runs as next where next.seq = runs.resumed_as)`

const endedAmong = query<Seqs & { finishedBefore: number }, { seq: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select('seq')
      .where(d.inNumbers('seq', p.seqs))
      .where('finished_at', '<', p.finishedBefore)
      .where(sql<boolean>`not ${isResumed}`)
      .orderBy('seq', 'desc'),
  ),
)

/** Locks ended runs that are about to be deleted. Leaves out runs that were brought back since the read, or resumed. */
function* stillEnded(seqs: readonly number[], finishedBefore: number): Transaction<number[]> {
  if (seqs.length === 0) return []
  return (yield* all(endedAmong, { seqs, finishedBefore })).map(({ seq }) => seq)
}

/**
 * One batch of a sweep: reads the next runs, and deletes the runs that ended before `finishedBefore`, with all their data.
 * @returns the `seq` to continue after; `undefined` when the rest is too young.
 */
export const sweepRuns = write('runs.sweep', function* (args: SweepRunsArgs): Transaction<number | undefined> {
  const { after, finishedBefore, limit } = args
  const rows = yield* all(nextRuns, { after, limit })
  const old = rows.filter((row) => row.finished_at !== null && row.finished_at < finishedBefore).map((row) => row.seq)
  const seqs = yield* stillEnded(old, finishedBefore)
  if (seqs.length > 0) yield* removeRunsWithAll(seqs)
  const last = rows.at(-1)
  return last && rows.length === limit && !isYoung(last.created_at, args) ? last.seq : undefined
})

/** Deletes runs with all their data, as part of another transaction. */
export function* removeRunsWithAll(seqs: readonly number[]): Transaction<void> {
  yield* deletePendingOfGroups(seqs)
  yield* dropRemains(seqs)
  for (const remove of [removeSteps, removeEvents, removeWebhooks, removeAttempts, removeReturns, removeRuns]) {
    yield* change(remove, { seqs })
  }
}

/**
 * Retention by size: keeps the newest ended runs, as many as fit, and deletes older ones. Counts the contents only;
 * indexes and free space of the database file come on top.
 */

/** Overhead of a row. */
const ROW_BYTES = 300

const bytesOf = (...columns: readonly string[]) =>
  sql.join(
    columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`),
    sql` + `,
  )

const ofRows = (table: string, ...columns: readonly string[]) => sql`(
  select coalesce(sum(${sql.lit(ROW_BYTES)} + ${bytesOf(...columns)}), 0)
  from ${sql.table(table)} as part where part.run_seq = runs.seq)`

const size = sql<number>`case when finished_at is null then 0 else ${sql.lit(ROW_BYTES)}
  + ${bytesOf('url', 'response', 'failure', 'parent')} + ${ofRows('steps', 'part.body', 'part.meta')}
  + ${ofRows('run_attempts', 'part.headers', 'part.body')} + ${ofRows('run_remains', 'part.data')}
  + ${ofRows('run_events', 'part.data')} end`

const newestBefore = query<{ before: number; limit: number }, { seq: number; bytes: number }>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', size.as('bytes')])
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .limit(p.limit),
)

/** Measures the next older runs before a `seq`; active runs count as 0. */
export const measureRuns = read('runs.measure', function* (step: BudgetStep): Transaction<BudgetResult> {
  const { before, limit } = step
  return measureAgainst(yield* all(newestBefore, { before, limit }), step)
})

const oldest = query<{ after: number; upTo: number; limit: number }, { seq: number; finished_at: number | null }>(
  ({ db, p }) =>
    db
      .selectFrom('runs')
      .select(['seq', 'finished_at'])
      .where('seq', '>', p.after)
      .where('seq', '<=', p.upTo)
      .orderBy('seq')
      .limit(p.limit),
)

/**
 * One batch of a trim: deletes the ended runs among the oldest with `after < seq <= upTo`.
 * @returns the `seq` to continue after; `undefined` at the end.
 */
export const trimRuns = write(
  'runs.trim',
  function* (args: { after: number; upTo: number; limit: number }): Transaction<number | undefined> {
    const rows = yield* all(oldest, args)
    const old = rows.filter((row) => row.finished_at !== null).map((row) => row.seq)
    const ended = yield* stillEnded(old, Number.MAX_SAFE_INTEGER)
    if (ended.length > 0) yield* removeRunsWithAll(ended)
    return rows.length === args.limit ? rows.at(-1)?.seq : undefined
  },
)
