import type { Selectable } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { PausedWorkflowsTable } from '../../store/schema/bulk.js'
import { all, change, first, only, type Transaction } from '../../store/statement.js'

/** The paused workflows of accounts. Each change writes its audit entry. */

/** A paused workflow. */
export type PausedRow = Selectable<PausedWorkflowsTable>

interface Named {
  readonly accountId: string
  readonly url: string
}

const everyone = query<object, PausedRow>(({ db }) => db.selectFrom('paused_workflows').selectAll())
const ofOne = query<{ accountId: string }, PausedRow>(({ db, p }) =>
  db.selectFrom('paused_workflows').selectAll().where('account_id', '=', p.accountId).orderBy('url'),
)
const named = query<Named, PausedRow>(({ db, p }) =>
  db.selectFrom('paused_workflows').selectAll().where('account_id', '=', p.accountId).where('url', '=', p.url),
)
const lock = query<Named, { paused_at: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('paused_workflows')
      .select('paused_at')
      .where('account_id', '=', p.accountId)
      .where('url', '=', p.url),
  ),
)
const countOf = query<{ accountId: string }, { count: number }>(({ db, p }) =>
  db
    .selectFrom('paused_workflows')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('account_id', '=', p.accountId),
)
const put = query<PausedRow>(({ db, p }) =>
  db
    .insertInto('paused_workflows')
    .values({ account_id: p.account_id, url: p.url, paused_at: p.paused_at, pause: p.pause })
    .onConflict((conflict) => conflict.columns(['account_id', 'url']).doNothing()),
)
const drop = query<Named>(({ db, p }) =>
  db.deleteFrom('paused_workflows').where('account_id', '=', p.accountId).where('url', '=', p.url),
)

/** The paused workflows of all accounts. */
export const allPaused = read('bulkPaused.all', (_: object): Transaction<PausedRow[]> => all(everyone, {}))

/** The paused workflows of an account, by URL. */
export const paused = read(
  'bulkPaused.ofAccount',
  (args: { readonly accountId: string }): Transaction<PausedRow[]> => all(ofOne, args),
)

/** A workflow to pause. */
export interface PauseArgs {
  readonly row: PausedRow
  /** Most paused workflows of an account. */
  readonly most: number
  readonly audit: NewAuditRow
}

/** Pauses a workflow unless it is paused already. @returns the row; `undefined` if the account has too many. */
export const pause = write('bulkPaused.pause', function* ({ row, most, audit }: PauseArgs): Transaction<
  PausedRow | undefined
> {
  const name = { accountId: row.account_id, url: row.url }
  // Repeats if another pause was inserted first, because that one may end before it is read.
  do {
    const found = yield* first(named, name)
    if (found) return found
    if ((yield* only(countOf, name)).count >= most) return undefined
  } while ((yield* change(put, row)) === 0)
  yield* recordAudit(audit)
  return row
})

/** Ends the pause of a workflow. @returns the deleted row; `undefined` if the workflow was not paused. */
export const resume = write('bulkPaused.resume', function* (args: Named & { readonly audit: NewAuditRow }): Transaction<
  PausedRow | undefined
> {
  const row = yield* first(named, args)
  if (!row || (yield* change(drop, args)) === 0) return undefined
  yield* recordAudit(args.audit)
  return row
})

/** Whether a workflow is paused. Locks the row, so a resume waits until the transaction has ended. */
export function* lockPaused(name: Named): Transaction<boolean> {
  return (yield* first(lock, name)) !== undefined
}
