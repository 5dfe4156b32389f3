import { Command } from 'commander'
import { Type } from 'typebox'
import { credentialsPath, readCredentials } from '../accounts/credentials.js'
import { clientVariablesOfProcess, OPTION_NAMES } from '../config/index.js'
import { getConsoleSettings } from '../contract/console/console.js'
import { listDatabases } from '../contract/databases/databases.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import { getSigningKeys } from '../contract/queue/messages.js'
import {
  accessOf,
  type ClientEnvironment,
  clientEnvironment,
  clientExports,
  type DatabaseAccess,
} from './client-environment.js'
import { pickDatabase } from './db/find.js'
import { noCredentialsAt } from './errors.js'
import { DONE, type ExitCode } from './exit-codes.js'
import { addConfigFlags, serverConfigOf } from './flags.js'
import type { Io } from './io.js'
import { Api, parsed } from './remote/api.js'
import { type Connection, localApiUrl, namedConnection } from './remote/connection.js'
import { addExamples } from './remote/remote.js'

interface EnvOptions {
  readonly json: boolean
  readonly database: string | undefined
}

/** `homeport env`: addresses and credentials for a shell or a program. On this machine it works without a running server. */
export function envCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('env')
    .description('print the addresses and credentials that client programs need, as shell exports')
    .option('--json', 'print one JSON object instead', false)
    .option('--database <name or id>', 'add the addresses and credentials of this database, from the running server')
    .option('--profile <name>', 'of the server of this profile')
  addExamples(command, ['eval "$(homeport env)"', 'homeport env --json', 'homeport env --database shop'])
  return addConfigFlags(command, ['dataDir']).action(async () => {
    const { json, database: wanted } = command.opts<EnvOptions>()
    const { api, environment } = await sourceOf(command, io)
    const database = wanted === undefined ? undefined : await findDatabase(api, wanted)
    if (json) io.out(`${JSON.stringify(database === undefined ? environment : { ...environment, database })}\n`)
    else io.out(clientExports(environment, database))
    end(DONE)
  })
}

/** A server, with the addresses and credentials for its clients. */
interface Source {
  readonly api: Api
  readonly environment: ClientEnvironment
}

async function sourceOf(command: Command, io: Io): Promise<Source> {
  const variables = clientVariablesOfProcess()
  // Without a database, this command prints the variables that name a server, so it ignores their current values.
  const isSettingThem = command.opts<EnvOptions>().database === undefined
  const followed = isSettingThem ? { ...variables, apiUrl: undefined } : variables
  const named = await namedConnection(command, OPTION_NAMES, followed)
  if (named !== undefined) return sourceFromServer(named)
  const config = serverConfigOf(command)
  const credentials = await readCredentials(config.dataDir)
  if (credentials === undefined) throw noCredentialsAt(credentialsPath(config.dataDir))
  if (credentials.queueTokenDeleted) io.err(TOKEN_DELETED)
  const { email, apiKey } = credentials
  const api = new Api({ origin: config.dataDir, profile: { apiUrl: localApiUrl(config), email, apiKey } })
  return { api, environment: clientEnvironment(config, credentials) }
}

/** Reads from the server what a profile or environment variables do not contain. */
async function sourceFromServer(connection: Connection): Promise<Source> {
  const api = new Api(connection)
  const { apiUrl = '', email = '', apiKey = '', queueUrl, queueToken = '' } = connection.profile
  const { rest_url: restUrl, queue_url } = await api.call(getConsoleSettings)
  const keys = queueToken === '' ? NO_KEYS : await api.call(getSigningKeys).catch(noKeysIfForbidden)
  const queue = { queueUrl: queueUrl ?? queue_url, queueToken }
  const signing = { currentSigningKey: keys.current, nextSigningKey: keys.next }
  return { api, environment: { email, apiKey, apiUrl, restUrl, ...queue, ...signing } }
}

const NO_KEYS = { current: '', next: '' }

/** Returns no keys for a token with a narrow scope, which may not read the signing keys. */
function noKeysIfForbidden(error: unknown): typeof NO_KEYS {
  if (isError(error, 'server_refused') && error.details.status === 403) return NO_KEYS
  throw error
}

const TOKEN_DELETED =
  'The first queue token of the account was deleted, so QSTASH_TOKEN is empty. Use a token of your own (`homeport queue tokens create`), or create a new first one: POST /v2/qstash/rotate-token/{id}, with the `id` from GET /v2/qstash/user.\n'

/** The fields of a database record that this command needs; other fields are ignored. */
const ReachableSchema = Type.Object({
  database_id: Type.String(),
  database_name: Type.String(),
  endpoint: Type.String(),
  port: Type.Integer(),
  tls: Type.Boolean(),
  password: Type.Optional(Type.String()),
  rest_url: Type.String(),
  rest_token: Type.Optional(Type.String()),
})

/**
 * Asks the running server for the access data of one database, by its id or name.
 * @throws HomeportError when the server does not respond, when none or several databases match, or when the credentials
 * may not read secrets.
 */
async function findDatabase(api: Api, wanted: string): Promise<DatabaseAccess> {
  const { value } = await api.send(listDatabases)
  const found = pickDatabase(parsed(Type.Array(ReachableSchema), value), wanted)
  if (found.password !== undefined && found.rest_token !== undefined) return accessOf(found)
  const problem = `The credentials of ${api.origin} may not read the password of a database.`
  throw new HomeportError('cli_no_credentials', { problem })
}
