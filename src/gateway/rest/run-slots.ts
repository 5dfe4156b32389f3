import type { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { AskEngine } from '../limits/engine-questions.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import type { NearbyLane } from '../replicas/nearby-lane.js'
import type { Entrance } from './entrances.js'
import { seeing, sendToNearest } from './nearest.js'
import { awaitedOf, type Limiter, measure, turnOf } from './permit.js'
import type { PreparedCommand } from './prepare.js'
import { type LargeSink, type RepliesReader, sendCommands, sentCommands } from './send-commands.js'
import { isForEngine, isManaged, type Slot } from './slots.js'

/** Whose request it is. */
export interface RequestEnds {
  /** Answers a command about the database itself. Never rejects. */
  administer(command: PreparedCommand): Promise<Buffer>
  /** What is asked before so much more of the replies is held. @returns why it must not be, if so */
  onHeld(bytes: number): HomeportError | undefined
}

/** What the commands of a request travel on, and what limits them. */
export class RequestLane implements Limiter {
  /** The way to the replica; undefined where this node serves no region. */
  readonly nearby: NearbyLane | undefined
  /** What the client says that it has seen, as a moment of the database. */
  readonly moment: number
  readonly ends: RequestEnds
  readonly #entrance: Entrance
  #batch: ReadBatch | undefined

  constructor(entrance: Entrance, nearby: NearbyLane | undefined, moment: number, ends: RequestEnds) {
    this.#entrance = entrance
    this.nearby = nearby
    this.moment = moment
    this.ends = ends
  }

  get guard(): DatabaseGuard {
    return this.#entrance.guard
  }

  get ask(): AskEngine {
    return this.#entrance.ask
  }

  get batch(): ReadBatch {
    this.#batch ??= new Map()
    return this.#batch
  }

  /** The shared connection to the primary. */
  get link(): EngineLink {
    return this.#entrance.link
  }
}

const NOTHING = Buffer.alloc(0)

/**
 * Carries out the commands in `slots` in their order, not atomically, as soon as the database's limits allow.
 * `reader` gets the bytes of all replies, one after the other; a slot with an error has none.
 */
export function runSlots(lane: RequestLane, slots: readonly Slot[], reader: RepliesReader): void {
  const commands = slots.filter(isForEngine)
  const turn = turnOf(lane.guard, commands.length)
  if (turn) turn.then(() => carryOut(lane, slots, commands, reader)).catch((error: unknown) => reader.onLost(error))
  else carryOut(lane, slots, commands, reader)
}

/** Promises cost more than most of what a request needs, so the common one gets along without. */
function carryOut(
  lane: RequestLane,
  slots: readonly Slot[],
  commands: readonly PreparedCommand[],
  reader: RepliesReader,
): void {
  const measured = new MeasuredReplies(lane.guard, commands, reader)
  if (lane.nearby || slots.some(isManaged)) {
    sendInParts(lane, slots).then(
      (replies) => measured.onReplies(replies),
      (error: HomeportError) => measured.onLost(error),
    )
  } else if (commands.length > 0) sendCommands(lane.link, commands, measured)
  else reader.onReplies(NOTHING)
}

/** Passes replies on and notes how long they took. */
class MeasuredReplies implements RepliesReader {
  readonly awaits: 'script' | undefined
  readonly #settled: () => void
  readonly #reader: RepliesReader

  constructor(guard: DatabaseGuard, commands: readonly PreparedCommand[], reader: RepliesReader) {
    this.awaits = awaitedOf(commands)
    this.#settled = measure(guard, commands)
    this.#reader = reader
  }

  onReplies(replies: Buffer): void {
    this.#settled()
    this.#reader.onReplies(replies)
  }

  onLarge(before: () => Buffer, count: number, bytes: number): LargeSink | undefined {
    return this.#reader.onLarge?.(before, count, bytes)
  }

  onHeld(bytes: number): HomeportError | undefined {
    return this.#reader.onHeld?.(bytes)
  }

  onLost(error: HomeportError): void {
    this.#settled()
    this.#reader.onLost(error)
  }
}

function send(lane: RequestLane, commands: readonly PreparedCommand[]): Promise<Buffer> {
  const { link, nearby, moment } = lane
  const ends = endsOf(lane, commands)
  if (!nearby || commands.length === 0) return sentCommands(link, commands, ends)
  return sendToNearest({ link, nearby, moment }, commands, (way) => sentCommands(way, commands, ends))
}

/** Who waits for the replies to commands of a request. */
export function endsOf(
  { ends }: RequestLane,
  commands: readonly PreparedCommand[],
): Pick<RepliesReader, 'onHeld' | 'awaits'> {
  return { awaits: awaitedOf(commands), onHeld: (bytes) => ends.onHeld(bytes) }
}

/** Commands about the database itself have effect before what follows them is sent. */
async function sendInParts(lane: RequestLane, slots: readonly Slot[]): Promise<Buffer> {
  const parts: Buffer[] = []
  let waiting: PreparedCommand[] = []
  for (const slot of slots) {
    if (isForEngine(slot)) waiting.push(slot)
    if (!isManaged(slot)) continue
    parts.push(await send(lane, waiting), await lane.ends.administer(slot))
    waiting = []
  }
  return Buffer.concat([...parts, await send(lane, waiting)])
}

/** Sends what only the primary may answer, and notes that the client has seen it. */
export function askPrimary<Result>({ nearby }: RequestLane, ask: () => Promise<Result>): Promise<Result> {
  return nearby ? seeing(nearby, ask) : ask()
}
