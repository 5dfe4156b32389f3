import { HomeportError, refusal } from '../../contract/errors/errors.js'
import { bareContainer, findCommandByName, findSubcommand, type ServedCommand } from '../commands/command-table.js'
import { arityProblem, isAnsweredHere, refusalOf, subcommandRefusal, tooLongToAnswer } from '../commands/refusals.js'
import { forEngine } from '../commands/script-flags.js'
import { type Argument, encodeCommand, encodeTextCommand } from '../resp/encode.js'
import { encodeInSlices, isLargeCommand } from './large-commands.js'
import type { CommandArguments, ParsedCommand } from './parse-commands.js'

/** A command that may be sent to the engine. */
export interface PreparedCommand {
  readonly wire: string | Buffer
  readonly command: ServedCommand
  readonly args: CommandArguments
}

/** Most words of a command that an error repeats. */
const MAX_SHOWN_WORDS = 48
const MAX_WORD_BYTES = 65_536

/**
 * Checks a command against the command table and encodes it.
 * @throws HomeportError `command_unknown`, `subcommand_unknown`, `command_not_available`, `command_not_for_rest`,
 * `request_too_large`
 */
export function prepareCommand(args: CommandArguments): PreparedCommand {
  const { command, words } = checked(args)
  return { wire: encode(words), command, args }
}

/** Like `prepareCommand`, for a command of any length, in slices that yield to the event loop. */
export async function prepareLargeCommand(args: CommandArguments): Promise<PreparedCommand> {
  if (!isLargeCommand(args)) return prepareCommand(args)
  const { command, words } = checked(args)
  return { wire: await encodeInSlices(words), command, args }
}

/** The row of a command, and the words for the engine. */
function checked(args: CommandArguments): { readonly command: ServedCommand; readonly words: CommandArguments } {
  const name = textOf(args[0])
  const command = findCommandByName(name)
  if (!command?.allowed) throw refusalOf(command, args.slice(0, MAX_SHOWN_WORDS).map(textOf))
  const row = command.state === 'container' ? rowWithin(command, args) : command
  if (!row.rest || (row.state === 'blocking-option' && asksToBlock(args))) {
    throw refusal('command_not_for_rest', { name: name.toUpperCase() })
  }
  const tooLong = isAnsweredHere(row) ? tooLongToAnswer(bytesOf(args)) : undefined
  if (tooLong) throw tooLong
  return { command: row, words: forEngine(row.name, args) ?? args }
}

const bytesOf = (args: CommandArguments): number => args.reduce((sum, arg) => sum + Buffer.byteLength(arg), 0)

function rowWithin(container: ServedCommand, args: CommandArguments): ServedCommand {
  return args.length > 1 ? subcommandOf(container, textOf(args[1])) : (bareContainer(container) ?? container)
}

function subcommandOf(container: ServedCommand, subcommand: string): ServedCommand {
  const row = findSubcommand(container.name, subcommand)
  // A container that REST does not serve is refused as a whole.
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

/** The text of a word, cut at a length that no name has. */
function textOf(arg: string | Buffer | undefined): string {
  return typeof arg === 'string' ? arg : (arg?.toString('utf8', 0, MAX_WORD_BYTES) ?? '')
}

function encode(args: CommandArguments): string | Buffer {
  return args.every(isText) ? encodeTextCommand(args) : encodeCommand(args)
}

function isText(arg: string | Buffer): arg is string {
  return typeof arg === 'string'
}

/** A command that is ready to run, or the error that answers it. The slots of a request have the order of its commands. */
export type Slot = PreparedCommand | HomeportError

/** Prepares the commands of a pipeline. A command that cannot run becomes an error in its slot. */
export function prepareSlots(commands: readonly ParsedCommand[]): readonly Slot[] {
  return commands.map(prepareSlot)
}

function prepareSlot(command: ParsedCommand): Slot {
  if (command instanceof HomeportError) return command
  try {
    return prepareCommand(command)
  } catch (error) {
    return refusalIn(error)
  }
}

/** Prepares a command of any length, in slices that yield to the event loop. One that cannot run becomes an error. */
export async function prepareLargeSlot(command: ParsedCommand): Promise<Slot> {
  return command instanceof HomeportError ? command : prepareLargeCommand(command).catch(refusalIn)
}

function refusalIn(error: unknown): HomeportError {
  if (error instanceof HomeportError) return error
  throw error
}

/**
 * Checks the number of arguments of the commands that the gateway answers. In a transaction an engine checks the number when
 * it queues a command, and a wrong one discards the transaction.
 */
export function checkArities(slots: readonly Slot[]): readonly Slot[] {
  return slots.map((slot) => {
    if (!isManaged(slot)) return slot
    const problem = arityProblem(slot.command.name, slot.args.length)
    return problem === undefined ? slot : refusal('command_malformed', { problem })
  })
}

/** Whether a slot holds a command. */
export function isPrepared(slot: Slot): slot is PreparedCommand {
  return !(slot instanceof HomeportError)
}

/** Whether a slot holds a command that the gateway answers. */
export function isManaged(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && isAnsweredHere(slot.command)
}

/** Whether a slot holds a command that the engine answers. */
export function isForEngine(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && !isManaged(slot)
}

/** Whether a slot holds a command that is counted and checked against the limits of the database. */
export function isLimited(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && slot.command.state !== 'managed' && slot.command.state !== 'session'
}

/**
 * Translations of options that the REST API has and engines lack. Only for the owner of a database: another user may lack
 * permission for the commands that a translation uses.
 */
const TRANSLATIONS: Readonly<Record<string, (args: readonly Argument[]) => readonly Argument[] | undefined>> = {
  SCAN: scanWithTypes,
  XREADGROUP: readWithoutConsumer,
  XTRIM: trimExactly,
}

const SCAN_TYPES = `local found=redis.call('SCAN',unpack(ARGV)) local both={}
for _,key in ipairs(found[2]) do both[#both+1]=key both[#both+1]=redis.call('TYPE',key).ok end
return {found[1],both}`
/** Largest COUNT that is passed on. COUNT is a hint; an engine examines this many keys in a few milliseconds. */
const MAX_COUNT = 10_000

/** Engines create a consumer for a read with NOACK; this script deletes it again unless it was there before. */
const READ_NOACK = `local known={}
for i,key in ipairs(KEYS) do
  local all=redis.pcall('XINFO','CONSUMERS',key,ARGV[1])
  if not all.err then for _,one in ipairs(all) do if one[2]==ARGV[2] then known[i]=true end end end
end
local read=redis.pcall('XREADGROUP',unpack(ARGV,3))
for i,key in ipairs(KEYS) do if not known[i] then redis.pcall('XGROUP','DELCONSUMER',key,ARGV[1],ARGV[2]) end end
return read`
/** Most arguments that a script passes on, because the stack of Lua is limited. */
const MAX_SCRIPT_ARGUMENTS = 1_000

/** The same slots, with the translation as the bytes to send where a command has one. */
export function translated(slots: readonly Slot[]): readonly Slot[] {
  return slots.some((slot) => isPrepared(slot) && slot.command.name in TRANSLATIONS) ? slots.map(translate) : slots
}

function translate(slot: Slot): Slot {
  const words = isPrepared(slot) ? TRANSLATIONS[slot.command.name]?.(slot.args) : undefined
  return words && isPrepared(slot) ? ({ ...slot, wire: encodeCommand(words) } satisfies PreparedCommand) : slot
}

/** `SCAN cursor [MATCH pattern] [COUNT n] [TYPE type] WITHTYPE`: replies with alternating keys and types. */
function scanWithTypes(args: readonly Argument[]): readonly Argument[] | undefined {
  const kept: Argument[] = []
  let withTypes = false
  for (let at = 2; at < args.length; at++) {
    const [option = '', value = ''] = [args[at], args[at + 1]]
    const word = wordOf(option)
    if (word === 'WITHTYPE') {
      withTypes = true
      continue
    }
    at++
    kept.push(option, word === 'COUNT' && Number(value) > MAX_COUNT ? String(MAX_COUNT) : value)
  }
  return withTypes ? ['EVAL_RO', SCAN_TYPES, '0', args[1] ?? '', ...kept] : undefined
}

/** Without LIMIT, `~` trims exactly: clients rely on the bound, engines only trim whole nodes of the stream. */
function trimExactly(args: readonly Argument[]): readonly Argument[] | undefined {
  const isRough = args.length === 5 && args[3]?.toString() === '~'
  return isRough ? args.map((arg, at) => (at === 3 ? '=' : arg)) : undefined
}

function readWithoutConsumer(args: readonly Argument[]): readonly Argument[] | undefined {
  const streams = args.findIndex((arg) => wordOf(arg) === 'STREAMS')
  const isNoAck = args.slice(4, Math.max(4, streams)).some((arg) => wordOf(arg) === 'NOACK')
  if (!isNoAck || args.length > MAX_SCRIPT_ARGUMENTS || wordOf(args[1] ?? '') !== 'GROUP') return undefined
  const keys = args.slice(streams + 1, streams + 1 + (args.length - streams - 1) / 2)
  return ['EVAL', READ_NOACK, String(keys.length), ...keys, args[2] ?? '', args[3] ?? '', ...args.slice(1)]
}

function wordOf(arg: Argument): string {
  return arg.length < 10 ? arg.toString().toUpperCase() : ''
}
