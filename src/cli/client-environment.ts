import type { Credentials } from '../accounts/index.js'
import type { Config } from '../config/index.js'
import { shellExports } from './shell.js'

/** What a client program needs to reach a server and prove who it is; the shape of `homeport env --json`. */
export interface ClientEnvironment {
  readonly email: string
  readonly apiKey: string
  readonly apiUrl: string
  readonly restUrl: string
  readonly queueUrl: string
  readonly queueToken: string
  readonly currentSigningKey: string
  readonly nextSigningKey: string
}

/** How to reach one database. */
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
    queueToken: credentials.queueToken,
    currentSigningKey: credentials.currentSigningKey,
    nextSigningKey: credentials.nextSigningKey,
  }
}

/** The same as shell exports, under the names that the official client packages read. */
export function clientExports(environment: ClientEnvironment, database?: DatabaseAccess): string {
  return shellExports({
    HOMEPORT_API_URL: environment.apiUrl,
    HOMEPORT_EMAIL: environment.email,
    HOMEPORT_API_KEY: environment.apiKey,
    QSTASH_URL: environment.queueUrl,
    QSTASH_TOKEN: environment.queueToken,
    QSTASH_CURRENT_SIGNING_KEY: environment.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: environment.nextSigningKey,
    ...(database && {
      UPSTASH_REDIS_REST_URL: database.restUrl,
      UPSTASH_REDIS_REST_TOKEN: database.restToken,
      REDIS_URL: database.redisUrl,
    }),
  })
}
