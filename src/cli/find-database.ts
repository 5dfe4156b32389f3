import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Credentials } from '../accounts/index.js'
import type { Config } from '../config/index.js'
import { HomeportError } from '../contract/errors.js'
import type { DatabaseAccess } from './client-environment.js'
import { localApiUrl } from './local-api-url.js'

/** The part of a database record that is needed to reach it; everything else is let pass. */
const DatabaseSchema = Type.Object({
  database_id: Type.String(),
  database_name: Type.String(),
  endpoint: Type.String(),
  port: Type.Integer(),
  tls: Type.Boolean(),
  password: Type.String(),
  rest_url: Type.String(),
  rest_token: Type.String(),
})
type Database = Static<typeof DatabaseSchema>

/**
 * Asks the running server how to reach one database, by its id or its name.
 * @throws HomeportError `cli_failed` when the server does not answer, or no database or more than one fits.
 */
export async function findDatabase(config: Config, credentials: Credentials, wanted: string): Promise<DatabaseAccess> {
  const databases = await listDatabases(config, credentials)
  const byId = databases.filter((database) => database.database_id === wanted)
  const found = byId.length > 0 ? byId : databases.filter((database) => database.database_name === wanted)
  const [only, ...others] = found
  if (only === undefined) throw failed(`There is no database with the id or name "${wanted}". ${namesOf(databases)}`)
  if (others.length === 0) return accessOf(only)
  const ids = found.map((database) => database.database_id).join(', ')
  throw failed(`${found.length} databases have the name "${wanted}". Use the id of one of them: ${ids}.`)
}

function accessOf(database: Database): DatabaseAccess {
  const scheme = database.tls ? 'rediss' : 'redis'
  const password = encodeURIComponent(database.password)
  return {
    restUrl: database.rest_url,
    restToken: database.rest_token,
    redisUrl: `${scheme}://default:${password}@${database.endpoint}:${database.port}`,
  }
}

async function listDatabases(config: Config, credentials: Credentials): Promise<Database[]> {
  const url = `${localApiUrl(config)}/v2/redis/databases`
  const basic = Buffer.from(`${credentials.email}:${credentials.apiKey}`).toString('base64')
  const response = await fetch(url, { headers: { authorization: `Basic ${basic}` } }).catch((cause: unknown) => {
    throw failed(`The server does not answer at ${url}. Start it first: npm start.`, cause)
  })
  const body: unknown = await response.json().catch(() => undefined)
  if (response.ok && Value.Check(Type.Array(DatabaseSchema), body)) return body
  throw failed(`The server at ${url} answered ${response.status}: ${JSON.stringify(body)}.`)
}

function namesOf(databases: readonly Database[]): string {
  if (databases.length === 0) return 'There are no databases yet.'
  return `There are: ${databases.map(({ database_name, database_id }) => `${database_name} (${database_id})`).join(', ')}.`
}

const failed = (problem: string, cause?: unknown) => new HomeportError('cli_failed', { problem }, { cause })
