import { isTurnSpent, yieldToEventLoop } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { fillTransactionReply, type Place } from '../commands/queued-answers.js'
import type { EngineLink } from '../engine/engine-link.js'
import { errorText } from '../error-text.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { AskEngine } from '../limits/engine-questions.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import { MAX_NOTES } from '../monitor/monitors.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { isReadable, mayHoldRefusal } from '../replicas/replica-reads.js'
import { encodeTextCommand } from '../resp/encode.js'
import type { KeptBytes } from '../resp/lent-memory.js'
import type { BodyUpload, UploadReader } from './body-upload.js'
import type { Exchange } from './exchange.js'
import { awaitedOf, type Limiter, measure, turnOf } from './permit.js'
import type { RepliesClient, RepliesReader } from './replies-reader.js'
import { ReplyReader, type RestReply } from './reply-reader.js'
import { failureAfterReplies, type SendOptions, sendCommands, sentCommands, sentTogether } from './send-commands.js'
import { isForEngine, isManaged, isPrepared, type PreparedCommand, type Slot } from './slots.js'
import type { TokenGrant } from './token-grants.js'

/** The request to which commands belong. */
export interface CommandRequest {
  /** Answers a command about the database itself. Never rejects. */
  administer(command: PreparedCommand): Promise<Buffer>
  /** The client that gets the replies. */
  readonly client: RepliesClient
}

/** The connections for the commands of one request, and their limits. */
export class RequestLane implements Limiter {
  /** The lane to the replica; undefined where this node serves no region. */
  readonly replica: ReplicaLane | undefined
  /** The moment of the database that the client has seen, according to its sync token. */
  readonly moment: number
  readonly request: CommandRequest
  readonly #grant: TokenGrant
  #batch: ReadBatch | undefined

  constructor(grant: TokenGrant, replica: ReplicaLane | undefined, moment: number, request: CommandRequest) {
    this.#grant = grant
    this.replica = replica
    this.moment = moment
    this.request = request
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

  /** The shared lane to the primary. */
  get link(): EngineLink {
    return this.#grant.link
  }

  /** See `TokenGrant.onOwnLink`. */
  onOwnLink<Result>(use: (link: EngineLink) => Promise<Result>): Promise<Result> {
    return this.#grant.onOwnLink(use)
  }

  /** See `TokenGrant.mayOpenTransaction`. */
  mayOpenTransaction(): Promise<boolean> {
    return this.#grant.mayOpenTransaction()
  }
}

const NOTHING = Buffer.alloc(0)

/**
 * Runs the commands in `slots` in order, not atomically, as soon as the limits of the database allow. `reader` gets the
 * bytes of all replies, one after the other. A slot that holds an error has no reply.
 */
export function runSlots(lane: RequestLane, slots: readonly Slot[], reader: RepliesReader): void {
  const commands = slots.filter(isForEngine)
  const turn = turnOf(lane.guard, commands.length)
  if (turn) turn.then(() => runNow(lane, slots, commands, reader)).catch((error: unknown) => reader.onLost(error))
  else runNow(lane, slots, commands, reader)
}

/** Runs commands. Most requests use no promises here, because these would cost more than most of the other work. */
function runNow(
  lane: RequestLane,
  slots: readonly Slot[],
  commands: readonly PreparedCommand[],
  reader: RepliesReader,
): void {
  if (lane.replica || slots.some(isManaged)) {
    sendInBatches(lane, slots)
      .finally(measure(lane.guard, commands))
      .then(
        (replies) => reader.onReplies(replies),
        (error: unknown) => reader.onLost(error),
      )
  } else if (commands.length > 0) {
    const onSend = (batch: readonly PreparedCommand[]): (() => void) => measure(lane.guard, batch)
    sendCommands(lane.link, commands, { ...optionsOf(lane, commands), onSend }, reader)
  } else reader.onReplies(NOTHING)
}

/** Runs a command whose body is uploaded, on the primary. */
export function runUpload(
  { guard, replica }: RequestLane,
  upload: BodyUpload,
  command: PreparedCommand,
  reader: RepliesReader & Pick<UploadReader, 'onBegin'>,
): void {
  const settled = measure(guard, [command])
  void upload.start({
    onBegin: () => reader.onBegin(),
    onReply: (reply) => {
      replica?.sawPrimary()
      settled()
      reader.onReplies(reply)
    },
    onLost: (error) => {
      replica?.sawPrimary()
      settled()
      reader.onLost(error)
    },
  })
}

/** Sends commands in order. Waits for each command about the database itself before it sends the commands behind it. */
async function sendInBatches(lane: RequestLane, slots: readonly Slot[]): Promise<Buffer> {
  const replies: Buffer[] = []
  let batch: PreparedCommand[] = []
  try {
    for (const slot of slots) {
      if (isForEngine(slot)) batch.push(slot)
      if (!isManaged(slot)) continue
      if (batch.length > 0) replies.push(await sendBatch(lane, batch))
      const reply = await lane.request.administer(slot)
      const refusal = lane.request.client.holdReplies(reply.length)
      if (refusal) throw refusal
      replies.push(reply)
      batch = []
      if (isTurnSpent()) await yieldToEventLoop()
    }
    return Buffer.concat([...replies, await sendBatch(lane, batch)])
  } catch (error) {
    throw replies.length > 0 ? failureAfterReplies(error) : error
  }
}

/**
 * Sends commands to the replica if all of them only read and the replica has everything that the client has seen. Otherwise,
 * or if the replica fails, sends them to the primary, because reading twice does no harm.
 */
async function sendBatch(lane: RequestLane, commands: readonly PreparedCommand[]): Promise<KeptBytes> {
  const { link, replica, moment } = lane
  const send = (to: EngineLink): Promise<KeptBytes> => sentCommands(to, commands, optionsOf(lane, commands))
  if (!replica || commands.length === 0) return send(link)
  if (commands.every(({ command }) => isReadable(command)) && (await replica.until(moment))) {
    const replies = await readFromReplica(replica, send)
    if (replies) return replies
  }
  return askPrimary(lane, () => send(link))
}

/** Undefined when the replica cannot answer. */
async function readFromReplica(
  { watch, link }: ReplicaLane,
  send: (link: EngineLink) => Promise<KeptBytes>,
): Promise<KeptBytes | undefined> {
  watch.sent()
  try {
    const replies = await send(link)
    return mayHoldRefusal(replies) ? undefined : replies
  } catch (error) {
    // The replies of the primary would be just as large.
    if (isError(error, 'replies_too_large')) throw error
    if (error instanceof HomeportError) return undefined
    throw error
  }
}

/** Asks the primary and notes that the client has seen it. Even if that fails, a command may have been applied. */
async function askPrimary<Result>({ replica }: RequestLane, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } finally {
    replica?.sawPrimary()
  }
}

function optionsOf({ request }: RequestLane, commands: readonly PreparedCommand[]): SendOptions {
  return { client: request.client, awaits: awaitedOf(commands) }
}

/** Shows commands that are about to be sent to the clients that run MONITOR, at most `MAX_NOTES`. */
export function showToMonitors({ monitors }: DatabaseGuard, slots: readonly Slot[], exchange: Exchange): void {
  if (!monitors.isWatched) return
  const address = `${exchange.address ?? ''}:${exchange.request.socket.remotePort ?? 0}`
  for (const { command: row, args: words } of slots.slice(0, MAX_NOTES).filter(isPrepared)) {
    monitors.note({ row, words, address, isWhole: true })
  }
}

/** The outcome of a transaction: the replies to all commands, or the one error that discarded all of them. */
export type TransactionOutcome = { readonly replies: Buffer } | { readonly error: string }

const MULTI = encodeTextCommand(['MULTI'])
const EXEC = encodeTextCommand(['EXEC'])
const DISCARDED = 'EXECABORT Transaction discarded because of: '

/**
 * Runs commands as one transaction. MULTI to EXEC is sent at once on the shared lane, so no command of another client can
 * come between. Commands that the gateway answers run after EXEC, in order.
 */
export async function runTransaction(lane: RequestLane, slots: readonly Slot[]): Promise<TransactionOutcome> {
  const refused = slots.find((slot) => slot instanceof HomeportError)
  if (refused instanceof HomeportError) return { error: errorText(refused) }
  if (!(await lane.mayOpenTransaction()))
    return { error: errorText(new HomeportError('command_forbidden', { name: 'multi' })) }
  const commands = slots.filter(isForEngine)
  await turnOf(lane.guard, commands.length)
  const settled = measure(lane.guard, commands)
  try {
    const replies = await askPrimary(lane, () => sendTransaction(lane, commands))
    return await readTransaction(lane, slots, replies)
  } finally {
    settled()
  }
}

/**
 * Most bytes of replies to a transaction on a shared lane. An engine closes a connection with more than 1 GiB of unread
 * replies, or more on larger plans, and replies to other clients may be pending too.
 */
const MAX_SHARED_BYTES = 2 ** 29

/** Sends a transaction. If its replies could be too long together, it gets a dedicated lane, so that only that is closed. */
async function sendTransaction(lane: RequestLane, commands: readonly PreparedCommand[]): Promise<KeptBytes> {
  const bracketed = [{ wire: MULTI }, ...commands, { wire: EXEC }]
  const options = optionsOf(lane, commands)
  const maxBytes = commands.length * lane.link.replyLimits.maxReplyBytes
  if (maxBytes <= MAX_SHARED_BYTES) return sentTogether(lane.link, bracketed, options)
  return lane.onOwnLink((link) => sentTogether(link, bracketed, options))
}

async function readTransaction(
  lane: RequestLane,
  slots: readonly Slot[],
  replies: KeptBytes,
): Promise<TransactionOutcome> {
  const reader = new ReplyReader(replies, 'plain')
  const queueing = [reader.next(), ...slots.filter(isForEngine).map(() => reader.next())]
  const all = await fillOwnReplies(lane, slots, replies.subarray(reader.position))
  const executed = new ReplyReader(all, 'plain')
  if (executed.arrayLength() === slots.length) return { replies: all.subarray(executed.position) }
  const cause = queueing.find(isRefusal)
  if (cause) return { error: DISCARDED + cause.error }
  // The engine runs what it queues, unless EXEC itself returns an error.
  const outcome = executed.next()
  return isRefusal(outcome) ? outcome : { error: `${DISCARDED}the engine did not run it` }
}

function isRefusal(reply: RestReply): reply is { readonly error: string } {
  return 'error' in reply
}

/** The reply to EXEC with one element for each slot. */
function fillOwnReplies(lane: RequestLane, slots: readonly Slot[], reply: Buffer): Buffer | Promise<Buffer> {
  const places: Place[] = []
  let at = 0
  for (const slot of slots) {
    if (isManaged(slot)) places.push({ kind: 'insert', at, answer: () => lane.request.administer(slot) })
    if (isForEngine(slot)) at++
  }
  return places.length === 0 ? reply : fillTransactionReply(reply, places, lane.guard.maxRequestBytes)
}
