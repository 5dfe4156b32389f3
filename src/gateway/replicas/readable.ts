import { COMMANDS } from '../../contract/databases/commands.js'
import type { KnownCommand } from '../commands/command-table.js'
import { effectOf } from '../limits/command-effect.js'

/**
 * Reads that only the primary answers:
 * - a cursor of the SCAN family means something to the engine alone that gave it;
 * - TOUCH and OBJECT are about when a key was last used, which decides what the primary evicts.
 */
const PRIMARY_ONLY: ReadonlySet<string> = new Set(['SCAN', 'HSCAN', 'SSCAN', 'ZSCAN', 'TOUCH', 'OBJECT'])

/** By the position of a command in the command table. */
const READABLE: readonly boolean[] = COMMANDS.map(
  (row) =>
    row.allowed &&
    row.access === 'read' &&
    row.state === 'stateless' &&
    // A script may be known to the primary only, because no engine replicates scripts that were loaded.
    effectOf(row.name) !== 'script' &&
    !PRIMARY_ONLY.has(row.name),
)

/** Whether a replica may answer a command as well as the primary. */
export function isReadable(command: KnownCommand | undefined): boolean {
  return command !== undefined && READABLE[command.index] === true
}

const REFUSALS = ['-LOADING', '-MASTERDOWN']

/** Whether among these replies may be one of a replica that cannot answer now. A value that looks like it counts too. */
export function mayHoldRefusal(replies: Buffer): boolean {
  return REFUSALS.some((word) => replies.includes(word))
}

/** Whether the reply at [start, end) is that of a replica that cannot answer now. */
export function isRefusal(chunk: Buffer, start: number, end: number): boolean {
  if (chunk[start] !== REFUSALS[0]?.charCodeAt(0)) return false
  const text = chunk.toString('latin1', start, Math.min(end, start + 16))
  return REFUSALS.some((word) => text.startsWith(word))
}
