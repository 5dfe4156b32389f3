import { type DatabaseRecord, listDatabases } from '../../contract/databases/databases.js'
import type { Api } from '../remote/api.js'
import { pickNamed } from '../remote/pick.js'

/** The argument for a database. */
export const DATABASE = ['<database>', 'id or unique name of the database'] as const

/**
 * Finds a database by its id or name, without its credentials.
 * @throws HomeportError `cli_not_found`, or `cli_misused` when several have the name.
 */
export async function databaseNamed(api: Api, wanted: string): Promise<DatabaseRecord> {
  return pickDatabase(await api.call(listDatabases, { query: { credentials: 'hide' } }), wanted)
}

/** The argument of the operator's commands. */
export const ANY_DATABASE = 'id of a database, or the unique name of one of your own'

/** The form of an id of a database. */
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/**
 * The id of a database of any account. An id is returned unchanged; a name must belong to a database of the own account.
 * @throws HomeportError `cli_not_found`, or `cli_misused` when several have the name.
 */
export async function anyDatabaseId(api: Api, wanted: string): Promise<string> {
  return ID.test(wanted) ? wanted : (await databaseNamed(api, wanted)).database_id
}

/** The fields that identify a database. */
interface Named {
  readonly database_id: string
  readonly database_name: string
}

/** Selects the database with this id or name. An id takes precedence. */
export function pickDatabase<Record extends Named>(databases: readonly Record[], wanted: string): Record {
  const named = databases.map((database) => ({ id: database.database_id, name: database.database_name, database }))
  return pickNamed(named, wanted, { item: 'database', list: 'db list' }).database
}

/** The question before all data of a database is replaced. `by` is the new data. */
export const replacement = ({ database_name, database_id }: Named, by: string): string =>
  `Replace all data of the database "${database_name}" (${database_id}) with ${by}? A safety backup is created first.`
