import type { Selectable } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ImportsTable } from '../../store/schema/backups.js'
import { change, first, insertAll, type Transaction } from '../../store/statement.js'
import { dropImportOf, insertPending, lockForChange, type NewBackup, type Refusal } from './backups.js'
import type { DatabaseRow } from './database-row.js'
import { beginRestore } from './restores.js'

/** The last import of a database as it is stored. */
export type ImportRow = Selectable<ImportsTable>

/** Arguments of `begin`. */
export interface BeginArgs {
  readonly accountId: string
  /** The backup that the import fills. */
  readonly backup: NewBackup
  /** Where the data comes from, without credentials. */
  readonly source: string
  /** The node that makes it. Default: whichever is the home. */
  readonly home?: string
  readonly audit: NewAuditRow
}

/** (empty) becomes `restoring`. The import replaces the row of the last one, and inserts its pending backup. */
export const begin = write('imports.begin', function* (args: BeginArgs): Transaction<
  { kind: 'begun'; database: DatabaseRow } | Refusal
> {
  const { backup, source } = args
  const { database_id, backup_id, created_at: started_at } = backup
  const found = yield* lockForChange(database_id, args.accountId, args.home)
  if (found.kind !== 'free') return found
  yield* insertPending(backup)
  yield* beginRestore(database_id, backup_id, started_at)
  yield* change(dropImportOf, { databaseId: database_id })
  const nothingYet = { keys_read: 0, keys_total: null, bytes_read: 0, finished_at: null, failure: null }
  yield* insertAll('imports', [{ database_id, backup_id, source, state: 'reading', started_at, ...nothingYet }])
  yield* recordAudit(args.audit)
  return { kind: 'begun', database: found.database }
})

/** Progress of an import. */
export type Progress = Pick<ImportRow, 'state' | 'keys_read' | 'keys_total' | 'bytes_read' | 'finished_at' | 'failure'>

const setProgress = query<Progress & { backupId: string }>(({ db, p }) =>
  db
    .updateTable('imports')
    .set({
      state: p.state,
      keys_read: p.keys_read,
      keys_total: p.keys_total,
      bytes_read: p.bytes_read,
      finished_at: p.finished_at,
      failure: p.failure,
    })
    .where('backup_id', '=', p.backupId),
)

/** Stores the progress of an import. */
export const note = write(
  'imports.note',
  function* (args: { backupId: string; progress: Progress }): Transaction<void> {
    yield* change(setProgress, { backupId: args.backupId, ...args.progress })
  },
)

const ofDatabase = query<{ accountId: string; databaseId: string }, ImportRow>(({ db, p }) =>
  db
    .selectFrom('imports')
    .innerJoin('databases', 'databases.database_id', 'imports.database_id')
    .selectAll('imports')
    .where('imports.database_id', '=', p.databaseId)
    .where('databases.account_id', '=', p.accountId),
)

/** The last import of a database of the account. */
export const get = read('imports.get', function* (args: { accountId: string; databaseId: string }): Transaction<
  ImportRow | undefined
> {
  return yield* first(ofDatabase, args)
})
