import type { Config } from './derive.js'
import { readConfigFile } from './file.js'
import { loadConfig, type Sources, unknownEnvironment } from './load.js'

/**
 * The configuration of this process: its environment, its working directory, and the flags it was called with.
 * @param configFile the file that `--config` names; without it `HOMEPORT_CONFIG`, else the default file.
 * @throws HomeportError `invalid_config`.
 */
export function configOfProcess(flags: Sources['flags'] = {}, configFile?: string): Config {
  const workingDir = process.cwd()
  const file = readConfigFile(configFile ?? (process.env.HOMEPORT_CONFIG || undefined), workingDir)
  return loadConfig({ flags, env: process.env, file, workingDir })
}

/** The `HOMEPORT_` variables of this process that mean nothing, with suggestions. */
export function unknownVariablesOfProcess(): string[] {
  return unknownEnvironment(process.env)
}
