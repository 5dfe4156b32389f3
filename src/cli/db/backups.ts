import type { BackupRecord } from '../../contract/databases/backups.js'
import {
  createBackup,
  deleteBackup,
  disableDailyBackup,
  enableDailyBackup,
  listBackups,
} from '../../contract/databases/backups.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Api } from '../remote/api.js'

/** The backups of a database, newest first. */
export const backupsOf = (api: Api, id: string): Promise<BackupRecord[]> => api.call(listBackups, { params: { id } })

/** Makes a backup and answers its record. */
export async function makeBackup(api: Api, id: string, name: string): Promise<BackupRecord> {
  const before = new Set((await backupsOf(api, id)).map((backup) => backup.backup_id))
  await api.call(createBackup, { params: { id }, body: { name } })
  const made = (await backupsOf(api, id)).find((one) => !before.has(one.backup_id) && one.name === name)
  if (made) return made
  throw new HomeportError('cli_failed', { problem: 'The backup was made, but somebody has deleted it already.' })
}

/** Deletes a backup and its file. */
export async function dropBackup(api: Api, { database_id: id, backup_id }: BackupRecord): Promise<void> {
  await api.call(deleteBackup, { params: { id, backup_id }, body: {} })
}

/**
 * Finds a backup by id or name; without either, the newest that is completed.
 * @throws HomeportError `cli_not_found`.
 */
export async function backupNamed(api: Api, databaseId: string, wanted: string | undefined): Promise<BackupRecord> {
  const completed = (await backupsOf(api, databaseId)).filter((backup) => backup.state === 'completed')
  const fits = completed.find(({ backup_id, name }) => wanted === undefined || wanted === backup_id || wanted === name)
  if (fits) return fits
  const which = wanted === undefined ? 'no completed backup' : `no completed backup "${wanted}"`
  const problem = `The database has ${which}. Make one with \`homeport db backup\`.`
  throw new HomeportError('cli_not_found', { problem })
}

/** Switches the daily backup. */
export const setDaily = (api: Api, id: string, isOn: boolean): Promise<'OK'> =>
  api.call(isOn ? enableDailyBackup : disableDailyBackup, { params: { id }, body: {} })
