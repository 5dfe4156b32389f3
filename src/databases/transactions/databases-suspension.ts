import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { change, first, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabaseRow } from './databases.js'

const rowToChange = query<{ databaseId: string }, DatabaseRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('databases').selectAll().where('database_id', '=', p.databaseId)),
)
const setState = query<{ databaseId: string; state: DatabaseRow['state'] }>(({ db, p }) =>
  db.updateTable('databases').set({ state: p.state }).where('database_id', '=', p.databaseId),
)

/**
 * What a move into or out of `suspended` asks for; the entry of the audit log goes to the account that owns the
 * database then.
 */
export interface SuspensionArgs {
  readonly databaseId: string
  readonly audit: Omit<NewAuditRow, 'account_id'>
}

function* move(args: SuspensionArgs, state: 'suspended' | 'active'): Transaction<DatabaseRow | undefined> {
  const row = yield* first(rowToChange, { databaseId: args.databaseId })
  if (row?.modifying_state !== '' || (row.state === 'suspended') === (state === 'suspended')) return undefined
  yield* change(setState, { databaseId: args.databaseId, state })
  yield* recordAudit({ ...args.audit, account_id: row.account_id })
  return { ...row, state }
}

/**
 * `active` or `passive` becomes `suspended`. Answers the row as it is then; `undefined` when the database is suspended
 * already, is being changed, or is gone.
 */
export const suspend = write('databases.suspend', (args: SuspensionArgs) => move(args, 'suspended'))

/** `suspended` becomes `active`; answers as `suspend` does. */
export const resume = write('databases.resume', (args: SuspensionArgs) => move(args, 'active'))
