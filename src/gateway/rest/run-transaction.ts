import { HomeportError } from '../../contract/errors/errors.js'
import { fillTransactionReply, type Place } from '../commands/queued-answers.js'
import { errorText } from '../error-text.js'
import { encodeTextCommand } from '../resp/encode.js'
import { PatientReader } from './in-turns.js'
import { measure, turnOf } from './permit.js'
import { type ReplyEncoding, ReplyReader, type RestReply } from './reply-reader.js'
import { askPrimary, endsOf, type RequestLane } from './run-slots.js'
import { sentCommands } from './send-commands.js'
import { isForEngine, isManaged, type Slot } from './slots.js'

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
    if (isManaged(slot)) places.push({ kind: 'insert', at, answer: () => lane.ends.administer(slot) })
    if (isForEngine(slot)) at++
  }
  return places.length === 0 ? reply : fillTransactionReply(reply, places)
}
