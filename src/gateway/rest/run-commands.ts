import { HomeportError, isError } from '../../contract/errors/errors.js'
import { fillTransactionReply, type Place } from '../commands/transaction-reply.js'
import type { EngineLink } from '../engine/engine-link.js'
import { errorText } from '../error-text.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { AskEngine } from '../limits/engine-questions.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { isReadable, mayHoldRefusal } from '../replicas/replica-reads.js'
import { encodeTextCommand } from '../resp/encode.js'
import { awaitedOf, type Limiter, measure, turnOf } from './permit.js'
import { PatientReader, type ReplyEncoding, ReplyReader, type RestReply } from './reply-reader.js'
import { type LargeSink, type RepliesReader, sendCommands, sentCommands } from './send-commands.js'
import { isForEngine, isManaged, type PreparedCommand, type Slot } from './slots.js'
import type { TokenGrant } from './token-grants.js'

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
  readonly replica: ReplicaLane | undefined
  /** What the client says that it has seen, as a moment of the database. */
  readonly moment: number
  readonly ends: RequestEnds
  readonly #grant: TokenGrant
  #batch: ReadBatch | undefined

  constructor(grant: TokenGrant, replica: ReplicaLane | undefined, moment: number, ends: RequestEnds) {
    this.#grant = grant
    this.replica = replica
    this.moment = moment
    this.ends = ends
  }

  get guard(): DatabaseGuard {
    return this.#grant.guard
  }

  get ask(): AskEngine {
    return this.#grant.ask
  }

  get batch(): ReadBatch {
    this.#batch ??= new Map()
    return this.#batch
  }

  /** The shared connection to the primary. */
  get link(): EngineLink {
    return this.#grant.link
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
  if (lane.replica || slots.some(isManaged)) {
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
  const { link, replica, moment } = lane
  const ends = endsOf(lane, commands)
  if (!replica || commands.length === 0) return sentCommands(link, commands, ends)
  return sendToReplicaOrPrimary({ link, replica, moment }, commands, (way) => sentCommands(way, commands, ends))
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
export function askPrimary<Result>({ replica }: RequestLane, ask: () => Promise<Result>): Promise<Result> {
  return replica ? seeing(replica, ask) : ask()
}

/** The ways of a request to the engines of its database, in a node that serves a region. */
interface Ways {
  /** The shared connection to the primary. */
  readonly link: EngineLink
  /** The way to the replica. */
  readonly replica: ReplicaLane
  /** What the client says that it has seen, as a moment of the database. */
  readonly moment: number
}

/**
 * Sends commands with `send`: to the replica when all of them only read and it has what the client has seen, or else to
 * the primary, also when the replica fails: reading twice harms nobody.
 */
async function sendToReplicaOrPrimary(
  { replica, moment, link }: Ways,
  commands: readonly PreparedCommand[],
  send: (link: EngineLink) => Promise<Buffer>,
): Promise<Buffer> {
  if (commands.every(({ command }) => isReadable(command)) && (await replica.until(moment))) {
    const replies = await readFromReplica(replica, send)
    if (replies) return replies
  }
  return seeing(replica, () => send(link))
}

/** Does what asks the primary, and notes that the client has seen it, also what failed: it may have been applied. */
async function seeing<Result>(replica: ReplicaLane | undefined, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } finally {
    replica?.sawPrimary()
  }
}

/** Undefined when the replica cannot answer. */
async function readFromReplica(
  { watch, link }: ReplicaLane,
  send: (link: EngineLink) => Promise<Buffer>,
): Promise<Buffer | undefined> {
  watch.sent()
  try {
    const replies = await send(link)
    return mayHoldRefusal(replies) ? undefined : replies
  } catch (error) {
    // Asked again, it would be no less.
    if (isError(error, 'replies_too_large')) throw error
    if (error instanceof HomeportError) return undefined
    throw error
  }
}

/** What became of a transaction: one reply for each command, or the one error that discarded them all. */
export type TransactionOutcome = readonly RestReply[] | { readonly error: string }

const MULTI = encodeTextCommand(['MULTI'])
const EXEC = encodeTextCommand(['EXEC'])
const DISCARDED = 'EXECABORT Transaction discarded because of: '

/**
 * Runs commands as one transaction. All of it, MULTI to EXEC, goes out as one uninterrupted piece of the shared lane,
 * so nothing of anybody else can come between. What no engine answers is done behind it, in order.
 */
export async function runTransaction(
  lane: RequestLane,
  slots: readonly Slot[],
  encoding: ReplyEncoding,
): Promise<TransactionOutcome> {
  const refused = slots.find((slot) => slot instanceof HomeportError)
  if (refused instanceof HomeportError) return { error: errorText(refused) }
  const commands = slots.filter(isForEngine)
  await turnOf(lane.guard, commands.length)
  const settled = measure(lane.guard, commands)
  try {
    const bracketed = [{ wire: MULTI }, ...commands, { wire: EXEC }]
    const replies = await askPrimary(lane, () => sentCommands(lane.link, bracketed, endsOf(lane, commands)))
    return await readTransaction(lane, slots, replies, encoding)
  } finally {
    settled()
  }
}

async function readTransaction(
  lane: RequestLane,
  slots: readonly Slot[],
  replies: Buffer,
  encoding: ReplyEncoding,
): Promise<TransactionOutcome> {
  const reader = new ReplyReader(replies, encoding)
  const queueing = [reader.next(), ...slots.filter(isForEngine).map(() => reader.next())]
  const executed = new ReplyReader(await filled(lane, slots, replies.subarray(reader.position)), encoding)
  if (executed.arrayLength() === slots.length) return readEach(slots.length, new PatientReader(executed))
  const cause = queueing.find(isRefusal)
  if (cause) return { error: DISCARDED + cause.error }
  // What the engine queued it has carried out, unless it says itself that it has not.
  const outcome = executed.next()
  return isRefusal(outcome) ? outcome : { error: `${DISCARDED}the engine did not run it` }
}

async function readEach(count: number, reader: PatientReader): Promise<readonly RestReply[]> {
  const read: RestReply[] = []
  while (read.length < count) read.push(await reader.next())
  return read
}

function isRefusal(reply: RestReply): reply is { readonly error: string } {
  return 'error' in reply
}

/** The reply to EXEC with one element for each slot. */
function filled(lane: RequestLane, slots: readonly Slot[], reply: Buffer): Buffer | Promise<Buffer> {
  const places: Place[] = []
  let at = 0
  for (const slot of slots) {
    if (isManaged(slot)) places.push({ kind: 'own', at, answer: () => lane.ends.administer(slot) })
    if (isForEngine(slot)) at++
  }
  return places.length === 0 ? reply : fillTransactionReply(reply, places)
}
