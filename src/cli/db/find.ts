import { suggestion } from '../../config/index.js'
import { type DatabaseRecord, listDatabases } from '../../contract/databases/databases.js'
import { misused, notFound } from '../errors.js'
import type { Api } from '../remote/api.js'

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
 * The id of a database of any account: an id as it is, a name of an own one.
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
  const byId = databases.filter((database) => database.database_id === wanted)
  const found = byId.length > 0 ? byId : databases.filter((database) => database.database_name === wanted)
  const [only, ...others] = found
  if (only === undefined) throw notFound(missing(databases, wanted))
  if (others.length === 0) return only
  const ids = found.map((database) => database.database_id).join(', ')
  const problem = `${found.length} databases have the name "${wanted}". Use the id of one of them: ${ids}.`
  throw misused(problem)
}

/** The question before all data of a database is replaced. `by` is the new data. */
export const replacement = ({ database_name, database_id }: Named, by: string): string =>
  `Replace all data of the database "${database_name}" (${database_id}) with ${by}? A safety backup is created first.`

const MOST_NAMED = 10

function missing(databases: readonly Named[], wanted: string): string {
  const start = `There is no database with the id or name "${wanted}"`
  if (databases.length === 0) return `${start}. There are no databases yet.`
  if (databases.length > MOST_NAMED) {
    const names = databases.map(({ database_name }) => database_name)
    return `${start}${suggestion(wanted, names) || '.'} See: homeport db list.`
  }
  const names = databases.map(({ database_name, database_id }) => `${database_name} (${database_id})`).join(', ')
  return `${start}. There are: ${names}.`
}
