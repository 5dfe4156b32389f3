/** What tests ask of a management server about one of its databases. */
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { ask } from './checks.js'
import type { ApiAnswer, ManagementServer } from './management.js'

/** Runs a command on the primary of a database as its owner. */
export const command = (server: ManagementServer, record: DatabaseRecord, ...words: string[]) =>
  ask(server, record.database_id, 'us-east-1', ['default', record.password ?? ''], words)

/** The record of a database as it is now. */
export const recordOf = async (server: ManagementServer, { database_id }: DatabaseRecord): Promise<DatabaseRecord> =>
  (await server.api('GET', `/v2/redis/database/${database_id}`)).body

/** Makes a backup. */
export const backUp = (server: ManagementServer, record: DatabaseRecord, name = 'nightly'): Promise<ApiAnswer> =>
  server.api('POST', `/v2/redis/create-backup/${record.database_id}`, { name })

/** Restores a backup. */
export const restore = (
  server: ManagementServer,
  { database_id }: DatabaseRecord,
  backup_id: string | undefined,
): Promise<ApiAnswer> => server.api('POST', `/v2/redis/restore-backup/${database_id}`, { backup_id })
