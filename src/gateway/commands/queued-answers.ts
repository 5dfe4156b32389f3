import { encodeCommand, encodeSimple } from '../resp/encode.js'
import { fillTransactionReply, type Place } from './transaction-reply.js'

const QUEUED = encodeSimple('QUEUED')
/** What every user may send, and what changes nothing: it is queued in place of a command of ours. */
const PLACEHOLDER = encodeCommand(['HELLO'])
/** Nobody needs more of them in one transaction, and each takes memory until EXEC. */
const MOST_PLACES = 10_000

/** What queueing needs of the client's lane. */
export interface QueueingLane {
  /** Replies that have come, and that are owed: what was sent, and those of our own answers that had to wait. */
  readonly answered: number
  readonly owed: number
  /** Whether nothing can be put among the replies. */
  readonly isPinned: boolean
  reply(bytes: Buffer): void
  forwardHere(bytes: Buffer, start: number, end: number, count: number): void
}

/**
 * The commands of an open transaction that the gateway answers itself, or whose reply it changes. They are queued like
 * the others and take their places in the reply to EXEC.
 *
 * A place is told by the number of commands that the engine has queued before it. That is what was sent since MULTI,
 * less what the engine answers at once: an error there makes EXEC fail as a whole, so only nested commands of
 * transactions have to be left out.
 *
 * Where replies are not counted, `+QUEUED` cannot be put among them either. There the engine is sent a command that only
 * holds the place.
 */
export class QueuedAnswers {
  /** An answer said that the connection ends once the client has it. */
  endsConnection = false
  readonly #lane: QueueingLane
  readonly #places: Place[] = []
  /** How many of them the engine knows nothing of. */
  #ownPlaces = 0
  /** Replies on the lane that belong to no command in the engine's queue. */
  #others: number
  #isUncounted = false

  /** MULTI is sent next. */
  constructor(lane: QueueingLane) {
    this.#lane = lane
    this.#others = this.#taken + 1
  }

  /** Whether EXEC can be left to the engine. */
  get isEmpty(): boolean {
    return this.#places.length === 0
  }

  /** Commands that wait for EXEC, as far as replies are counted. */
  get length(): number {
    return Math.max(0, this.#queued) + this.#ownPlaces
  }

  /** Whether there are so many of these commands that no further one may be queued. */
  get isFull(): boolean {
    return this.#places.length >= MOST_PLACES
  }

  /** Whether places can no longer be told: something else is going to come between the elements. */
  get isUncounted(): boolean {
    return this.#isUncounted
  }

  /** From now on places cannot be told. */
  loseCount(): void {
    this.#isUncounted = true
  }

  /** Queues a command that is answered by `answer`, once the transaction has been carried out. */
  add(answer: () => Buffer | Promise<Buffer>): void {
    if (this.#lane.isPinned) {
      this.#places.push({ kind: 'instead', at: this.#queued, answer })
      this.#lane.forwardHere(PLACEHOLDER, 0, PLACEHOLDER.length, 1)
      return
    }
    this.#places.push({ kind: 'own', at: this.#queued, answer })
    this.#ownPlaces++
    const before = this.#taken
    this.#lane.reply(QUEUED)
    this.#others += this.#taken - before
  }

  /** The command that is sent next is queued by the engine, and its reply goes through `change`. */
  changeNext(change: (reply: Buffer) => Buffer): void {
    this.#places.push({ kind: 'changed', at: this.#queued, change })
  }

  /** The command that is sent next is answered by the engine at once. */
  leaveOutNext(): void {
    this.#others++
  }

  /** Puts the answers into the engine's reply to EXEC. */
  fill(reply: Buffer): Promise<Buffer> {
    return fillTransactionReply(reply, this.#places)
  }

  get #taken(): number {
    return this.#lane.answered + this.#lane.owed
  }

  get #queued(): number {
    return this.#taken - this.#others
  }
}
