import { deletePendingOfGroups } from '../../queue/transactions/messages.js'
import { all, change, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { dropRemains } from './runs-remains.js'

/** Where a sweep stands and what it deletes. */
export interface SweepRunsArgs {
  /** `runs.seq` of the last run that the step before has looked at; 0 at first. */
  readonly after: number
  readonly finishedBefore: number
  readonly limit: number
}

interface Seqs {
  seqs: readonly number[]
}

/** The next runs by number, whatever their state: a sweep walks over all of them in steps of one size. */
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
const removeRuns = query<Seqs>(({ db, p, d }) => db.deleteFrom('runs').where(d.inNumbers('seq', p.seqs)))

/**
 * One step of a sweep: deletes the runs that ended long enough ago, of the next ones by number, with all that hangs on
 * them. Answers the number to go on after, or `undefined` when the rest is too young.
 */
export const sweepRuns = write('runs.sweep', function* (args: SweepRunsArgs): Transaction<number | undefined> {
  const { after, finishedBefore, limit } = args
  const rows = yield* all(nextRuns, { after, limit })
  // A final state never changes, so what was read as ended may be deleted.
  const seqs = rows.filter((row) => row.finished_at !== null && row.finished_at < finishedBefore).map((row) => row.seq)
  if (seqs.length > 0) yield* removeRunsWithAll(seqs)
  const last = rows.at(-1)
  return last && rows.length === limit && last.created_at < finishedBefore ? last.seq : undefined
})

/** Deletes ended runs with all that hangs on them, as part of another transaction. */
export function* removeRunsWithAll(seqs: readonly number[]): Transaction<void> {
  yield* deletePendingOfGroups(seqs)
  yield* dropRemains(seqs)
  for (const remove of [removeSteps, removeEvents, removeWebhooks, removeAttempts, removeRuns]) {
    yield* change(remove, { seqs })
  }
}
