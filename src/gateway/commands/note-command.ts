import type { Session } from '../client/session.js'
import { frameArguments } from '../resp/frame-arguments.js'
import { copied } from '../resp/lent-memory.js'
import { findSubcommand, type KnownCommand } from './command-table.js'

/** What clients may send that have not logged in. */
const BEFORE_LOGIN = new Set(['AUTH', 'HELLO', 'RESET', 'QUIT'])
/** More words of a command are not looked at; a line of MONITOR is told from others by its beginning. */
const MOST_WORDS = 256

/** Tells those who monitor the database of the parser's present frame, which has been sent or answered. */
export function noteCommand(session: Session, command: KnownCommand | undefined): void {
  const { parser, user, services } = session
  if (parser.repeats || !command?.allowed || (user === undefined && !BEFORE_LOGIN.has(command.name))) return
  const { frameBuffer, frameStart, frameEnd, argumentCount } = parser
  const frame = copied(frameBuffer.subarray(frameStart, frameEnd))
  const words = frameArguments(frame, 0, Math.min(argumentCount, MOST_WORDS))
  const row = command.state === 'container' ? findSubcommand(command.name, words[1]?.toString() ?? '') : command
  const isBare = row === undefined && argumentCount === 1
  const sent = isBare ? command : row
  if (sent?.allowed) services.guard.monitors.note({ row: sent, words, address: session.profile.address, isWhole: true })
}

/** The same for a command that is passed on while it comes; `words` are those in front of its large one. */
export function noteUpload(session: Session, command: KnownCommand, words: readonly Buffer[]): void {
  const { monitors } = session.services.guard
  if (!monitors.isWatched || !command.allowed) return
  monitors.note({ row: command, words, address: session.profile.address, isWhole: false })
}
