import { restoreBackup } from '../../contract/databases/backups.js'
import { createDatabase, type DatabaseRecord, deleteDatabase } from '../../contract/databases/databases.js'
import { REGIONS } from '../../contract/databases/regions.js'
import { isError } from '../../contract/errors/errors.js'
import type { Api } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { backupNamed } from './backups.js'
import { DATABASE, databaseNamed, replacement } from './find.js'

/** `homeport db restore`: restores a backup into its own database or a new one. */
export const restoreCommand = remote<{ asNew?: string }, [string, string | undefined]>({
  name: 'restore',
  summary: 'replace the data of a database with a backup, after a safety backup',
  args: [
    DATABASE,
    ['[backup]', 'id or name of the backup (default: the newest completed one, without safety backups)'],
  ],
  flags: (command) =>
    command.option('--as-new <name>', 'restore into a new database with this name; the old one is not changed'),
  isDestructive: true,
  examples: ['homeport db restore shop before-migration', 'homeport db restore shop --as-new shop-copy'],
  run: async ({ api, show, say, confirm }, { asNew }, wanted, name) => {
    const from = await databaseNamed(api, wanted)
    const { backup_id, name: backup } = await backupNamed(api, from.database_id, name)
    if (asNew === undefined) await confirm(replacement(from, `the backup "${backup}" (${backup_id})`))
    say('restoring ...')
    const database_id = asNew === undefined ? from.database_id : await createLike(api, from, asNew)
    const restoring = api.call(restoreBackup, { params: { id: database_id }, body: { backup_id } })
    await (asNew === undefined ? restoring : deletedIfRefused(restoring, { api, say, database_id }))
    show({ database_id, backup_id }, () => `restored the backup "${backup}" into ${asNew ?? from.database_name}\n`)
  },
})

/** Creates a database in the same regions, on the default plan of the account. */
async function createLike(api: Api, like: DatabaseRecord, database_name: string): Promise<string> {
  const { primary_region, read_regions, eviction, tls } = like
  const { platform } = REGIONS[primary_region]
  const body = { database_name, platform, primary_region, read_regions, eviction, tls }
  return (await api.call(createDatabase, { body })).database_id
}

interface NewDatabase {
  readonly api: Api
  readonly say: (text: string) => void
  readonly database_id: string
}

/** Deletes the new database if the server refuses the restore. Without an answer, the data may be restored: it stays. */
async function deletedIfRefused(restoring: Promise<unknown>, { api, say, database_id }: NewDatabase): Promise<void> {
  try {
    await restoring
  } catch (error) {
    const deleting = isError(error, 'server_refused')
      ? api.call(deleteDatabase, { params: { id: database_id }, body: {} })
      : Promise.reject(error)
    await deleting.catch(() => say(`the new database ${database_id} stays, and may be empty`))
    throw error
  }
}
