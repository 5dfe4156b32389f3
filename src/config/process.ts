import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Config } from './derive.js'
import { ADDRESS_OPTIONS, lastAddresses } from './last-start.js'
import { type Defaults, isGiven, loadConfig, readConfigFile, type Sources, unknownEnvironment } from './load.js'

/**
 * The configuration of this process: its environment, its working directory, and the flags it was called with.
 * @param configFile the file that `--config` names; without it `HOMEPORT_CONFIG`, else the default file.
 * @param defaults what counts where neither flags nor environment nor file say anything.
 * @throws HomeportError `invalid_config`.
 */
export function configOfProcess(flags: Sources['flags'] = {}, configFile?: string, defaults?: Defaults): Config {
  return loadConfig({ ...sourcesOfProcess(flags, configFile), defaults })
}

/**
 * The same for a command that looks for a server: where no option says anything about its addresses, they are those of
 * the last start from the data directory.
 * @throws HomeportError `invalid_config`.
 */
export function configOfServer(flags: Sources['flags'] = {}, configFile?: string): Config {
  const sources = sourcesOfProcess(flags, configFile)
  const config = loadConfig(sources)
  if (ADDRESS_OPTIONS.some((name) => isGiven(name, sources))) return config
  return Object.freeze({ ...config, ...lastAddresses(config.dataDir) })
}

function sourcesOfProcess(flags: Sources['flags'], configFile: string | undefined): Sources {
  const workingDir = process.cwd()
  const file = readConfigFile(configFile ?? (process.env.HOMEPORT_CONFIG || undefined), workingDir)
  return { flags, env: process.env, file, workingDir }
}

/** The `HOMEPORT_` variables of this process that mean nothing, with suggestions. */
export function unknownVariablesOfProcess(): string[] {
  return unknownEnvironment(process.env)
}

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
