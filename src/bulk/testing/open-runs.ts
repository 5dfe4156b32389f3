import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'

/** For `describeOnEveryStore`: the threads of the store must load the operation of this file. */
export const OPEN_RUNS_MODULE = import.meta.url

const openRuns = query<object, { seq: number }>(({ db }) => db.selectFrom('open_runs').select('seq').orderBy('seq'))
const startedRuns = query<object, { seq: number }>(({ db }) =>
  db.selectFrom('runs').select('seq').where('state', '=', 'RUN_STARTED').orderBy('seq'),
)
/** Reads `runs.seq` of all rows of `open_runs` and of all active runs, which must be the same. */
export const openAndStarted = read('test.openRuns', function* (_: object): Transaction<{
  open: number[]
  started: number[]
}> {
  const seqs = (rows: { seq: number }[]) => rows.map(({ seq }) => seq)
  return { open: seqs(yield* all(openRuns, {})), started: seqs(yield* all(startedRuns, {})) }
})
