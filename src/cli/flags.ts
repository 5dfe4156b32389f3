import type { Command } from 'commander'
import { Option } from 'commander'
import {
  type Config,
  configOfProcess,
  defaultText,
  envName,
  flagName,
  OPTION_NAMES,
  type OptionName,
  optionOf,
} from '../config/index.js'

/** Gives a command one flag for each option of the configuration, from the table. */
export function addConfigFlags(command: Command): Command {
  command.option('--config <file>', 'read options from this JSON file (default: homeport.config.json if it is there)')
  for (const name of OPTION_NAMES) command.addOption(flagOf(name))
  return command
}

function flagOf(name: OptionName): Option {
  const { kind, meaning } = optionOf(name)
  const value = kind.isSwitch ? ' [boolean]' : ' <value>'
  return new Option(flagName(name) + value, `${meaning} (default: ${defaultText(name)}; env: ${envName(name)})`)
}

/** The configuration that a command with these flags was called with. */
export function configOf(command: Command): Config {
  const given = command.opts<Record<string, string | true>>()
  const flags: Partial<Record<OptionName, string | true>> = {}
  for (const name of OPTION_NAMES) if (given[name] !== undefined) flags[name] = given[name]
  return configOfProcess(flags, given.config === undefined ? undefined : String(given.config))
}
