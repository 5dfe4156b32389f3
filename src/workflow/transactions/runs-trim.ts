import { sql } from 'kysely'
import { type BudgetResult, type BudgetStep, measureAgainst } from '../../queue/transactions/messages-retention.js'
import { all, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { removeRunsWithAll } from './runs-retention.js'

/**
 * Retention by size: the newest ended runs are kept, as many as fit, and older ones deleted. Sizes are those of the
 * contents; indexes and the free space of the database file come on top.
 */

/** What a row takes besides its texts and bytes. */
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
  + ${ofRows('run_attempts', 'part.headers', 'part.body')} + ${ofRows('run_remains', 'part.data')} end`

const newestBefore = query<{ before: number; limit: number }, { seq: number; bytes: number }>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', size.as('bytes')])
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .limit(p.limit),
)

/** Measures the next older runs before a number; those that go on take nothing. */
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
 * One step of a trim: deletes what has ended of the oldest runs after a number and up to another. Answers the number to
 * go on after, or `undefined` at the end.
 */
export const trimRuns = write(
  'runs.trim',
  function* (args: { after: number; upTo: number; limit: number }): Transaction<number | undefined> {
    const rows = yield* all(oldest, args)
    // A final state never changes, so what was read as ended may be deleted.
    const ended = rows.filter((row) => row.finished_at !== null).map((row) => row.seq)
    if (ended.length > 0) yield* removeRunsWithAll(ended)
    return rows.length === args.limit ? rows.at(-1)?.seq : undefined
  },
)
