import type { BackupRecord } from '../../contract/databases/backups.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import * as backupObjects from '../transactions/backup-objects.js'
import * as backups from '../transactions/backups.js'
import { type BackupPlace, renderBackup } from './answers.js'
import type { BackupDeps } from './deps.js'
import type { Uploads } from './stored/uploads.js'

type BackupRow = backups.BackupRow

/** The backups of a database of the caller's account, newest first. @param uploads absent without object storage. */
export async function listBackups(
  deps: Pick<BackupDeps, 'store' | 'files' | 'emailOf'>,
  uploads: Uploads | undefined,
  { accountId }: Caller,
  databaseId: string,
): Promise<BackupRecord[]> {
  const { store, files, emailOf } = deps
  const rows = await store.run(backups.list, { accountId, databaseId })
  if (!rows) throw new HomeportError('database_not_found', { databaseId })
  const objects = await store.run(backupObjects.ofDatabase, { databaseId })
  const byId = new Map(objects.map((object) => [object.backup_id, object]))
  const email = emailOf(accountId)
  // If the server has no object storage and never had one, the records do not say where the backups are.
  if (!uploads && byId.size === 0) return rows.map((row) => renderBackup(row, email))
  const placeOf = async (row: BackupRow): Promise<BackupPlace> => ({
    isOnDisk: await files.has(row),
    object: byId.get(row.backup_id) ?? planned(row, uploads),
  })
  return Promise.all(rows.map(async (row) => renderBackup(row, email, await placeOf(row))))
}

function planned(row: BackupRow, uploads: Uploads | undefined): BackupPlace['object'] {
  const goes = row.state === 'completed' && (row.kind === 'manual' || row.kind === 'daily')
  return goes && uploads ? { ...uploads.planned(row), changed_at: row.created_at } : undefined
}
