import { sql } from 'kysely'
import { query } from '../../store/query.js'
import type { RunContact, RunState } from '../../store/schema/runs.js'
import { askAll, atOnce, type Transaction } from '../../store/statement.js'
import type { ListEnd } from './runs-append.js'
import type { NewRun } from './runs-rows.js'

/** A locked run, with the columns that a submission needs. */
export interface LockedRun {
  seq: number
  run_id: string
  state: RunState
  contact: RunContact
  created_at: number
  /** Set if this transaction starts the run: its first element is not in the store yet. */
  firstMessageId?: string
}

/** Runs of one account. */
interface RunsOf {
  readonly accountId: string
  readonly runIds: readonly string[]
}

const lockRun = query<{ accountId: string; runId: string }, LockedRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'state', 'contact', 'created_at'])
      .where('account_id', '=', p.accountId)
      .where('run_id', '=', p.runId),
  ),
)
/**
 * All transactions lock the newest run first, so that transactions with several common runs cannot deadlock. `seq + 0` keeps
 * SQLite from walking all runs of the account in that order, which it would do to avoid a sort of these runs.
 */
const lockRuns = query<RunsOf, LockedRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'state', 'contact', 'created_at'])
      .where('account_id', '=', p.accountId)
      .where(d.inTexts('run_id', p.runIds))
      .orderBy(sql`seq + 0`, 'desc'),
  ),
)

const lastPosition = sql<number | null>`(select max(position) from steps where run_seq = runs.seq)`.as('last')
const firstMeta = sql<string | null>`(select meta from steps where run_seq = runs.seq and position = 0)`.as('meta')

const listOf = query<{ accountId: string; runId: string }, ListEnd>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq as run_seq', 'paused_at', lastPosition, firstMeta])
    .where('account_id', '=', p.accountId)
    .where('run_id', '=', p.runId),
)
const listsOf = query<RunsOf, ListEnd>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq as run_seq', 'paused_at', lastPosition, firstMeta])
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('run_id', p.runIds)),
)

/** Locked runs by id, and the ends of their lists. */
export interface LockedRuns {
  readonly runs: Map<string, LockedRun>
  readonly lists: readonly ListEnd[]
}

/** Locks the runs that exist. Reads their lists after that, so the lists are complete. */
export function* lockedRuns({ accountId, runIds }: RunsOf): Transaction<LockedRuns> {
  const [runId, ...others] = runIds
  // Nearly always there is one run, and the query for one run is cheaper than that for a list.
  const [rows, lists] =
    runId === undefined || others.length > 0
      ? yield* atOnce([askAll(lockRuns, { accountId, runIds }), askAll(listsOf, { accountId, runIds })])
      : yield* atOnce([askAll(lockRun, { accountId, runId }), askAll(listOf, { accountId, runId })])
  return { runs: new Map(rows.map((row) => [row.run_id, row])), lists }
}

/** A run as it is inserted. */
export type RunToInsert = NewRun & {
  account_id: string
  created_at: number
  parent_seq: number | null
  parent: string | null
}

/** Inserts a run; returns no row if its id is taken. */
export const insertRun = query<RunToInsert, { seq: number }>(({ db, p }) =>
  db
    .insertInto('runs')
    .values(runRow(p))
    .onConflict((conflict) => conflict.columns(['account_id', 'run_id']).doNothing())
    .returning('seq'),
)

/** The columns of a new run. */
export const runRow = (run: RunToInsert) => ({
  run_id: run.run_id,
  account_id: run.account_id,
  url: run.url,
  host: run.host,
  path: run.path,
  state: 'RUN_STARTED' as const,
  contact: run.contact,
  created_at: run.created_at,
  labels: run.labels,
  flow_key: run.flow_key,
  caller_ip: run.caller_ip,
  parent_seq: run.parent_seq,
  parent: run.parent,
})
