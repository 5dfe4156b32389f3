import { Command } from 'commander'
import { Type } from 'typebox'
import { type Credentials, credentialsPath, readCredentials } from '../accounts/credentials.js'
import type { Config } from '../config/index.js'
import { listDatabases } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import { accessOf, clientEnvironment, clientExports, type DatabaseAccess } from './client-environment.js'
import { pickDatabase } from './db/find.js'
import { DONE, type ExitCode } from './exit-codes.js'
import { addConfigFlags, serverConfigOf } from './flags.js'
import type { Io } from './io.js'
import { Api, parsed } from './remote/api.js'
import { localApiUrl } from './remote/connection.js'
import { addExamples } from './remote/remote.js'

interface EnvOptions {
  readonly json: boolean
  readonly database: string | undefined
}

/** `homeport env`: the credentials of the first account, for a shell or a program. Works with and without a running server. */
export function envCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('env')
    .description('print the addresses and credentials that client programs need, as shell exports')
    .option('--json', 'print one JSON object instead', false)
    .option('--database <name or id>', 'add the addresses and credentials of this database, from the running server')
  addExamples(command, ['eval "$(homeport env)"', 'homeport env --json', 'homeport env --database shop'])
  return addConfigFlags(command, ['dataDir']).action(async () => {
    const { json, database } = command.opts<EnvOptions>()
    const config = serverConfigOf(command)
    const credentials = await readCredentials(config.dataDir)
    if (credentials === undefined) throw noCredentials(config)
    io.out(await renderEnvironment(config, credentials, { json, database }))
    if (credentials.queueTokenDeleted) io.err(TOKEN_DELETED)
    end(DONE)
  })
}

const TOKEN_DELETED =
  'The first queue token of the account was deleted, so QSTASH_TOKEN is empty. Use a token of your own (`homeport queue tokens create`), or make a new first one: POST /v2/qstash/rotate-token/{id}, with the `id` from GET /v2/qstash/user.\n'

async function renderEnvironment(
  config: Config,
  credentials: Credentials,
  { json, database: wanted }: EnvOptions,
): Promise<string> {
  const environment = clientEnvironment(config, credentials)
  const database = wanted === undefined ? undefined : await findDatabase(config, credentials, wanted)
  if (!json) return clientExports(environment, database)
  return `${JSON.stringify(database === undefined ? environment : { ...environment, database })}\n`
}

function noCredentials(config: Config): HomeportError {
  const path = credentialsPath(config.dataDir)
  const problem = `There are no credentials at ${path}. Start the server once (npm start), or set its --data-dir.`
  return new HomeportError('cli_no_credentials', { problem })
}

/** The fields of a database record that this command needs; other fields are ignored. */
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
 * Asks the running server for the access data of one database, by its id or name.
 * @throws HomeportError when the server does not respond, or when none or several databases match.
 */
async function findDatabase(config: Config, credentials: Credentials, wanted: string): Promise<DatabaseAccess> {
  const { email, apiKey } = credentials
  const api = new Api({ origin: config.dataDir, profile: { apiUrl: localApiUrl(config), email, apiKey } })
  const { value } = await api.send(listDatabases)
  return accessOf(pickDatabase(parsed(Type.Array(ReachableSchema), value), wanted))
}
