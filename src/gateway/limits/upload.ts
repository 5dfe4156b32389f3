import type { ServedCommand } from '../commands/command-table.js'
import { forEngine } from '../commands/script-flags.js'
import type { Argument } from '../resp/encode.js'
import { hasOneKey } from './command-keys.js'
import type { Growth } from './entry-watch.js'
import { growthOf } from './inspect.js'

/** The name and the key of a command. */
const NAME_AND_KEY = 2
/** The name of a script's command, the script, and how many keys there are. */
const BEFORE_KEYS = 3
const MESSAGES: ReadonlySet<string> = new Set(['PUBLISH', 'SPUBLISH'])
const PAIRS: ReadonlySet<string> = new Set(['MSET', 'MSETNX'])

/**
 * Whether every limit of a command can be judged before its large argument comes. `before` are the arguments in front of
 * that one, name first, and `isLast` tells that none follows it.
 */
export function isUploadable(command: ServedCommand, before: readonly Argument[], isLast: boolean): boolean {
  if (command.state !== 'stateless' || before.length < NAME_AND_KEY) return false
  if (MESSAGES.has(command.name)) return true
  if (PAIRS.has(command.name)) return isLast && before.length % 2 === 0
  switch (command.effect) {
    case 'script':
      return hasKeys(before) && forEngine(command.name, before) === undefined
    case 'none':
    case 'grows':
      return command.access === 'write' && hasOneKey(command.name)
    case 'extends':
      return command.name === 'SETRANGE' && before.length > NAME_AND_KEY
    case 'gathers':
    case 'delivers':
      return false
  }
}

/** Whether as many keys have come as the script says. */
function hasKeys(before: readonly Argument[]): boolean {
  const count = Number(before[2]?.toString())
  return Number.isInteger(count) && count >= 0 && before.length >= BEFORE_KEYS + count
}

/** What such a command is going to do to entries, of which `bytes` are known so far, `valueBytes` of them to come. */
export function uploadGrowth(
  command: ServedCommand,
  before: readonly Argument[],
  bytes: number,
  valueBytes: number,
): readonly Growth[] {
  const key = before[PAIRS.has(command.name) ? before.length - 1 : 1] ?? ''
  const made: Growth = { key: Buffer.from(key), bytes: valueBytes, how: 'makes' }
  if (command.access !== 'write') return []
  if (command.effect === 'extends') return [{ ...made, bytes: valueBytes + offsetOf(before[2]) }]
  const known = growthOf(command, before, bytes)
  return command.effect === 'none' ? [...known, made] : known
}

function offsetOf(arg: Argument | undefined): number {
  const offset = Number(arg?.toString())
  return Number.isSafeInteger(offset) && offset > 0 ? offset : 0
}
