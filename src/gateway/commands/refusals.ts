import type { CommandState } from '../../contract/databases/commands.js'
import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import { encodeError } from '../resp/encode.js'
import type { KnownCommand, ServedCommand } from './command-table.js'

/**
 * Number of arguments of the commands that the gateway answers, counted as an engine counts: with the command's name,
 * and with the subcommand's name.
 */
const ARITIES: Readonly<Record<string, readonly [least: number, most: number]>> = {
  AUTH: [2, Infinity],
  READONLY: [1, 1],
  READWRITE: [1, 1],
  RESET: [1, 1],
  SELECT: [2, 2],
  'CLIENT|CAPA': [3, Infinity],
  'CLIENT|GETNAME': [2, 2],
  'CLIENT|HELP': [2, 2],
  'CLIENT|ID': [2, 2],
  'CLIENT|INFO': [2, 2],
  'CLIENT|KILL': [3, Infinity],
  'CLIENT|LIST': [2, Infinity],
  'CLIENT|NO-EVICT': [3, 3],
  'CLIENT|PAUSE': [3, 4],
  'CLIENT|REPLY': [3, 3],
  'CLIENT|SETINFO': [4, 4],
  'CLIENT|SETNAME': [3, 3],
  'CLIENT|UNBLOCK': [3, 4],
  'CLIENT|UNPAUSE': [2, 2],
  'ACL|DELUSER': [3, Infinity],
  'ACL|GENTOKEN': [3, 4],
  'ACL|GETUSER': [3, 3],
  'ACL|HELP': [2, 2],
  'ACL|LIST': [2, 2],
  'ACL|LOAD': [2, 2],
  'ACL|LOG': [2, Infinity],
  'ACL|RESTTOKEN': [4, 4],
  'ACL|SAVE': [2, 2],
  'ACL|SETUSER': [3, Infinity],
  'ACL|USERS': [2, 2],
  'ACL|WHOAMI': [2, 2],
  'COMMAND|HELP': [2, 2],
  'CONFIG|GET': [3, Infinity],
  'CONFIG|HELP': [2, 2],
  'CONFIG|SET': [4, Infinity],
  'MEMORY|HELP': [2, 2],
  'SCRIPT|HELP': [2, 2],
}

/** The error for a wrong number of arguments of a command that the gateway answers; undefined when it is right. */
export function arityProblem(name: string, argumentCount: number): string | undefined {
  const [least, most] = ARITIES[name] ?? [0, Infinity]
  if (argumentCount >= least && argumentCount <= most) return undefined
  return wrongArityText(name.toLowerCase())
}

/** The engine's text for a wrong number of arguments, without the error's first word. */
function wrongArityText(command: string): string {
  return `wrong number of arguments for '${command}' command`
}

/** The engine's error for a wrong number of arguments. */
export function wrongArity(command: string): Buffer {
  return encodeError(`ERR ${wrongArityText(command)}`)
}

/** The engine's error for a command that a subscriber may not send in RESP2; `name` is a row of the command table. */
export function notForSubscribers(name: string): Buffer {
  const allowed = '(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET'
  return encodeError(`ERR Can't execute '${name.toLowerCase()}': only ${allowed} are allowed in this context`)
}

/** Characters of the arguments of an unknown command that its error repeats, as engines do. */
const SHOWN_CHARACTERS = 128

/**
 * The error for a command that every client is refused: it has no row in the command table, or the row forbids it. `words`
 * are the command's name and arguments, as sent.
 */
export function refusalOf(row: KnownCommand | undefined, words: readonly string[]): HomeportError {
  const [name = '', ...args] = words
  if (!row) return refusal('command_unknown', { name, args: shownOf(args) })
  return refusal('command_not_available', { name: row.name.replace('|', ' ') })
}

/** Like `refusalOf`, for a subcommand of a container; `container` is in upper case. */
export function subcommandRefusal(row: KnownCommand | undefined, container: string, name: string): HomeportError {
  return row ? refusalOf(row, []) : refusal('subcommand_unknown', { container, name })
}

function shownOf(args: readonly string[]): readonly string[] {
  const shown: string[] = []
  let left = SHOWN_CHARACTERS
  for (const arg of args) {
    if (left <= 0) break
    const text = arg.slice(0, left)
    shown.push(text)
    left -= text.length + 3
  }
  return shown
}

/** Commands about the database itself, its engine or the connection: the gateway answers them. */
const ANSWERED_HERE: ReadonlySet<CommandState> = new Set(['managed', 'observed', 'session'])

/** Whether the gateway answers a command, and no engine. */
export const isAnsweredHere = ({ state }: ServedCommand): boolean => ANSWERED_HERE.has(state)

/**
 * Longest command that the gateway answers, bytes. Other clients wait while the gateway reads such a command as text and
 * hashes the passwords in it.
 */
const MAX_ANSWERED_BYTES = 262_144

/** The refusal of a command for the gateway if it is too long. `bytes` is its length. */
export function tooLongToAnswer(bytes: number): HomeportError | undefined {
  if (bytes <= MAX_ANSWERED_BYTES) return undefined
  return refusal('request_too_large', { limitBytes: MAX_ANSWERED_BYTES, actualBytes: bytes })
}
