/** The row of one database: many transactions begin by reading or locking it. */
import type { Selectable } from 'kysely'
import { query } from '../../store/query.js'
import type { DatabasesTable } from '../../store/schema/databases.js'

/** A database as it is stored. */
export type DatabaseRow = Selectable<DatabasesTable>

/** Reads a database of any account. */
export const rowOf = query<{ databaseId: string }, DatabaseRow>(({ db, p }) =>
  db.selectFrom('databases').selectAll().where('database_id', '=', p.databaseId),
)

/** Like `rowOf`, and locks the row until the commit. */
export const rowToChange = query<{ databaseId: string }, DatabaseRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('databases').selectAll().where('database_id', '=', p.databaseId)),
)

/** Sets the `modifying_state` of a database, whatever it was. */
export const setModifyingState = query<{ databaseId: string; modifyingState: DatabaseRow['modifying_state'] }>(
  ({ db, p }) =>
    db.updateTable('databases').set({ modifying_state: p.modifyingState }).where('database_id', '=', p.databaseId),
)

/** How many databases an account has, in whatever state. */
export const countOfAccount = query<{ accountId: string }, { held: number }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select(({ fn }) => fn.countAll<number>().as('held'))
    .where('account_id', '=', p.accountId),
)
