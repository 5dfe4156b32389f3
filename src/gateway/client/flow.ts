import { isTurnSpent, scheduleSlice } from '../../base/index.js'
import type { ClientLane } from './lane.js'
import type { Outlet } from './outlet.js'

/**
 * What the next command of the client waits for. Meanwhile input is held, and above a bound no longer read.
 *
 * - `nothing`: the next command is taken at once.
 * - `quiet`: no reply is pending. The command changes lanes.
 * - `window`: fewer replies are pending, so that one client cannot fill the memory with replies.
 * - `engine`: the engine accepts more, or a promise of a handler is fulfilled.
 * - `rate`: the database takes another command or more bytes, after too many in a second or in the month.
 * - `pause`: the pause of the database has ended.
 * - `turn`: other clients were served. This one has kept the process busy for a while.
 * - `reader`: the client has read more of its replies.
 * - `end`: forever. The connection is being closed.
 */
export type Wait = 'nothing' | 'quiet' | 'window' | 'engine' | 'rate' | 'pause' | 'turn' | 'reader' | 'end'

/** The session whose commands flow. */
export interface FlowOwner {
  /** Takes the commands that are held, and reads more. */
  takeMore(): void
  /** Reads no more until then. */
  stopReading(): void
  /** Closes the connection of a client that leaves too much unread. */
  dropLostReader(): void
}

/**
 * Commands of one client that may be pending in the engine: at first, and at most. The window doubles each time it was
 * full and half of its replies have arrived, so a client with huge replies is found to be a slow reader while few of
 * them are pending. Fewer are pending where replies are long: an engine builds all of them at once, and a shared lane
 * delivers them whether the client reads or not.
 */
const FIRST_WINDOW = 32
const LARGEST_WINDOW = 256
/** With one, a command that is sent in pieces would wait for its own reply. */
const SMALLEST_WINDOW = 2
/** Pending replies may be this share of what the client may leave unread, if they are as long as the latest ones. */
const SHARE_OF_PENDING = 1 / 4
/** Effort after which the clock is read. A command that is only passed on is an effort of 1. */
const EFFORT_BETWEEN_LOOKS = 64

/** Decides when the next command of one client is taken, so that neither the client nor its engine falls far behind. */
export class Flow {
  readonly #owner: FlowOwner
  readonly #lane: ClientLane
  readonly #outlet: Outlet
  #wait: Wait = 'nothing'
  #window: number
  /** Since the clock was last read. */
  #effort = 0
  /** Length of the latest replies, and at least half of what it was before them: those that are pending may be as long. */
  #replyBytes = 0
  #answered = 0
  #sentBytes = 0

  /** No reply is longer than `maxReplyBytes`. */
  constructor(owner: FlowOwner, lane: ClientLane, outlet: Outlet, maxReplyBytes: number) {
    this.#owner = owner
    this.#lane = lane
    this.#outlet = outlet
    this.#window = windowOf(FIRST_WINDOW, outlet.mostUnreadBytes, maxReplyBytes)
  }

  /** Whether the next command may be taken. */
  get isOpen(): boolean {
    return this.#wait === 'nothing'
  }

  /** Whether the window has no space for more than `count` further commands. */
  isFull(count: number): boolean {
    return count + this.#lane.pendingReplies >= this.#window
  }

  /** The next command waits for `what`. */
  wait(what: Wait): void {
    this.#wait = what
  }

  /** Goes on if the next command still waits for `from`. */
  proceed(from: Wait): void {
    if (this.#wait !== from) return
    if (from !== 'reader' && this.#outlet.isSlow) {
      this.#wait = 'reader'
      return
    }
    // Answers of the gateway itself would follow each other without an end of the turn.
    if (from === 'engine' && isTurnSpent()) this.#waitForTurn()
    else {
      this.#wait = 'nothing'
      this.#owner.takeMore()
    }
  }

  /** The present command costs as much as `effort` commands that are only passed on. */
  addEffort(effort: number): void {
    this.#effort += effort
  }

  /** Makes a client whose commands keep the process busy wait for a later turn of the event loop. */
  commandTaken(): void {
    if (++this.#effort < EFFORT_BETWEEN_LOOKS) return
    this.#effort = 0
    if (this.#wait === 'nothing' && isTurnSpent()) this.#waitForTurn()
  }

  #waitForTurn(): void {
    this.#wait = 'turn'
    scheduleSlice(() => this.proceed('turn'))
  }

  /** Waits if the window is full or the engine takes no more. */
  commandsSent(): void {
    const { state, pendingReplies } = this.#lane
    if (this.#wait !== 'nothing' || state.kind === 'none') return
    if (pendingReplies >= this.#window) this.#wait = 'window'
    else if (state.link.isCongested) {
      this.#wait = 'engine'
      this.#owner.stopReading()
      state.link.onceWritable(() => this.#proceedSoon('engine'))
    }
  }

  /** Goes on where the next command waits for replies. */
  repliesArrived(): void {
    const { pendingReplies } = this.#lane
    this.#measure()
    this.#narrow(this.#window)
    if (this.#wait === 'reader') this.#proceedAfterReader()
    else if (this.#wait === 'quiet' && pendingReplies === 0) this.#proceedSoon('quiet')
    else if (this.#wait === 'window' && pendingReplies <= this.#window / 2) this.#widen()
  }

  /** The client has left much unread. */
  readerFellBehind(): void {
    this.#lane.pauseReading()
    if (this.#lane.state.kind === 'shared' && this.#outlet.isLost) this.#owner.dropLostReader()
    else if (this.#wait === 'nothing') this.#wait = 'reader'
  }

  /** The client has read everything. */
  readerCaughtUp(): void {
    this.#lane.resumeReading()
    if (this.#wait === 'reader') this.#proceedAfterReader()
  }

  #widen(): void {
    this.#narrow(Math.min(2 * this.#window, LARGEST_WINDOW))
    this.#proceedSoon('window')
  }

  #measure(): void {
    const { answered } = this.#lane
    if (answered === this.#answered) return
    const { sentBytes } = this.#outlet
    const replyBytes = (sentBytes - this.#sentBytes) / (answered - this.#answered)
    this.#replyBytes = Math.max(replyBytes, this.#replyBytes / 2)
    this.#answered = answered
    this.#sentBytes = sentBytes
  }

  /** Changes the window to `window`, or to less where replies are long. */
  #narrow(window: number): void {
    this.#window = windowOf(window, this.#outlet.mostUnreadBytes * SHARE_OF_PENDING, this.#replyBytes)
  }

  /** Goes on after the present call has returned: the lane that calls is in the middle of its own work. */
  #proceedSoon(from: Wait): void {
    queueMicrotask(() => this.proceed(from))
  }

  /** A client that once read too slowly gets a dedicated lane: a shared one cannot wait for a single reader. */
  #proceedAfterReader(): void {
    if (this.#outlet.needsDrain) return
    if (this.#lane.state.kind === 'shared') {
      if (this.#lane.pendingReplies > 0) return
      this.#lane.enterDedicated('kept')
    }
    this.#proceedSoon('reader')
  }
}

/** How many replies of `replyBytes` bytes may be pending: at most `most`, no more than fit into `bytes`, but some. */
function windowOf(most: number, bytes: number, replyBytes: number): number {
  return Math.max(SMALLEST_WINDOW, Math.min(most, Math.floor(bytes / replyBytes)))
}
