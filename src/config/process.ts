import type { Config } from './derive.js'
import { readConfigFile } from './file.js'
import { ADDRESS_OPTIONS, lastAddresses } from './last-start.js'
import { type Defaults, isGiven, loadConfig, type Sources, unknownEnvironment } from './load.js'

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
