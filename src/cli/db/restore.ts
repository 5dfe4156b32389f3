import { restoreBackup } from '../../contract/databases/backups.js'
import { createDatabase, type DatabaseRecord } from '../../contract/databases/databases.js'
import { REGIONS } from '../../contract/databases/regions.js'
import type { Api } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { backupNamed } from './backups.js'
import { DATABASE, databaseNamed, replacement } from './find.js'

/** `homeport db restore`: brings a backup back, into its own database or a new one. */
export const restoreCommand = remote<{ asNew?: string }, [string, string | undefined]>({
  name: 'restore',
  summary: 'replace the data of a database by that of a backup, after a safety backup',
  args: [DATABASE, ['[backup]', 'id or name of the backup; default: the newest that is completed']],
  flags: (command) =>
    command.option('--as-new <name>', 'restore into a new database of this name and leave the old one as it is'),
  isDestructive: true,
  examples: ['homeport db restore shop before-migration', 'homeport db restore shop --as-new shop-copy'],
  run: async ({ api, show, say, confirm }, { asNew }, wanted, name) => {
    const from = await databaseNamed(api, wanted)
    const { backup_id, name: backup } = await backupNamed(api, from.database_id, name)
    if (asNew === undefined) await confirm(replacement(from, `the backup "${backup}" (${backup_id})`))
    say('restoring ...')
    const database_id = asNew === undefined ? from.database_id : await createLike(api, from, asNew)
    await api.call(restoreBackup, { params: { id: database_id }, body: { backup_id } })
    show({ database_id, backup_id }, () => `restored ${backup_id} into ${database_id}\n`)
  },
})

/** A new database in the same regions, on the account's default plan; its platform follows from the region. */
async function createLike(api: Api, like: DatabaseRecord, database_name: string): Promise<string> {
  const { primary_region, read_regions, eviction, tls } = like
  const { platform } = REGIONS[primary_region]
  const body = { database_name, platform, primary_region, read_regions, eviction, tls }
  return (await api.call(createDatabase, { body })).database_id
}
