import { type Command, Option } from 'commander'
import {
  type Config,
  configOfProcess,
  configOfServer,
  type Defaults,
  defaultText,
  envName,
  flagName,
  OPTION_NAMES,
  type OptionName,
  optionOf,
} from '../config/index.js'
import { addHelpForAll, hideFromHelp } from './help.js'

/**
 * Adds one flag for each option of the configuration table.
 * @param shown the options that the help of this command shows; `--help-all` shows all.
 * @param defaults replace those of the table for this command.
 */
export function addConfigFlags(command: Command, shown: readonly OptionName[] = [], defaults: Defaults = {}): Command {
  command.addOption(configFileFlag())
  for (const name of OPTION_NAMES) {
    const flag = flagOf(name, defaults[name])
    command.addOption(shown.includes(name) ? flag : hideFromHelp(flag))
  }
  return addHelpForAll(command)
}

/** Adds only the flags of these options. */
export function addFlags(command: Command, names: readonly OptionName[]): Command {
  command.addOption(configFileFlag())
  for (const name of names) command.addOption(flagOf(name))
  return command
}

const configFileFlag = (): Option =>
  new Option('--config <file>', 'read options from this JSON file (default: homeport.config.json if it is there)')

/** The options that locate the server of this machine. Commands that call a server have only these flags. */
export const PLACE_OPTIONS = ['dataDir', 'apiPort', 'restPort', 'queuePort', 'redisPorts'] as const

/** Adds the flags of these options. The help shows only the data directory and the configuration file. */
export function addPlaceFlags(command: Command, helpGroup: string): Command {
  command.addOption(new Option('--config <file>', 'the server with this configuration file').helpGroup(helpGroup))
  for (const name of PLACE_OPTIONS) {
    const flag =
      name === 'dataDir' ? new Option('--data-dir <dir>', 'the server with this data directory') : flagOf(name)
    command.addOption(name === 'dataDir' ? flag.helpGroup(helpGroup) : flag.helpGroup(helpGroup).hideHelp())
  }
  return command
}

function flagOf(name: OptionName, usual = defaultText(name)): Option {
  const { kind, meaning } = optionOf(name)
  const value = kind.isSwitch ? ' [boolean]' : ' <value>'
  return new Option(flagName(name) + value, `${meaning} (default: ${usual}; env: ${envName(name)})`)
}

/** The configuration of a command that has all flags. */
export function configOf(command: Command, defaults?: Defaults): Config {
  return configOfProcess(...givenTo(command, OPTION_NAMES), defaults)
}

/**
 * The configuration of a command that calls the server, which may listen on other addresses than the defaults.
 * @param names the options that are flags of this command. Other flags of the command may have the name of an option.
 */
export function serverConfigOf(command: Command, names: readonly OptionName[] = OPTION_NAMES): Config {
  return configOfServer(...givenTo(command, names))
}

function givenTo(command: Command, names: readonly OptionName[]): Parameters<typeof configOfServer> {
  const given = command.opts<Record<string, string | true>>()
  const flags: Partial<Record<OptionName, string | true>> = {}
  for (const name of names) if (given[name] !== undefined) flags[name] = given[name]
  return [flags, given.config === undefined ? undefined : String(given.config)]
}
