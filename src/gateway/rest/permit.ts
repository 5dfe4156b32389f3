import { HomeportError } from '../../contract/errors.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { AskEngine } from '../limits/engine-questions.js'
import { isPrepared, type Slot } from './execute.js'
import type { PreparedCommand } from './prepare.js'

/** Holds the commands of a request against the limits and counts those that pass; what is refused is an error in its slot. */
export async function permitEach(
  guard: DatabaseGuard,
  slots: readonly Slot[],
  ask: AskEngine,
): Promise<readonly Slot[]> {
  const permitted: Slot[] = []
  for (const slot of slots) {
    const verdict = slot instanceof HomeportError ? slot : inspect(guard, slot, ask)
    const ruled = verdict instanceof Promise ? await verdict : verdict
    permitted.push(ruled ?? slot)
    if (ruled === undefined && isPrepared(slot)) guard.count(slot.command, 1)
  }
  return permitted
}

/** The same for commands that stand or fall together: where one is refused, none is counted. */
export async function permitAll(
  guard: DatabaseGuard,
  slots: readonly Slot[],
  ask: AskEngine,
): Promise<readonly Slot[]> {
  const permitted = await permitEach(guard, slots, ask)
  if (permitted.every(isPrepared)) return permitted
  for (const slot of permitted) if (isPrepared(slot)) guard.count(slot.command, -1)
  return permitted
}

/** Sends commands that have passed, when it is their turn, and measures how long they take. */
export async function runMeasured<Result>(
  guard: DatabaseGuard,
  slots: readonly Slot[],
  send: () => Promise<Result>,
): Promise<Result> {
  const commands = slots.filter(isPrepared)
  const slow = commands.length > 0 ? guard.bandwidth.turn() : undefined
  if (slow) await slow
  const turn = commands.length > 0 ? guard.rate.acquire(commands.length) : undefined
  if (turn) await turn
  const scripts = commands.filter(({ command }) => command.effect === 'script').map(() => guard.scripts.begin())
  const sentAt = performance.now()
  try {
    return await send()
  } finally {
    for (const settle of scripts) settle()
    record(guard, commands, 1000 * (performance.now() - sentAt))
  }
}

function inspect(guard: DatabaseGuard, { command, args, wire }: PreparedCommand, ask: AskEngine) {
  const bytes = typeof wire === 'string' ? Buffer.byteLength(wire) : wire.length
  return guard.inspect(command, args, bytes, ask)
}

function record({ meter }: DatabaseGuard, commands: readonly PreparedCommand[], durationUs: number): void {
  const last = commands.at(-1)
  if (!last) return
  if (last.command.access === 'write') meter.writeLatency.record(durationUs)
  else meter.readLatency.record(durationUs)
}
