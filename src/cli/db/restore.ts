import { Command } from 'commander'
import { Type } from 'typebox'
import { PRIMARY_REGIONS, REGIONS } from '../../contract/regions.js'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { failed, type ManagementApi, managementApi } from './api.js'
import { backupsOf, databaseNamed, parsed } from './records.js'

/** What a new database takes over from the one whose backup it gets. */
const ShapeSchema = Type.Object({
  database_name: Type.String(),
  primary_region: Type.Enum([...PRIMARY_REGIONS]),
  read_regions: Type.Array(Type.String()),
  eviction: Type.Boolean(),
  tls: Type.Boolean(),
})
const CreatedSchema = Type.Object({ database_id: Type.String() })

/** `homeport db restore`: brings a backup back, into its own database or a new one. */
export function restoreCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('restore')
    .description('replace the data of a database by that of a backup, after a safety backup')
    .argument('<database>', 'name or id of the database that the backup was made of')
    .argument('[backup]', 'id or name of the backup; default: the newest that is completed')
    .option('--as-new <name>', 'restore into a new database of this name and leave the old one as it is')
    .option('--json', 'print one JSON object', false)
  return addConfigFlags(command).action(async (wanted: string, backup: string | undefined) => {
    const { asNew, json } = command.opts<{ asNew?: string; json: boolean }>()
    const api = await managementApi(configOf(command))
    const { database_id: from } = await databaseNamed(api, wanted)
    const backup_id = await backupNamed(api, from, backup)
    const database_id = asNew === undefined ? from : await createLike(api, from, asNew)
    await api.call('POST', `/v2/redis/restore-backup/${database_id}`, { backup_id })
    const text = `restored ${backup_id} into ${database_id}`
    io.out(`${json ? JSON.stringify({ database_id, backup_id }) : text}\n`)
    end(DONE)
  })
}

async function backupNamed(api: ManagementApi, databaseId: string, wanted: string | undefined): Promise<string> {
  const completed = (await backupsOf(api, databaseId)).filter((backup) => backup.state === 'completed')
  const fits = completed.find(({ backup_id, name }) => wanted === undefined || wanted === backup_id || wanted === name)
  if (fits) return fits.backup_id
  const which = wanted === undefined ? 'no completed backup' : `no completed backup "${wanted}"`
  throw failed(`The database has ${which}. Make one with \`homeport db backup\`.`)
}

/** A new database in the same regions, on the account's default plan; its platform follows from the region. */
async function createLike(api: ManagementApi, databaseId: string, name: string): Promise<string> {
  const record = await api.call('GET', `/v2/redis/database/${databaseId}?credentials=hide`)
  const { primary_region, read_regions, eviction, tls } = parsed(ShapeSchema, record)
  const { platform } = REGIONS[primary_region]
  const body = { database_name: name, platform, primary_region, read_regions, eviction, tls }
  return parsed(CreatedSchema, await api.call('POST', '/v2/redis/database', body)).database_id
}
