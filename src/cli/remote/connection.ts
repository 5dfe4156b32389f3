import type { Command } from 'commander'
import { type ClientVariables, type Config, clientVariablesOfProcess, type OptionName } from '../../config/index.js'
import type { ServiceName } from '../../contract/endpoint.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { misused, noCredentialsAt } from '../errors.js'
import { PLACE_OPTIONS, serverConfigOf } from '../flags.js'
import { type Profile, profileNamed, readProfiles } from './profiles.js'

/**
 * Which server a command calls. The first of these that is set:
 *
 *   1. `--profile <name>`
 *   2. a flag that names the local server: `--data-dir`, `--config`, a port
 *   3. `HOMEPORT_API_URL` with `HOMEPORT_EMAIL` and `HOMEPORT_API_KEY`, and `QSTASH_URL` with `QSTASH_TOKEN`, as
 *      `homeport env` prints them. The last two count only together with the first: a shell may be set up for another
 *      queue service, which the command must not change
 *   4. `HOMEPORT_PROFILE`
 *   5. `HOMEPORT_DATA_DIR`
 *   6. the profile that `homeport profile use` selected
 *   7. the data directory of the configuration; if it does not exist, the only server that this user runs here
 */

/** A server and the credentials for it. */
export interface Connection {
  /** Where the credentials come from, for messages: `profile "prod"`. */
  readonly origin: string
  readonly profile: Partial<Profile>
  /** The data directory, if the server was found by it on this machine. */
  readonly dataDir?: string
}

/** The URL of a service and the authorization header for it. */
export interface Access {
  readonly url: string
  readonly authorization: string
}

/**
 * Finds the server of a command.
 * @throws HomeportError `cli_no_credentials`, `cli_not_found`.
 */
export async function connectionOf(command: Command): Promise<Connection> {
  const named = await namedConnection(command, PLACE_OPTIONS, clientVariablesOfProcess())
  return named ?? local(serverConfigOf(command, PLACE_OPTIONS))
}

/**
 * The server that a profile or environment variables name; undefined when the server is to be found by its data directory.
 * @param places flags of the command that name a server on this machine.
 * @throws HomeportError `cli_not_found`.
 */
export async function namedConnection(
  command: Command,
  places: readonly OptionName[],
  variables: ClientVariables,
): Promise<Connection | undefined> {
  const { profile } = command.opts<{ profile?: string }>()
  if (profile !== undefined) return stored(profile)
  if ([...places, 'config'].some((name) => command.getOptionValue(name) !== undefined)) return undefined
  if (variables.apiUrl !== undefined) return { origin: 'the environment', profile: profileOf(variables) }
  if (variables.profile !== undefined) return stored(variables.profile)
  const { current } = variables.namesDataDir ? {} : await readProfiles()
  return current === undefined ? undefined : stored(current)
}

/**
 * The URL and authorization for one service of the server.
 * @throws HomeportError `cli_no_credentials` when they are incomplete, `cli_misused` when the URL is not valid.
 */
export function accessTo({ origin, profile }: Connection, service: ServiceName): Access {
  const { apiUrl, email, apiKey, queueUrl, queueToken } = profile
  if (service === 'management') {
    if (!apiUrl || !email || !apiKey) throw incomplete(origin, 'HOMEPORT_API_URL, HOMEPORT_EMAIL and HOMEPORT_API_KEY')
    const login = Buffer.from(`${email}:${apiKey}`).toString('base64')
    return { url: urlOf(apiUrl, service, origin), authorization: `Basic ${login}` }
  }
  if (!queueUrl || !queueToken) throw incomplete(origin, 'QSTASH_URL and QSTASH_TOKEN')
  return { url: urlOf(queueUrl, service, origin), authorization: `Bearer ${queueToken}` }
}

async function stored(name: string): Promise<Connection> {
  return { origin: `profile "${name}"`, profile: profileNamed(await readProfiles(), name) }
}

async function local(config: Config): Promise<Connection> {
  // Imported here: it loads most of the server, which is not needed with a profile.
  const { credentialsPath, readCredentials } = await import('../../accounts/credentials.js')
  const credentials = await readCredentials(config.dataDir)
  if (credentials === undefined) throw noCredentialsAt(credentialsPath(config.dataDir))
  const { email, apiKey, queueToken, queueTokenDeleted } = credentials
  const urls = { apiUrl: localApiUrl(config), queueUrl: localQueueUrl(config) }
  return {
    origin: config.dataDir,
    dataDir: config.dataDir,
    profile: { ...urls, email, apiKey, ...(!queueTokenDeleted && { queueToken }) },
  }
}

function profileOf(variables: ClientVariables): Partial<Profile> {
  const { apiUrl, email, apiKey, queueUrl, queueToken } = variables
  return {
    ...(apiUrl && { apiUrl }),
    ...(email && { email }),
    ...(apiKey && { apiKey }),
    ...(queueUrl && { queueUrl }),
    ...(queueToken && { queueToken }),
  }
}

/** The URL may contain a password by mistake, so the error does not show it. */
function urlOf(text: string, service: ServiceName, origin: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return text.replace(/\/+$/, '')
  const problem = `The URL of the ${service} service in ${origin} is not valid: use a URL that begins with http:// or https://, without a user.`
  throw misused(problem)
}

function incomplete(origin: string, wanted: string): HomeportError {
  const problem = `The credentials of ${origin} are incomplete: this command requires ${wanted}. \`homeport env\` and \`homeport login\` set all of them.`
  return new HomeportError('cli_no_credentials', { problem })
}

/** URL of the management listener itself. The public URL may belong to a proxy that this machine cannot reach. */
export const localApiUrl = ({ host, apiPort }: Config): string => localUrl(host, apiPort)

/** URL of the queue listener itself. */
const localQueueUrl = ({ host, queuePort }: Config): string => localUrl(host, queuePort)

function localUrl(host: string, port: number): string {
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
