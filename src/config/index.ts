/**
 * The configuration: what the operator decides, parsed once into one frozen object.
 *
 * `OPTIONS` is a table. A row holds the default, the kind of the value with its bounds, what the option promises and
 * how it stands to others. Flags, environment names, keys of the file, `--help` and `docs/configuration.md` all follow
 * from the row, so that nothing about an option is written twice. A new option is a new row.
 *
 * `loadConfig` is pure: sources in, `Config` out, or one `invalid_config` error that lists every problem with name and
 * value. After that nobody parses again: rooms take the `Config`, or the few fields they need, and trust it. A wrong
 * value never falls back to a default in silence, and unknown keys are refused with a suggestion.
 *
 * The room also owns the data directory as a place: it is created private and locked against a second process
 * (`lockDataDir`). What lies inside belongs to the rooms that put it there.
 *
 * Secrets: the URL of the store may hold a password. It is never shown; use `describeStore`.
 *
 * Nothing outside this room reads `process.env`.
 */

export {
  closeDataDir,
  type DataDirLock,
  type DataDirState,
  inspectDataDir,
  keepFilesPrivate,
  lockDataDir,
  openToOthers,
} from './data-dir.js'
export type { Config } from './derive.js'
export { isLoopback } from './derive.js'
export { configurationPage, defaultText } from './docs.js'
export { describeStore, type PortRange, type StoreChoice } from './kinds.js'
export { hasServed, noteAddresses } from './last-start.js'
export { DEFAULT_FILE, type Defaults, loadConfig, readConfigFile, type Sources, unknownEnvironment } from './load.js'
export { envName, flagName, suggestion } from './names.js'
export { OPTION_NAMES, type Option, type OptionName, optionOf } from './options.js'
export {
  type ClientVariables,
  clientVariablesOfProcess,
  configOfProcess,
  configOfServer,
  unknownVariablesOfProcess,
} from './process.js'
