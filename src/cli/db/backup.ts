import { group } from '../remote/group.js'
import { remote } from '../remote/remote.js'
import { oneOf } from '../remote/values.js'
import { counted } from '../terminal/figures.js'
import { backupNamed, backupsOf, dropBackup, makeBackup, setDaily } from './backups.js'
import { DATABASE, databaseNamed } from './find.js'
import { backupsTable } from './view.js'

/** `homeport db backup`: makes a backup of a database and waits until it is checked. */
export const backupCommand = remote<{ name: string }>({
  name: 'backup',
  summary: 'make a backup of a database; answers when it is checked',
  args: [DATABASE],
  flags: (command) => command.option('--name <name>', 'name of the backup', 'backup'),
  examples: ['homeport db backup shop --name before-migration'],
  run: async ({ api, show, say }, { name }, wanted) => {
    const { database_id } = await databaseNamed(api, wanted)
    say('taking and checking the backup ...')
    const backup = await makeBackup(api, database_id, name)
    show(backup, () => `${backup.backup_id}  ${counted(backup.key_count, 'key')}, ${backup.backup_size} bytes\n`)
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
  summary: 'delete a backup and its file, for good',
  args: [DATABASE, ['<backup>', 'id or name of the backup']],
  isDestructive: true,
  examples: ['homeport db backups delete shop before-migration'],
  run: async ({ api, show, confirm }, _, wanted, name) => {
    const backup = await backupNamed(api, (await databaseNamed(api, wanted)).database_id, name)
    await confirm(`Delete the backup "${backup.name}" (${backup.backup_id})? There is no way back.`)
    await dropBackup(api, backup)
    show(backup, () => `deleted ${backup.backup_id}\n`)
  },
})

const dailyCommand = remote<object, [string, 'on' | 'off']>({
  name: 'daily',
  summary: 'switch the daily backup of a database on or off',
  args: [DATABASE, ['<on|off>', 'what it is to be', oneOf(['on', 'off'])]],
  examples: ['homeport db backups daily shop on'],
  run: async ({ api, show }, _, wanted, word) => {
    const { database_id, database_name } = await databaseNamed(api, wanted)
    const answer = await setDaily(api, database_id, word === 'on')
    show(answer, () => `daily backups of ${database_name} are ${word}\n`)
  },
})

/** `homeport db backups`: what there is of backups. */
export const backupsCommand = group('backups', 'list and delete backups, switch daily ones', [
  listBackupsCommand,
  deleteBackupCommand,
  dailyCommand,
])
