import type { Credentials } from '../accounts/credentials.js'
import type { Config } from '../config/index.js'
import { type RedisEndpoint, redisUrlOf } from '../contract/databases/redis-url.js'
import { shellExports } from './shell.js'

/** The addresses and credentials that a client program needs; the shape of `homeport env --json`. */
export interface ClientEnvironment {
  readonly email: string
  readonly apiKey: string
  readonly apiUrl: string
  readonly restUrl: string
  readonly queueUrl: string
  /** Empty when it was deleted. */
  readonly queueToken: string
  readonly currentSigningKey: string
  readonly nextSigningKey: string
}

/** The addresses and credentials of one database. */
export interface DatabaseAccess {
  readonly restUrl: string
  readonly restToken: string
  readonly redisUrl: string
}

/** The addresses of a server with the credentials of its first account. */
export function clientEnvironment(config: Config, credentials: Credentials): ClientEnvironment {
  return {
    email: credentials.email,
    apiKey: credentials.apiKey,
    apiUrl: config.publicApiUrl,
    restUrl: config.publicRestUrl,
    queueUrl: config.publicQueueUrl,
    queueToken: credentials.queueTokenDeleted ? '' : credentials.queueToken,
    currentSigningKey: credentials.currentSigningKey,
    nextSigningKey: credentials.nextSigningKey,
  }
}

/** The environment variables that the official client packages read. */
export function clientVariables(environment: ClientEnvironment) {
  return {
    HOMEPORT_API_URL: environment.apiUrl,
    HOMEPORT_EMAIL: environment.email,
    HOMEPORT_API_KEY: environment.apiKey,
    QSTASH_URL: environment.queueUrl,
    QSTASH_TOKEN: environment.queueToken,
    QSTASH_CURRENT_SIGNING_KEY: environment.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: environment.nextSigningKey,
  }
}

/** The environment variables for one database that the client packages read. */
export function databaseVariables(database: DatabaseAccess) {
  return {
    UPSTASH_REDIS_REST_URL: database.restUrl,
    UPSTASH_REDIS_REST_TOKEN: database.restToken,
    REDIS_URL: database.redisUrl,
  }
}

/** All variables as shell exports. */
export function clientExports(environment: ClientEnvironment, database?: DatabaseAccess): string {
  return shellExports({ ...clientVariables(environment), ...(database && databaseVariables(database)) })
}

/** The fields of a database record with addresses and credentials. Secrets are absent if the caller may not see them. */
export interface Reachable extends RedisEndpoint {
  readonly password?: string
  readonly rest_url: string
  readonly rest_token?: string
}

/** The addresses and credentials in the record of a database. */
export function accessOf(database: Reachable): DatabaseAccess {
  const { password = '', rest_url: restUrl, rest_token: restToken = '' } = database
  return { restUrl, restToken, redisUrl: redisUrlOf(database, `default:${encodeURIComponent(password)}`) }
}
