import { inTurn, isTurnSpent } from '../../base/index.js'
import type { ClientLane } from './lane.js'
import type { Outlet } from './outlet.js'

/**
 * What the next command of the client waits for. Meanwhile what the client sends is held, and above a bound no longer
 * read.
 *
 * - `nothing`: it is taken at once.
 * - `quiet`: until every reply that is owed has arrived; the command changes lanes.
 * - `window`: until fewer replies are owed, so that one client cannot fill the memory with replies.
 * - `engine`: until the engine takes more, or has answered a greeting.
 * - `rate`: until its turn comes among the commands of the database, of which there are too many in a second, or too
 *   many bytes in the month.
 * - `pause`: until the pause of the database has ended.
 * - `turn`: until others have been served; the client has kept the process busy for a while.
 * - `reader`: until the client has read more of what was sent to it.
 * - `end`: forever; the connection is being closed.
 */
export type Wait = 'nothing' | 'quiet' | 'window' | 'engine' | 'rate' | 'pause' | 'turn' | 'reader' | 'end'

/** Whose commands flow. */
export interface FlowOwner {
  readonly lane: ClientLane
  readonly outlet: Outlet
  /** Takes the commands that were held, and reads more. */
  goOn(): void
  /** Ends the connection of a client that reads too little. */
  dropLostReader(): void
}

/**
 * Commands of one client that may be with the engine at a time: at first, and at most. The window doubles each time it
 * was full and its replies have come, so that a client whose replies are huge is known as a slow reader while little
 * is on its way.
 */
const FIRST_WINDOW = 32
const LARGEST_WINDOW = 256
/** After so much effort the clock is looked at. A command that is only passed on is an effort of 1. */
const EFFORT_BETWEEN_LOOKS = 64

/** Decides when the next command of one client is taken, so that neither it nor its engine is ever ahead by much. */
export class Flow {
  readonly #owner: FlowOwner
  #wait: Wait = 'nothing'
  #window = FIRST_WINDOW
  /** Since the clock was looked at. */
  #effort = 0

  constructor(owner: FlowOwner) {
    this.#owner = owner
  }

  /** Whether the next command may be taken. */
  get isOpen(): boolean {
    return this.#wait === 'nothing'
  }

  /** Whether the window has no room for more than `count` further commands. */
  isFull(count: number): boolean {
    return count + this.#owner.lane.owed >= this.#window
  }

  /** The next command waits for this. */
  wait(what: Wait): void {
    this.#wait = what
  }

  /** What the next command waited for has come, if that is still it. */
  proceed(from: Wait): void {
    if (this.#wait !== from) return
    if (from !== 'reader' && this.#owner.outlet.isSlow) {
      this.#wait = 'reader'
      return
    }
    this.#wait = 'nothing'
    this.#owner.goOn()
  }

  /** The present command is so much more work than one that is only passed on. */
  toil(effort: number): void {
    this.#effort += effort
  }

  /**
   * A command has been taken. A client whose commands keep the process busy has the next one taken in a later turn of the
   * event loop.
   */
  took(): void {
    if (++this.#effort < EFFORT_BETWEEN_LOOKS) return
    this.#effort = 0
    if (this.#wait !== 'nothing' || !isTurnSpent()) return
    this.#wait = 'turn'
    inTurn(() => this.proceed('turn'))
  }

  /** Commands have been sent. */
  sent(): void {
    const { state, owed } = this.#owner.lane
    if (this.#wait !== 'nothing' || state.kind === 'none') return
    if (owed >= this.#window) this.#wait = 'window'
    else if (state.link.isCongested) {
      this.#wait = 'engine'
      state.link.onceRoomy(() => this.#proceedSoon('engine'))
    }
  }

  /** Replies have come. */
  answered(): void {
    const { owed } = this.#owner.lane
    if (this.#wait === 'reader') this.#afterReader()
    else if (this.#wait === 'quiet' && owed === 0) this.#proceedSoon('quiet')
    else if (this.#wait === 'window' && owed <= this.#window / 2) this.#widen()
  }

  /** The client has left much unread. */
  slowed(): void {
    const { lane, outlet } = this.#owner
    lane.hold()
    if (lane.state.kind === 'shared' && outlet.isLost) this.#owner.dropLostReader()
    else if (this.#wait === 'nothing') this.#wait = 'reader'
  }

  /** The client has read everything. */
  drained(): void {
    this.#owner.lane.unhold()
    if (this.#wait === 'reader') this.#afterReader()
  }

  #widen(): void {
    this.#window = Math.min(2 * this.#window, LARGEST_WINDOW)
    this.#proceedSoon('window')
  }

  /** After the present call has returned: the lane that calls is in the middle of its own work. */
  #proceedSoon(from: Wait): void {
    queueMicrotask(() => this.proceed(from))
  }

  /** Whoever read too slowly once is not trusted with the shared lane again: there, nobody can wait for it. */
  #afterReader(): void {
    const { lane, outlet } = this.#owner
    if (outlet.needsDrain) return
    if (lane.state.kind === 'shared') {
      if (lane.owed > 0) return
      lane.enterOwn('kept')
    }
    this.#proceedSoon('reader')
  }
}
