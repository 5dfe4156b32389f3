import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { type BackupRecord, BackupSchema } from '../../contract/backups.js'
import { failed, type ManagementApi } from './api.js'

/** The part of a database record that these commands need. */
const DatabaseSchema = Type.Object({ database_id: Type.String(), database_name: Type.String() })
type Database = Static<typeof DatabaseSchema>

/**
 * Finds a database by its id or its name.
 * @throws HomeportError `cli_failed` when none or more than one fits.
 */
export async function databaseNamed(api: ManagementApi, wanted: string): Promise<Database> {
  const all = parsed(Type.Array(DatabaseSchema), await api.call('GET', '/v2/redis/databases?credentials=hide'))
  const byId = all.filter((database) => database.database_id === wanted)
  const found = byId.length > 0 ? byId : all.filter((database) => database.database_name === wanted)
  const [only, ...others] = found
  if (only === undefined) throw failed(`There is no database with the id or name "${wanted}".`)
  if (others.length === 0) return only
  const ids = found.map((database) => database.database_id).join(', ')
  throw failed(`${found.length} databases have the name "${wanted}". Use the id of one of them: ${ids}.`)
}

/** The backups of a database, newest first. */
export async function backupsOf(api: ManagementApi, databaseId: string): Promise<BackupRecord[]> {
  return parsed(Type.Array(BackupSchema), await api.call('GET', `/v2/redis/list-backup/${databaseId}`))
}

/** Makes a backup and answers its record. */
export async function makeBackup(api: ManagementApi, databaseId: string, name: string): Promise<BackupRecord> {
  const before = new Set((await backupsOf(api, databaseId)).map((backup) => backup.backup_id))
  await api.call('POST', `/v2/redis/create-backup/${databaseId}`, { name })
  const made = (await backupsOf(api, databaseId)).find((one) => !before.has(one.backup_id) && one.name === name)
  if (!made) throw failed('The backup was made, but somebody has deleted it already.')
  return made
}

/** Holds an answer of the server to its schema. */
export function parsed<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (Value.Check(schema, value)) return value
  throw failed('The server is of another version: its answer is not as expected.')
}
