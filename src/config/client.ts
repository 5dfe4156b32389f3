import { homedir } from 'node:os'
import { join } from 'node:path'

/** What the environment says about the server that a command is meant to talk to, and about the terminal. */
export interface ClientVariables {
  readonly apiUrl: string | undefined
  readonly email: string | undefined
  readonly apiKey: string | undefined
  readonly queueUrl: string | undefined
  readonly queueToken: string | undefined
  /** Name of the profile to use. */
  readonly profile: string | undefined
  /** A data directory was named; commands then mean the server of that directory. */
  readonly namesDataDir: boolean
  /** Where programs of this user keep their settings. */
  readonly configHome: string
  /** The user asked for plain text, or the terminal knows no colours. */
  readonly noColor: boolean
}

/**
 * Reads the variables of this process that commands need beside the configuration of the server. An empty variable
 * counts as one that is not set.
 */
export function clientVariablesOfProcess(env: NodeJS.ProcessEnv = process.env): ClientVariables {
  const of = (name: string): string | undefined => env[name] || undefined
  return {
    apiUrl: of('HOMEPORT_API_URL'),
    email: of('HOMEPORT_EMAIL'),
    apiKey: of('HOMEPORT_API_KEY'),
    queueUrl: of('QSTASH_URL'),
    queueToken: of('QSTASH_TOKEN'),
    profile: of('HOMEPORT_PROFILE'),
    namesDataDir: of('HOMEPORT_DATA_DIR') !== undefined,
    configHome: of('XDG_CONFIG_HOME') ?? join(homedir(), '.config'),
    noColor: of('NO_COLOR') !== undefined || env.TERM === 'dumb',
  }
}
