import type { IncomingMessage, ServerResponse } from 'node:http'
import { nextTurn, onceOver } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { DEFAULT_MAX_CLIENTS } from '../deps.js'
import type { DatabaseGuard, Verdict } from '../limits/database-guard.js'
import type { AskEngine } from '../limits/engine-questions.js'
import { MAX_KEY_BYTES } from '../limits/inspect.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import { isLimited, isPrepared, type PreparedCommand, type Slot } from './slots.js'

/** No character of a text is longer in UTF-8. */
const MOST_BYTES_PER_CHARACTER = 3

const PERMITTED_A_TURN = 1_000
const NONE: readonly (() => void)[] = []
const NOTHING_TO_SETTLE = (): void => {}

/** What commands are held against. */
export interface Limiter {
  readonly guard: DatabaseGuard
  readonly ask: AskEngine
  /** What the commands of the request are going to do that have passed. */
  readonly batch: ReadBatch
}

/**
 * Holds the commands of a request against the limits and counts those that pass; what is refused is an error in its
 * slot. A promise only where the engine has to be asked first.
 */
export function permitEach(limiter: Limiter, slots: readonly Slot[]): readonly Slot[] | Promise<readonly Slot[]> {
  const permitted: Slot[] = []
  for (const slot of slots) {
    const verdict = isLimited(slot) ? inspect(limiter, slot) : undefined
    if (verdict instanceof Promise) return permitRest(limiter, slots, permitted, verdict)
    permitted.push(conclude(limiter, slot, verdict))
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
  if (asked) permitted.push(conclude(limiter, asked, await first))
  for (const slot of rest) {
    permitted.push(conclude(limiter, slot, isLimited(slot) ? await inspect(limiter, slot) : undefined))
  }
  return permitted
}

function conclude({ guard }: Limiter, slot: Slot, verdict: Verdict): Slot {
  if (verdict) return verdict
  if (isLimited(slot)) guard.count(slot.command, 1)
  return slot
}

/** The same for any number of commands, in slices between which others are served. */
export async function permitInTurns(limiter: Limiter, slots: readonly Slot[]): Promise<readonly Slot[]> {
  if (slots.length <= PERMITTED_A_TURN) return permitEach(limiter, slots)
  const permitted: Slot[] = []
  for (let at = 0; at < slots.length; at += PERMITTED_A_TURN) {
    for (const slot of await permitEach(limiter, slots.slice(at, at + PERMITTED_A_TURN))) permitted.push(slot)
    await nextTurn()
  }
  return permitted
}

/** The same for commands that stand or fall together: where one is refused, none is counted. */
export async function permitAll(limiter: Limiter, slots: readonly Slot[]): Promise<readonly Slot[]> {
  const permitted = await permitInTurns(limiter, slots)
  if (permitted.every(isPrepared)) return permitted
  for (const slot of permitted) if (isLimited(slot)) limiter.guard.count(slot.command, -1)
  return permitted
}

function inspect(limiter: Limiter, { command, args, wire }: PreparedCommand): Verdict | Promise<Verdict> {
  const { guard } = limiter
  // A short command that makes no entry larger cannot break a limit by itself.
  const isShort = wire.length * MOST_BYTES_PER_CHARACTER <= MAX_KEY_BYTES
  if (isShort && command.effect === 'none' && guard.isOpen) return undefined
  return guard.inspect(command, args, Buffer.byteLength(wire), limiter.ask, limiter.batch)
}

/** When commands may be sent that are within the limits; undefined when that is now. */
export function turnOf(guard: DatabaseGuard, commands: number): Promise<void> | undefined {
  if (commands === 0) return undefined
  const slow = guard.bandwidth.turn()
  return slow ? slow.then(() => guard.rate.acquire(commands)) : guard.rate.acquire(commands)
}

/** What the replies to commands are awaited from, where that is no ordinary command. */
export function awaitedOf(commands: readonly PreparedCommand[]): 'script' | undefined {
  return commands.some(({ command }) => command.effect === 'script') ? 'script' : undefined
}

/** Notes that commands are sent now. @returns what has to be called once they are answered, or are not going to be. */
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

/** Whose commands they are. */
interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Resolves once the database is not paused for any of these commands: at once, as a rule. Never where the client goes
 * before, or has been answered; then nothing is carried out.
 * @throws HomeportError `too_many_clients` where as many commands are held as the database may have clients
 */
export async function whenResumed(guard: DatabaseGuard, slots: readonly Slot[], client: Waiting): Promise<void> {
  const { pause, database } = guard
  while (pause.mode !== undefined && (await isAnyHeld(guard, slots.filter(isPrepared)))) {
    if (pause.heldCount >= (database.maxClients ?? DEFAULT_MAX_CLIENTS)) throw new HomeportError('too_many_clients', {})
    await new Promise<void>((resolve) => {
      if (client.request.socket.destroyed) return
      const cancel = pause.hold(resolve)
      onceOver(client.request, client.response, cancel)
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
