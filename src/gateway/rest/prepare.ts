import { refusal } from '../../contract/errors/errors.js'
import { bareContainer, findCommandByName, findSubcommand, type ServedCommand } from '../commands/command-table.js'
import { refusalOf, subcommandRefusal } from '../commands/refusals.js'
import { forEngine } from '../commands/script-flags.js'
import { encodeCommand, encodeTextCommand } from '../resp/encode.js'
import type { CommandArguments } from './json-commands.js'

/** A command that may be sent to the engine. */
export interface PreparedCommand {
  readonly wire: string | Buffer
  readonly command: ServedCommand
  readonly args: CommandArguments
}

/** No error repeats more of a command. */
const MOST_SHOWN_WORDS = 48

/**
 * Holds a command against the command table and encodes it.
 * @throws HomeportError `command_unknown`, `subcommand_unknown`, `command_not_available`, `command_not_for_rest`
 */
export function prepareCommand(args: CommandArguments): PreparedCommand {
  const name = textOf(args[0])
  const command = findCommandByName(name)
  if (!command?.allowed) throw refusalOf(command, args.slice(0, MOST_SHOWN_WORDS).map(textOf))
  const row = command.state === 'container' ? rowWithin(command, args) : command
  if (!row.rest || (row.state === 'blocking-option' && asksToBlock(args))) {
    throw refusal('command_not_for_rest', { name: name.toUpperCase() })
  }
  return { wire: encode(forEngine(row.name, args) ?? args), command: row, args }
}

function rowWithin(container: ServedCommand, args: CommandArguments): ServedCommand {
  return args.length > 1 ? subcommandOf(container, textOf(args[1])) : (bareContainer(container) ?? container)
}

function subcommandOf(container: ServedCommand, subcommand: string): ServedCommand {
  const row = findSubcommand(container.name, subcommand)
  // Of a container that is closed to REST, no subcommand needs to be known.
  if (!container.rest) return container
  if (!row?.allowed) throw subcommandRefusal(row, container.name, subcommand)
  return row
}

function asksToBlock(args: CommandArguments): boolean {
  for (const arg of args) {
    const word = arg.length < 8 ? textOf(arg).toUpperCase() : ''
    if (word === 'BLOCK') return true
    if (word === 'STREAMS') return false
  }
  return false
}

function textOf(arg: string | Buffer | undefined): string {
  return typeof arg === 'string' ? arg : (arg ?? '').toString()
}

function encode(args: CommandArguments): string | Buffer {
  return args.every(isText) ? encodeTextCommand(args) : encodeCommand(args)
}

function isText(arg: string | Buffer): arg is string {
  return typeof arg === 'string'
}
