import type { IncomingMessage, ServerResponse } from 'node:http'
import { yieldToEventLoop } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { onResponseOver } from '../../http/index.js'
import { findCommandByName } from '../commands/command-table.js'
import { DEFAULT_MAX_CLIENTS } from '../deps.js'
import { isNotServedHere } from '../engine/unsent.js'
import type { DatabaseGuard, Verdict } from '../limits/database-guard.js'
import type { AskEngine } from '../limits/engine-questions.js'
import { MAX_KEY_BYTES } from '../limits/inspect.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import type { BodyCommand } from './body-upload.js'
import { isLimited, isPrepared, type PreparedCommand, type Slot } from './slots.js'

/** Most bytes in UTF-8 of one UTF-16 code unit. */
const MAX_BYTES_PER_CHARACTER = 3

/** Number of commands that are checked before a yield to the event loop. */
const SLICE_COMMANDS = 1_000
const NONE: readonly (() => void)[] = []
const NOTHING_TO_SETTLE = (): void => {}

/** The guard of a database, and a function that asks its engine. */
interface Limits {
  readonly guard: DatabaseGuard
  readonly ask: AskEngine
}

/** The limits against which the commands of a request are checked. */
export interface Limiter extends Limits {
  /** Stream entries that permitted commands of the request will add to consumers. */
  readonly batch: ReadBatch
}

/**
 * Checks the commands of a request against the limits and counts those that pass. A refused command becomes an error in
 * its slot. Returns a promise only when the engine has to be asked first.
 */
export function permitEach(limiter: Limiter, slots: readonly Slot[]): readonly Slot[] | Promise<readonly Slot[]> {
  const permitted: Slot[] = []
  for (const slot of slots) {
    const verdict = isLimited(slot) ? inspect(limiter, slot) : undefined
    if (verdict instanceof Promise) return permitRest(limiter, slots, permitted, verdict)
    permitted.push(applyVerdict(limiter, slot, verdict))
  }
  return permitted
}

async function permitRest(
  limiter: Limiter,
  slots: readonly Slot[],
  permitted: Slot[],
  first: Promise<Verdict>,
): Promise<readonly Slot[]> {
  const [asked, ...rest] = slots.slice(permitted.length)
  if (asked) permitted.push(applyVerdict(limiter, asked, await first))
  for (const slot of rest) {
    permitted.push(applyVerdict(limiter, slot, isLimited(slot) ? await inspect(limiter, slot) : undefined))
  }
  return permitted
}

/** @throws HomeportError when the engine could not be asked because this node no longer serves the database */
function applyVerdict({ guard }: Limiter, slot: Slot, verdict: Verdict): Slot {
  if (isNotServedHere(verdict)) throw verdict
  if (verdict) return verdict
  if (isLimited(slot)) guard.count(slot.command, 1)
  return slot
}

/** Like `permitEach`, for any number of commands, in slices that yield to the event loop. */
export async function permitInSlices(limiter: Limiter, slots: readonly Slot[]): Promise<readonly Slot[]> {
  if (slots.length <= SLICE_COMMANDS) return permitEach(limiter, slots)
  const permitted: Slot[] = []
  for (let at = 0; at < slots.length; at += SLICE_COMMANDS) {
    for (const slot of await permitEach(limiter, slots.slice(at, at + SLICE_COMMANDS))) permitted.push(slot)
    await yieldToEventLoop()
  }
  return permitted
}

/** Like `permitInSlices`, for a transaction: when one command is refused, none is counted. */
export async function permitAll(limiter: Limiter, slots: readonly Slot[]): Promise<readonly Slot[]> {
  const permitted = await permitInSlices(limiter, slots)
  if (permitted.every(isPrepared)) return permitted
  for (const slot of permitted) if (isLimited(slot)) limiter.guard.count(slot.command, -1)
  return permitted
}

function inspect(limiter: Limiter, { command, args, wire }: PreparedCommand): Verdict | Promise<Verdict> {
  const { guard } = limiter
  // A short command that makes no entry larger cannot exceed a limit by itself.
  const isShort = wire.length * MAX_BYTES_PER_CHARACTER <= MAX_KEY_BYTES
  if (isShort && command.effect === 'none' && guard.isOpen) return undefined
  return guard.inspect(command, args, Buffer.byteLength(wire), limiter.ask, limiter.batch)
}

/** Checks a command whose body is uploaded, waits for its turn and counts it. @throws HomeportError why it is refused */
export async function permitUpload({ guard, ask }: Limits, { command, before, bodyBytes }: BodyCommand): Promise<void> {
  const bytes = bodyBytes + before.reduce((sum, arg) => sum + Buffer.byteLength(arg), 0)
  const verdict = await guard.inspectUpload(command, before, { bytes, valueBytes: bodyBytes }, ask)
  if (verdict) throw verdict
  await turnOf(guard, 1)
  guard.count(command, 1)
}

/** Checks and counts the command of an event stream. @throws HomeportError why it is refused */
export async function permitEvents({ guard, ask }: Limits, args: readonly string[]): Promise<void> {
  const command = findCommandByName(args[0] ?? '')
  if (!command?.allowed) throw new Error(`no row of the command table for the event path ${args[0]}`)
  const verdict = await guard.inspect(command, args, 0, ask)
  if (verdict) throw verdict
  guard.checkClientLimit()
  const tooMany = command.name === 'MONITOR' ? guard.monitors.refusal : undefined
  if (tooMany) throw tooMany
  guard.count(command, 1)
}

/** Waits until commands within the limits may be sent; undefined when that is now. */
export function turnOf(guard: DatabaseGuard, commands: number): Promise<void> | undefined {
  if (commands === 0) return undefined
  const slow = guard.bandwidth.turn()
  return slow ? slow.then(() => guard.rate.acquire(commands)) : guard.rate.acquire(commands)
}

/** Why the replies may take long: `script` when a script is among the commands. */
export function awaitedOf(commands: readonly PreparedCommand[]): 'script' | undefined {
  return commands.some(({ command }) => command.effect === 'script') ? 'script' : undefined
}

/** Starts to measure commands that are sent now. @returns a function to call once their replies have arrived or are lost */
export function measure({ meter, scripts }: DatabaseGuard, commands: readonly PreparedCommand[]): () => void {
  const last = commands.at(-1)
  if (!last) return NOTHING_TO_SETTLE
  const latency = last.command.access === 'write' ? meter.writeLatency : meter.readLatency
  const running = awaitedOf(commands)
    ? commands.filter(({ command }) => command.effect === 'script').map(() => scripts.begin())
    : NONE
  const sentAt = performance.now()
  return () => {
    for (const settle of running) settle()
    latency.record(1000 * (performance.now() - sentAt))
  }
}

/** The client that waits. */
interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Resolves once the database is not paused for any of these commands: usually at once. Never resolves if the client
 * disconnects or is answered before that: then the commands do not run.
 * @throws HomeportError `too_many_clients` when as many commands wait as the database may have clients
 */
export async function whenResumed(guard: DatabaseGuard, slots: readonly Slot[], client: Waiting): Promise<void> {
  const { pause, database } = guard
  while (pause.mode !== undefined && (await isAnyHeld(guard, slots.filter(isPrepared)))) {
    if (pause.heldCount >= (database.maxClients ?? DEFAULT_MAX_CLIENTS)) throw new HomeportError('too_many_clients', {})
    await new Promise<void>((resolve) => {
      if (client.request.socket.destroyed) return
      const cancel = pause.hold(resolve)
      onResponseOver(client.request, client.response, cancel)
    })
  }
}

async function isAnyHeld({ pause }: DatabaseGuard, commands: readonly PreparedCommand[]): Promise<boolean> {
  for (const { command, args } of commands) {
    const words = (): { args: typeof args; count: number } => ({ args, count: args.length })
    let held = pause.holds(command, words)
    while (typeof held !== 'boolean') {
      await held
      held = pause.holds(command, words)
    }
    if (held) return true
  }
  return false
}
