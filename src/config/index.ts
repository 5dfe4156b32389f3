/**
 * The configuration of the server: parsed once from flags, environment and file into one frozen object.
 *
 * `OPTIONS` in `options.ts` is a table with one row per option: default, kind of value with its bounds, meaning, relation
 * to other options. Flags, environment names, keys of the file, `--help` and `docs/configuration.md` follow from the row.
 * To add an option, add a row.
 *
 * `loadConfig` is pure: it returns a `Config`, or throws one `invalid_config` error that lists every problem with name and
 * value. Nothing is parsed later: modules take the `Config`, or the fields they need. A wrong value never falls back to
 * the default, and an unknown key is refused with a suggestion.
 *
 * This module also creates the data directory, with mode 0700, and locks it against a second server (`lockDataDir`). The
 * files in it belong to the modules that write them.
 *
 * The URL of the store may contain a password, so it is never shown; use `describeStore`. No other module reads
 * `process.env`.
 */

export {
  closeDataDir,
  type DataDirLock,
  type DataDirState,
  inspectDataDir,
  keepFilesPrivate,
  lockDataDir,
  pathsOpenToOthers,
} from './data-dir.js'
export type { Config } from './derive.js'
export { isLoopback, isWildcard } from './derive.js'
export { configurationPage, defaultText } from './docs.js'
export { describeStore, type PortRange, type StoreChoice, storeChoice } from './kinds.js'
export { hasServed, recordAddresses } from './last-start.js'
export { DEFAULT_FILE, type Defaults, loadConfig, readConfigFile, type Sources, unknownEnvironment } from './load.js'
export { envName, flagName, suggestion } from './names.js'
export { type ObjectPlace, parseObjectPlace, placeText } from './object-place.js'
export { OPTION_NAMES, type Option, type OptionName, optionOf } from './options.js'
export { type PostgresTarget, parsePostgresUrl } from './postgres-url.js'
export {
  argumentsOfProcess,
  type ClientVariables,
  clientVariablesOfProcess,
  configOfProcess,
  configOfServer,
  isFirstProcess,
  PROCESS_VARIABLE,
  pathOfProcess,
  postgresVariablesOfProcess,
  stateHomeOfProcess,
  storageVariablesOfProcess,
  takeNotifySocket,
  telemetryVariablesOfProcess,
  unknownVariablesOfProcess,
} from './process.js'
export { type RunningServer, recordServer, runningServers } from './servers.js'
