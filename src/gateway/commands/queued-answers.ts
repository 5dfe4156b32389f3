import { isTurnSpent, yieldToEventLoop } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { arrayLength, ElementReader } from '../resp/elements.js'
import { encodeCommand, encodeError, encodeSimple } from '../resp/encode.js'
import { joinInSlices } from '../resp/join-in-slices.js'

/** A change that the gateway makes to the reply to EXEC at the engine's element number `at`. */
export type Place =
  /** Inserts a reply of the gateway before that element. `answer` runs the command, after the transaction. */
  | { readonly kind: 'insert'; readonly at: number; readonly answer: () => Buffer | Promise<Buffer> }
  /** Replaces that element, a placeholder, by a reply of the gateway. */
  | { readonly kind: 'replace'; readonly at: number; readonly answer: () => Buffer | Promise<Buffer> }
  /** Changes that element. */
  | { readonly kind: 'change'; readonly at: number; readonly change: (element: Buffer) => Buffer }

/**
 * Merges the gateway's replies into the engine's reply to EXEC, in the order of the commands. A reply that is no array
 * stays as it is: the transaction did not run, so the gateway's commands do not run either. A reply longer than
 * `maxReplyBytes` is replaced by an error, like a reply of an engine; all commands have run nevertheless.
 */
export async function fillTransactionReply(
  reply: Buffer,
  places: readonly Place[],
  maxReplyBytes: number,
): Promise<Buffer> {
  const count = arrayLength(reply)
  if (count === undefined) return reply
  const elements = new ElementReader(reply)
  const filled = new FilledReply(maxReplyBytes)
  let next = 0
  for (const place of places) {
    filled.add(await elements.take(place.at - next))
    next = place.at
    if (place.kind === 'insert') filled.insertedCount++
    else next++
    const element = await elements.take(next - place.at)
    filled.add(place.kind === 'change' ? place.change(element) : await place.answer())
    // Ten thousand answers may take seconds.
    if (isTurnSpent()) await yieldToEventLoop()
  }
  filled.add(await elements.take(count - next))
  return filled.reply(count)
}

/** Gathers the elements of a reply, until they are too long together. */
class FilledReply {
  /** Number of elements that the engine's reply does not have. */
  insertedCount = 0
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(elements: Buffer): void {
    this.#bytes += elements.length
    if (this.#bytes <= this.#maxBytes) this.#parts.push(elements)
    else this.#parts = []
  }

  /** The merged reply. @param count number of elements in the engine's reply. */
  async reply(count: number): Promise<Buffer> {
    if (this.#bytes <= this.#maxBytes) {
      return joinInSlices([Buffer.from(`*${count + this.insertedCount}\r\n`), ...this.#parts])
    }
    const facts = { limitBytes: this.#maxBytes, actualBytes: this.#bytes }
    return encodeError(errorText(new HomeportError('request_too_large', facts)))
  }
}

const QUEUED = encodeSimple('QUEUED')
/** Queued in the engine in place of a command of the gateway: every user may send it, and it changes nothing. */
const PLACEHOLDER = encodeCommand(['HELLO'])
/** Most places in one transaction, because each takes memory until EXEC. */
export const MAX_PLACES = 10_000
/** Approximate memory of a place, without the arguments of its command, bytes. */
const PLACE_BYTES = 256

/** The client's lane, as queueing needs it. */
export interface QueueingLane {
  /** Replies that arrived, and that are pending. Replies of the gateway count in both. */
  readonly answered: number
  readonly pendingReplies: number
  /** Whether the gateway cannot insert replies of its own. */
  readonly isPinned: boolean
  reply(bytes: Buffer): void
  send(bytes: Buffer, start: number, end: number, count: number): void
}

/**
 * The commands of an open transaction that the gateway answers itself, or whose reply it changes. They are queued like
 * the others and take their places in the reply to EXEC.
 *
 * A place is the number of commands that the engine has queued before it: everything sent since MULTI, less the commands
 * that the engine answers at once. If it answers one with an error at once, EXEC fails as a whole, so places do not matter.
 * Only nested MULTI and WATCH have to be subtracted.
 *
 * On a pinned lane replies are not counted, and the gateway cannot insert `+QUEUED`. There the engine gets a placeholder
 * command for each command of the gateway.
 */
export class QueuedAnswers {
  /** Whether the connection closes when the client has the reply to EXEC. */
  endsConnection = false
  readonly #lane: QueueingLane
  readonly #places: Place[] = []
  /** Number of places that have no command in the engine's queue. */
  #insertedPlaces = 0
  /** Number of replies on the lane that belong to no command in the engine's queue. */
  #others: number
  #isUncounted = false
  #argumentBytes = 0

  /** Create it before MULTI is sent. */
  constructor(lane: QueueingLane) {
    this.#lane = lane
    this.#others = this.#sent + 1
  }

  /** Whether the reply to EXEC can pass unchanged. */
  get isEmpty(): boolean {
    return this.#places.length === 0
  }

  /** Number of commands that wait for EXEC, as far as replies are counted. */
  get length(): number {
    return Math.max(0, this.#queued) + this.#insertedPlaces
  }

  /** Memory that the places take, bytes. */
  get heldBytes(): number {
    return this.#places.length * PLACE_BYTES + this.#argumentBytes
  }

  /** Whether no further command of the gateway may be queued. */
  get isFull(): boolean {
    return this.#places.length >= MAX_PLACES
  }

  /** Whether places are unknown, because messages may arrive between the elements. */
  get isUncounted(): boolean {
    return this.#isUncounted
  }

  /** Makes places unknown from now on. */
  loseCount(): void {
    this.#isUncounted = true
  }

  /** Queues a command of `bytes` bytes that `answer` runs after the transaction. */
  add(answer: () => Buffer | Promise<Buffer>, bytes: number): void {
    this.#argumentBytes += bytes
    if (this.#lane.isPinned) {
      this.#places.push({ kind: 'replace', at: this.#queued, answer })
      this.#lane.send(PLACEHOLDER, 0, PLACEHOLDER.length, 1)
      return
    }
    this.#places.push({ kind: 'insert', at: this.#queued, answer })
    this.#insertedPlaces++
    const before = this.#sent
    this.#lane.reply(QUEUED)
    this.#others += this.#sent - before
  }

  /** Call it before a command is sent that the engine queues: its reply will pass through `change`. */
  changeNext(change: (reply: Buffer) => Buffer): void {
    this.#places.push({ kind: 'change', at: this.#queued, change })
  }

  /** Call it before a command is sent that the engine answers at once. */
  leaveOutNext(): void {
    this.#others++
  }

  /** Merges the answers into the engine's reply to EXEC. */
  fill(reply: Buffer, maxReplyBytes: number): Promise<Buffer> {
    return fillTransactionReply(reply, this.#places, maxReplyBytes)
  }

  get #sent(): number {
    return this.#lane.answered + this.#lane.pendingReplies
  }

  get #queued(): number {
    return this.#sent - this.#others
  }
}
