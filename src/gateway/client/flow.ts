import { isTurnSpent, scheduleSlice } from '../../base/index.js'
import type { CommandFlow, RetryCondition } from '../commands/command-context.js'
import { ReplyWindow } from '../engine/reply-window.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { CommandParser } from '../resp/command-parser.js'
import { CommandGroup } from './command-group.js'
import type { ClientLane } from './lane.js'
import type { Outlet } from './outlet.js'
import type { PauseHold } from './pause-hold.js'

/**
 * What the next command of the client waits for. Meanwhile input is held; above a bound, reading stops.
 *
 * - `nothing`: the next command is taken at once.
 * - `quiet`: no reply is pending. The command changes lanes.
 * - `window`: fewer replies are pending, so that one client cannot fill the memory with replies.
 * - `engine`: the engine accepts more, or a promise of a handler is fulfilled.
 * - `rate`: a limit of the database allows another command: its rate, or its bytes in the month.
 * - `pause`: the pause of the database has ended.
 * - `turn`: other clients were served, after this one has kept the process busy for a while.
 * - `reader`: the client has read more of its replies.
 * - `end`: forever. The connection is being closed.
 */
export type Wait = 'nothing' | 'quiet' | 'window' | 'engine' | 'rate' | 'pause' | 'turn' | 'reader' | 'end'

/** Takes the commands of the client. */
export interface FlowOwner {
  /** Takes the commands that are held, and reads more. */
  takeMore(): void
  /** Stops reading until `takeMore` is called. */
  stopReading(): void
  /** Called when a promise that the flow waited for is rejected. */
  fault(error: unknown): void
}

/** The collaborators of a flow. */
export interface FlowDeps {
  readonly lane: ClientLane
  readonly outlet: Outlet
  readonly parser: CommandParser
  readonly hold: PauseHold
  readonly guard: DatabaseGuard
}

/** Effort after which the clock is read. A command that is only passed on is an effort of 1. */
const EFFORT_PER_CLOCK_READ = 64

/**
 * Decides when the next command of one client is taken, and when commands that were taken are sent, so that neither the
 * client nor its engine falls far behind.
 */
export class Flow implements CommandFlow {
  /** Commands that were taken and not yet sent. */
  readonly group: CommandGroup
  readonly #owner: FlowOwner
  readonly #lane: ClientLane
  readonly #outlet: Outlet
  readonly #parser: CommandParser
  /** The window widens each time it was full and half of its replies have arrived. */
  readonly #window: ReplyWindow
  #wait: Wait = 'nothing'
  /** Effort since the clock was last read. */
  #effort = 0
  /** Replies that were reported to the window, and bytes sent by then. */
  #answered = 0
  #sentBytes = 0

  constructor(owner: FlowOwner, { lane, outlet, parser, hold, guard }: FlowDeps) {
    this.#owner = owner
    this.#lane = lane
    this.#outlet = outlet
    this.#parser = parser
    this.#window = new ReplyWindow(outlet.maxUnreadBytes, guard.maxRequestBytes)
    this.group = new CommandGroup(lane, this, hold, guard.meter)
  }

  get isIdle(): boolean {
    return this.group.isEmpty && this.#lane.pendingReplies === 0
  }

  /** Whether the next command may be taken. */
  get isOpen(): boolean {
    return this.#wait === 'nothing'
  }

  /** Whether the window has no space for more than `count` further commands. */
  isFull(count: number): boolean {
    return count + this.#lane.pendingReplies >= this.#window.size
  }

  /** Makes the next command wait for `what`. */
  wait(what: Wait): void {
    this.#wait = what
  }

  /** Takes the next commands if they still wait for `from`. */
  proceed(from: Wait): void {
    if (this.#wait !== from) return
    if (from !== 'reader' && this.#outlet.isSlow) {
      this.#wait = 'reader'
      return
    }
    // Promises of the gateway's own answers may be fulfilled one after the other within a single turn.
    if (from === 'engine' && isTurnSpent()) this.#waitForTurn()
    else {
      this.#wait = 'nothing'
      this.#owner.takeMore()
    }
  }

  retryWhen(condition: RetryCondition): void {
    this.#parser.repeat()
    if (typeof condition === 'string') this.#wait = condition
    else this.waitFor(condition)
  }

  get willRetry(): boolean {
    return this.#parser.repeats
  }

  quietOrRetry(): boolean {
    if (this.#lane.pendingReplies === 0) return true
    this.retryWhen('quiet')
    return false
  }

  flush(): boolean {
    this.group.send()
    if (!this.isOpen) this.#parser.repeat()
    return this.isOpen
  }

  waitFor(promise: Promise<void>): void {
    this.#wait = 'engine'
    promise.then(() => this.proceed('engine')).catch((error: unknown) => this.#owner.fault(error))
  }

  addEffort(effort: number): void {
    this.#effort += effort
  }

  /** Makes a client whose commands keep the process busy wait for a later turn of the event loop. */
  commandTaken(): void {
    if (++this.#effort < EFFORT_PER_CLOCK_READ) return
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
    if (pendingReplies >= this.#window.size) this.#wait = 'window'
    else if (state.link.isCongested) {
      this.#wait = 'engine'
      this.#owner.stopReading()
      state.link.onceWritable(() => this.#proceedSoon('engine'))
    }
  }

  /** Takes the next command if it waits for replies that have arrived. */
  repliesArrived(): void {
    const { pendingReplies } = this.#lane
    this.group.progressed()
    this.#measure()
    if (this.#wait === 'reader') this.#proceedAfterReader()
    else if (this.#wait === 'quiet' && pendingReplies === 0) this.#proceedSoon('quiet')
    else if (this.#wait === 'window' && pendingReplies <= this.#window.size / 2) {
      this.#window.widen()
      this.#proceedSoon('window')
    }
  }

  /** Called when the client has left much unread. */
  readerFellBehind(): void {
    this.#lane.pauseReading()
    if (this.#wait === 'nothing') this.#wait = 'reader'
  }

  /** Called when the client has read everything. */
  readerCaughtUp(): void {
    this.#lane.resumeReading()
    if (this.#wait === 'reader') this.#proceedAfterReader()
  }

  #measure(): void {
    const { answered } = this.#lane
    if (answered === this.#answered) return
    const { sentBytes } = this.#outlet
    this.#window.answered(answered - this.#answered, sentBytes - this.#sentBytes)
    this.#answered = answered
    this.#sentBytes = sentBytes
  }

  /** Calls `proceed` after the present call has returned, because the calling lane is in the middle of its own work. */
  #proceedSoon(from: Wait): void {
    queueMicrotask(() => this.proceed(from))
  }

  /** Continues after a slow reader. It gets a dedicated lane, because a shared lane cannot wait for a single reader. */
  #proceedAfterReader(): void {
    if (this.#outlet.needsDrain) return
    if (this.#lane.state.kind === 'shared') {
      if (this.#lane.pendingReplies > 0) return
      this.#lane.enterDedicated('kept')
    }
    this.#proceedSoon('reader')
  }
}
