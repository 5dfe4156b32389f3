import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, insertAll, type Transaction } from '../../store/statement.js'
import { isOfHome, type OfHome } from './homes.js'

/** A backup by its ids. */
export interface BackupIds {
  readonly database_id: string
  readonly backup_id: string
}

const dropRows = query<{ ids: readonly string[] }>(({ db, p, d }) =>
  db.deleteFrom('backups').where(d.inTexts('backup_id', p.ids)),
)
const deleteObjects = query<{ ids: readonly string[]; at: number }>(({ db, p, d }) =>
  db.updateTable('backup_objects').set({ state: 'deleting', changed_at: p.at }).where(d.inTexts('backup_id', p.ids)),
)

const forgetRows = query<{ ids: readonly string[] }>(({ db, p, d }) =>
  db.deleteFrom('deleted_backups').where(d.inTexts('backup_id', p.ids)),
)

/** Forgets deleted backups, because their files are deleted or belong to backups again. */
export function* forgetDeleted(ids: readonly string[]): Transaction<void> {
  yield* change(forgetRows, { ids })
}

/** Deletes the rows of backups. Their files and objects are deleted afterwards; the store knows them until then. */
export function* dropBackups(gone: readonly BackupIds[], at: number): Transaction<void> {
  if (gone.length === 0) return
  const ids = gone.map(({ backup_id }) => backup_id)
  yield* change(dropRows, { ids })
  yield* change(deleteObjects, { ids, at })
  // A backup may be deleted already, and its file not yet: then it has a row already.
  yield* forgetDeleted(ids)
  yield* insertAll(
    'deleted_backups',
    gone.map(({ database_id, backup_id }) => ({ database_id, backup_id, deleted_at: at })),
  )
}

/** Deletes backups past their retention. */
export const expire = write(
  'backupDeletions.expire',
  function* ({ gone, at }: { gone: readonly BackupIds[]; at: number }): Transaction<void> {
    yield* dropBackups(gone, at)
  },
)

const leftQuery = query<OfHome, BackupIds>(({ db, p }) =>
  db
    .selectFrom('deleted_backups')
    .select(['database_id', 'backup_id'])
    .where((eb) => isOfHome(eb, p)),
)

/** Deleted backups of the databases of a node whose files may still be there. */
export const left = read('backupDeletions.left', function* (args: OfHome): Transaction<BackupIds[]> {
  return yield* all(leftQuery, args)
})

/** Forgets deleted backups whose files are deleted. */
export const forget = write('backupDeletions.forget', function* (args: { ids: readonly string[] }): Transaction<void> {
  yield* forgetDeleted(args.ids)
})

const forgetRowsOf = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('deleted_backups').where('database_id', '=', p.databaseId),
)

/** Forgets the deleted backups of a database whose files are deleted together. */
export function* forgetDeletedOf(databaseId: string): Transaction<void> {
  yield* change(forgetRowsOf, { databaseId })
}
