import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import type { KnownCommand } from './command-table.js'

/** So many characters of the arguments of a command that nobody knows are repeated, as engines do it. */
const SHOWN_CHARACTERS = 128

/**
 * Why a command is refused to everybody: its row in the command table says so, or it has none. `words` are the command's
 * name and what follows it, as they were sent.
 */
export function refusalOf(row: KnownCommand | undefined, words: readonly string[]): HomeportError {
  const [name = '', ...args] = words
  if (!row) return refusal('command_unknown', { name, args: shownOf(args) })
  return refusal('command_not_available', { name: row.name.replace('|', ' ') })
}

/** The same for a subcommand of a container; `container` is in upper case. */
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
