import { type Static, Type } from 'typebox'
import type { Credentials } from '../accounts/index.js'
import type { Config } from '../config/index.js'
import { listDatabases } from '../contract/databases/databases.js'
import type { DatabaseAccess } from './client-environment.js'
import { pickDatabase } from './db/find.js'
import { localApiUrl } from './local-api-url.js'
import { Api, parsed } from './remote/api.js'

/** The part of a database record that is needed to reach it; everything else is let pass. */
const ReachableSchema = Type.Object({
  database_id: Type.String(),
  database_name: Type.String(),
  endpoint: Type.String(),
  port: Type.Integer(),
  tls: Type.Boolean(),
  password: Type.String(),
  rest_url: Type.String(),
  rest_token: Type.String(),
})

/**
 * Asks the running server how to reach one database, by its id or its name.
 * @throws HomeportError when the server does not answer, or no database or more than one fits.
 */
export async function findDatabase(config: Config, credentials: Credentials, wanted: string): Promise<DatabaseAccess> {
  const { email, apiKey } = credentials
  const api = new Api({ origin: config.dataDir, profile: { apiUrl: localApiUrl(config), email, apiKey } })
  const { value } = await api.send(listDatabases)
  return accessOf(pickDatabase(parsed(Type.Array(ReachableSchema), value), wanted))
}

/** How clients reach a database whose record was read with its credentials. */
export function accessOf(
  database: Omit<Static<typeof ReachableSchema>, 'password' | 'rest_token'> & {
    readonly password?: string
    readonly rest_token?: string
  },
): DatabaseAccess {
  const { tls, password = '', endpoint, port, rest_url: restUrl, rest_token: restToken = '' } = database
  const redisUrl = `${tls ? 'rediss' : 'redis'}://default:${encodeURIComponent(password)}@${endpoint}:${port}`
  return { restUrl, restToken, redisUrl }
}
