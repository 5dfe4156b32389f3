import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { homeOfUser } from '../base/index.js'
import type { Config } from './derive.js'
import { ADDRESS_OPTIONS, lastAddresses } from './last-start.js'
import { type Defaults, isGiven, loadConfig, readConfigFile, type Sources, unknownEnvironment } from './load.js'
import { onlyRunningDataDir } from './servers.js'

/**
 * The configuration of this process, from its flags, environment, configuration file and working directory.
 * @param configFile value of `--config`. Default: `HOMEPORT_CONFIG`, else the default file.
 * @param defaults replace defaults of the table.
 * @throws HomeportError `invalid_config`.
 */
export function configOfProcess(flags: Sources['flags'] = {}, configFile?: string, defaults?: Defaults): Config {
  return loadConfig({ ...sourcesOfProcess(flags, configFile), defaults })
}

/**
 * The configuration for a command that talks to a server. If no source sets an address option, the addresses are those
 * of the last server that ran from the data directory. If the flags name the data directory, address options in the
 * environment and the default file are ignored, because they may belong to another server. If no source sets the data
 * directory and the default one does not exist, the command uses the data directory of the only server that this user runs.
 * @throws HomeportError `invalid_config`, `cli_misused` when several servers run.
 */
export function configOfServer(flags: Sources['flags'] = {}, configFile?: string): Config {
  const sources = sourcesOfProcess(flags, configFile)
  const config = loadConfig(sources)
  const aboutThisServer: Sources =
    flags?.dataDir === undefined ? sources : { flags, file: configFile === undefined ? undefined : sources.file }
  if (ADDRESS_OPTIONS.some((name) => isGiven(name, aboutThisServer))) return config
  const isKnown = isGiven('dataDir', sources) || existsSync(config.dataDir)
  const dataDir = (isKnown ? undefined : onlyRunningDataDir(stateHomeOfProcess())) ?? config.dataDir
  return Object.freeze({ ...config, dataDir, ...lastAddresses(dataDir) })
}

function sourcesOfProcess(flags: Sources['flags'], configFile: string | undefined): Sources {
  const workingDir = process.cwd()
  const file = readConfigFile(configFile ?? (process.env.HOMEPORT_CONFIG || undefined), workingDir)
  return { flags, env: process.env, file, workingDir }
}

/** Unknown `HOMEPORT_` variables of this process, with suggestions. */
export function unknownVariablesOfProcess(): string[] {
  return unknownEnvironment(process.env)
}

/** Environment variable with the number of this process among the server processes of a machine. Unset means 1. */
export const PROCESS_VARIABLE = 'NUMBER_OF_HOMEPORT_PROCESS'

/** Whether commands find this server. If a machine runs several server processes, commands find only the first. */
export const isFirstProcess = (): boolean => (process.env[PROCESS_VARIABLE] ?? '1') === '1'

/** The arguments of this process, without the program's own name. */
export const argumentsOfProcess = (): readonly string[] => process.argv.slice(2)

/** The folder for what this user's programs remember between runs. */
export function stateHomeOfProcess(env: NodeJS.ProcessEnv = process.env): string {
  return env.XDG_STATE_HOME || join(homeOfUser(env), '.local', 'state')
}

/**
 * The socket of the service manager, if it waits for a notification. The variable is removed, so that engines and other
 * child processes cannot notify in the name of the server.
 */
export function takeNotifySocket(): string | undefined {
  const socket = process.env.NOTIFY_SOCKET || undefined
  delete process.env.NOTIFY_SOCKET
  return socket
}

/** Where programs are looked up, as an environment for a child process. */
export const pathOfProcess = (): { PATH?: string } => (process.env.PATH ? { PATH: process.env.PATH } : {})

/** The standard variables of OpenTelemetry in the environment of this process. Its SDK reads the same ones. */
export function telemetryVariablesOfProcess(): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_')))
}

/** The variables of this process for PostgreSQL, by name. */
export function postgresVariablesOfProcess(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('PG')))
}

/** Environment variables for commands: the server to talk to, and the terminal. */
export interface ClientVariables {
  readonly apiUrl: string | undefined
  readonly email: string | undefined
  readonly apiKey: string | undefined
  readonly queueUrl: string | undefined
  readonly queueToken: string | undefined
  /** Name of the profile to use. */
  readonly profile: string | undefined
  /** Whether `HOMEPORT_DATA_DIR` is set; commands then talk to the server of that directory. */
  readonly namesDataDir: boolean
  /** The folder for settings of this user's programs. */
  readonly configHome: string
  /** Whether a browser can be shown: there is a graphical session. */
  readonly hasDesktop: boolean
  /** Whether the user asked for plain text, or the terminal has no colours. */
  readonly noColor: boolean
}

/**
 * Reads the variables that commands need besides the configuration of the server. An empty variable counts as unset.
 */
export function clientVariablesOfProcess(): ClientVariables {
  const { env } = process
  const of = (name: string): string | undefined => env[name] || undefined
  return {
    apiUrl: of('HOMEPORT_API_URL'),
    email: of('HOMEPORT_EMAIL'),
    apiKey: of('HOMEPORT_API_KEY'),
    queueUrl: of('QSTASH_URL'),
    queueToken: of('QSTASH_TOKEN'),
    profile: of('HOMEPORT_PROFILE'),
    namesDataDir: of('HOMEPORT_DATA_DIR') !== undefined,
    configHome: of('XDG_CONFIG_HOME') ?? join(homeOfUser(env), '.config'),
    hasDesktop: hasDesktop(of),
    noColor: of('NO_COLOR') !== undefined || env.TERM === 'dumb',
  }
}

function hasDesktop(of: (name: string) => string | undefined): boolean {
  if (process.platform === 'darwin') return of('SSH_CONNECTION') === undefined
  return of('DISPLAY') !== undefined || of('WAYLAND_DISPLAY') !== undefined
}

/** The credentials of an object storage, in the variables that other programs read too. */
export function storageVariablesOfProcess(): Readonly<Record<string, string | undefined>> {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env
  return { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN }
}
