import { type AllowedCommand, COMMANDS, type Command, enginesWith } from '../../contract/databases/commands.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type CommandEffect, effectOf, rowMayWrite } from '../limits/command-effect.js'

const SLOTS = 4096
const SLOT_MASK = SLOTS - 1
const LOWER_A = 97
const LOWER_Z = 122

/** Facts that the gateway adds to a row of the command table. */
interface Facts {
  /** Its position in `COMMANDS`. */
  readonly index: number
  /** Whether it can enlarge an entry, or take the engine's time. */
  readonly effect: CommandEffect
  /** Whether it may send a change to replicas. For some commands the arguments decide. */
  readonly mayWrite: boolean
}

/** A row of the command table with the gateway's facts. */
export type KnownCommand = Command & Facts

/** A row that clients may send. */
export type ServedCommand = AllowedCommand & Facts

interface Row {
  readonly command: KnownCommand
  readonly name: Buffer
}

/** Rows by the hash of their name. Subcommands such as `CLIENT|ID` are only in `byName`. */
const bySlot: (readonly Row[] | undefined)[] = new Array(SLOTS).fill(undefined)
const byName = new Map<string, KnownCommand>()

COMMANDS.forEach((declared, index) => {
  const command: KnownCommand = {
    ...declared,
    index,
    effect: effectOf(declared.name),
    mayWrite: declared.allowed && rowMayWrite(declared),
  }
  byName.set(command.name, command)
  if (command.name.includes('|')) return
  const name = Buffer.from(command.name)
  const slot = slotOf(name, 0, name.length)
  bySlot[slot] = [...(bySlot[slot] ?? []), { command, name }]
})

/** Length of the longest name. Longer names, which may have megabytes, are rejected without a look at them. */
const MAX_NAME_LENGTH = Math.max(...COMMANDS.map(({ name }) => name.length))

/** Finds a command by the bytes of its name, in any case. Creates no string, because it runs for every command. */
export function findCommand(bytes: Buffer, start: number, end: number): KnownCommand | undefined {
  if (end - start > MAX_NAME_LENGTH) return undefined
  const rows = bySlot[slotOf(bytes, start, end)]
  if (rows === undefined) return undefined
  for (const row of rows) if (sameName(row.name, bytes, start, end)) return row.command
  return undefined
}

/** Finds the row of a subcommand such as `CLIENT|SETNAME`; `container` is in upper case. */
export function findSubcommand(container: string, subcommand: string): KnownCommand | undefined {
  return subcommand.length > MAX_NAME_LENGTH ? undefined : byName.get(`${container}|${subcommand.toUpperCase()}`)
}

/** The row of a container that is sent without a subcommand, where engines accept that: COMMAND lists all commands. */
export function bareContainer(container: ServedCommand): ServedCommand | undefined {
  return container.name === 'COMMAND' ? { ...container, state: 'stateless' } : undefined
}

/** The row of the command table with this name, if clients may send it. */
export function findRow(name: string): ServedCommand | undefined {
  const row = byName.get(name)
  return row?.allowed ? row : undefined
}

/** Finds a command by its name in any case. */
export function findCommandByName(name: string): KnownCommand | undefined {
  return name.length > MAX_NAME_LENGTH || name.includes('|') ? undefined : byName.get(name.toUpperCase())
}

function slotOf(bytes: Buffer, start: number, end: number): number {
  let hash = end - start
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + upper(bytes[at] ?? 0)) | 0
  return hash & SLOT_MASK
}

function sameName(name: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (name.length !== end - start) return false
  for (let i = 0; i < name.length; i++) if (name[i] !== upper(bytes[start + i] ?? 0)) return false
  return true
}

function upper(byte: number): number {
  return byte >= LOWER_A && byte <= LOWER_Z ? byte - 32 : byte
}

const UNKNOWN_TO_ENGINE = /^-ERR unknown (?:command '([^']{1,128})'|subcommand '([^']{1,128})'\. Try (\w+) HELP\.)/

/**
 * Translates the engine's error for a command or subcommand of the table that it does not know, because it is an older
 * version or another kind of engine. Undefined for every other error.
 */
export function missingCommand(error: string): HomeportError | undefined {
  const [, command, subcommand, container] = UNKNOWN_TO_ENGINE.exec(error) ?? []
  const row = byName.get((command ?? `${container}|${subcommand}`).toUpperCase())
  if (!row) return undefined
  const engines = enginesWith(row.name)
  return new HomeportError('command_not_available', { name: row.name.replace('|', ' '), ...(engines && { engines }) })
}
