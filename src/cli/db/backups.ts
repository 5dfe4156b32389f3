import {
  type BackupRecord,
  createBackup,
  deleteBackup,
  disableDailyBackup,
  enableDailyBackup,
  listBackups,
} from '../../contract/databases/backups.js'
import { adoptStoredBackup, listStoredBackups } from '../../contract/databases/stored-backups.js'
import { failedWith, notFound } from '../errors.js'
import type { Api } from '../remote/api.js'
import { group, remote } from '../remote/remote.js'
import { oneOf } from '../remote/values.js'
import { bytes, counted } from '../terminal/figures.js'
import { DATABASE, databaseNamed } from './find.js'
import { backupsTable, storedTable } from './view.js'

/** The backups of a database, newest first. */
const backupsOf = (api: Api, id: string): Promise<BackupRecord[]> => api.call(listBackups, { params: { id } })

/** Creates a backup and returns its record. */
export async function makeBackup(api: Api, id: string, name: string): Promise<BackupRecord> {
  const before = new Set((await backupsOf(api, id)).map((backup) => backup.backup_id))
  await api.call(createBackup, { params: { id }, body: { name } })
  const made = (await backupsOf(api, id)).find((one) => !before.has(one.backup_id) && one.name === name)
  if (made) return made
  throw failedWith('The backup was created, but has been deleted meanwhile.')
}

/** Deletes a backup and its file. */
export async function dropBackup(api: Api, { database_id: id, backup_id }: BackupRecord): Promise<void> {
  await api.call(deleteBackup, { params: { id, backup_id }, body: {} })
}

/**
 * Finds a completed backup by id or name; without either, the newest one that is not a safety backup. Each restore creates a
 * safety backup of the previous data, so a repeated restore would otherwise undo the first one.
 * @throws HomeportError `cli_not_found`.
 */
export async function backupNamed(api: Api, databaseId: string, wanted: string | undefined): Promise<BackupRecord> {
  const completed = (await backupsOf(api, databaseId)).filter((backup) => backup.state === 'completed')
  const fits = completed.find(({ backup_id, name, internal_backup_tag: tag }) =>
    wanted === undefined ? tag !== 'safety' : wanted === backup_id || wanted === name,
  )
  if (fits) return fits
  const which = wanted === undefined ? 'no completed backup' : `no completed backup "${wanted}"`
  const problem =
    wanted === undefined && completed.length > 0
      ? 'The database has only safety backups: name one of `homeport db backups list`.'
      : `The database has ${which}. Create one with \`homeport db backup\`.`
  throw notFound(problem)
}

/** Enables or disables daily backups. */
const setDaily = (api: Api, id: string, isOn: boolean): Promise<'OK'> =>
  api.call(isOn ? enableDailyBackup : disableDailyBackup, { params: { id }, body: {} })

/** `homeport db backup`: creates a backup of a database and waits until it is verified. */
export const backupCommand = remote<{ name: string }>({
  name: 'backup',
  summary: 'create a backup of a database, and wait until it is verified',
  args: [DATABASE],
  flags: (command) => command.option('--name <name>', 'name of the backup', 'backup'),
  examples: ['homeport db backup shop --name before-migration'],
  run: async ({ api, show, say }, { name }, wanted) => {
    const { database_id } = await databaseNamed(api, wanted)
    say('creating and verifying the backup ...')
    const backup = await makeBackup(api, database_id, name)
    show(backup, () => `${backup.backup_id}  ${counted(backup.key_count, 'key')}, ${bytes(backup.backup_size)}\n`)
  },
})

const listBackupsCommand = remote({
  name: 'list',
  summary: 'list the backups of a database, newest first',
  args: [DATABASE],
  examples: ['homeport db backups list shop'],
  run: async ({ api, io, show }, _, wanted) => {
    const backups = await backupsOf(api, (await databaseNamed(api, wanted)).database_id)
    show(backups, () => backupsTable(io, backups))
  },
})

const deleteBackupCommand = remote<object, [string, string]>({
  name: 'delete',
  summary: 'delete a backup and its file',
  args: [DATABASE, ['<backup>', 'id or name of the backup']],
  isDestructive: true,
  examples: ['homeport db backups delete shop before-migration'],
  run: async ({ api, show, confirm }, _, wanted, name) => {
    const backup = await backupNamed(api, (await databaseNamed(api, wanted)).database_id, name)
    await confirm(`Delete the backup "${backup.name}" (${backup.backup_id})? This cannot be undone.`)
    await dropBackup(api, backup)
    show(backup, () => `deleted ${backup.backup_id}\n`)
  },
})

const dailyCommand = remote<object, [string, 'on' | 'off']>({
  name: 'daily',
  summary: 'enable or disable daily backups of a database',
  args: [DATABASE, ['<on|off>', 'on or off', oneOf(['on', 'off'])]],
  examples: ['homeport db backups daily shop on'],
  run: async ({ api, show }, _, wanted, word) => {
    const { database_id, database_name } = await databaseNamed(api, wanted)
    const answer = await setDaily(api, database_id, word === 'on')
    show(answer, () => `daily backups of ${database_name} are ${word}\n`)
  },
})

const storedCommand = remote<{ database?: string }>({
  name: 'stored',
  summary: 'list the backups in object storage, including those of other servers and of deleted databases',
  flags: (command) => command.option('--database <id>', 'only the backups of this database'),
  examples: ['homeport db backups stored'],
  run: async ({ api, io, show }, { database }) => {
    const query = database === undefined ? {} : { database_id: database }
    const found = await api.call(listStoredBackups, { query })
    show(found, () => storedTable(io, found))
  },
})

const fetchCommand = remote<{ into: string; name?: string }>({
  name: 'fetch',
  summary: 'copy a backup from object storage to a database, after loading it once to verify it',
  args: [['<object>', 'database id and backup id, from `homeport db backups stored`']],
  flags: (command) =>
    command
      .requiredOption('--into <database>', 'name or id of the database that gets the backup')
      .option('--name <name>', 'name of the backup'),
  examples: ['homeport db backups fetch 3f2a9c1e/bak_1b2c --into shop'],
  run: async ({ api, show, say }, { into, name }, object) => {
    const [database_id = '', backup_id = ''] = object.split('/')
    const { database_id: id } = await databaseNamed(api, into)
    say('downloading and verifying the backup ...')
    const body = { database_id, backup_id, ...(name !== undefined && { name }) }
    const made = await api.call(adoptStoredBackup, { params: { id }, body })
    show(made, () => `${made.backup_id}: restore it with homeport db restore ${into} ${made.backup_id}\n`)
  },
})

/** `homeport db backups`. */
export const backupsCommand = group('backups', 'list and delete backups, enable daily backups', [
  listBackupsCommand,
  deleteBackupCommand,
  storedCommand,
  fetchCommand,
  dailyCommand,
])
