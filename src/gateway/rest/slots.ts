import type { CommandState } from '../../contract/databases/commands.js'
import { HomeportError, refusal } from '../../contract/errors/errors.js'
import { arityProblem } from '../commands/refusals.js'
import type { ParsedCommand } from './json-commands.js'
import { type PreparedCommand, prepareCommand } from './prepare.js'

/** A command of a pipeline that is ready to be carried out, or the error that stands in its slot. */
export type Slot = PreparedCommand | HomeportError

/** Prepares the commands of a pipeline; what cannot be carried out is an error in its slot. */
export function prepareSlots(commands: readonly ParsedCommand[]): readonly Slot[] {
  return commands.map(prepareSlot)
}

function prepareSlot(command: ParsedCommand): Slot {
  if (command instanceof HomeportError) return command
  try {
    return prepareCommand(command)
  } catch (error) {
    if (error instanceof HomeportError) return error
    throw error
  }
}

/**
 * The same commands, where those that no engine answers are errors if they have a wrong number of arguments: an engine
 * would say so when it queues them, and discard the transaction.
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

/** Commands about the database itself, its engine, or (SELECT) the connection. */
const MANAGED_STATES: ReadonlySet<CommandState> = new Set(['managed', 'observed', 'session'])

/** Whether a slot holds a command that is not passed on as it is. */
export function isManaged(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && MANAGED_STATES.has(slot.command.state)
}

/** Whether a slot holds a command that is sent to the engine as it is. */
export function isForEngine(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && !isManaged(slot)
}

/** Whether a slot holds a command that counts, and that the limits of the database hold for. */
export function isLimited(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && slot.command.state !== 'managed' && slot.command.state !== 'session'
}
