import { hideMonitorSource } from '../lane/pinned-stream.js'
import { encodeError } from '../resp/encode.js'
import type { Session } from './session.js'
import type { Transactions } from './transactions.js'

const NO_REDIRECT = encodeError('ERR REDIRECT is not available: track on a RESP3 connection instead')

/**
 * Why the engine may speak on its own accord besides a subscription. `uncounted`: something was subscribed or left in a
 * transaction, so nobody knows how much still is.
 */
type Reason = 'monitors' | 'tracks' | 'uncounted'

/**
 * Takes the commands after which the engine speaks on its own accord, and notices when it no longer does: everything
 * that was subscribed has been left, tracking is off. What a client sent behind such a command waits until that is
 * known, so the commands that cannot be taken meanwhile are taken again at once.
 */
export class Pinning {
  readonly #session: Session
  readonly #transactions: Transactions
  readonly #reasons = new Set<Reason>()
  /** The client of a pinned lane wants no replies. */
  #isMuted = false
  /** Everything that was sent before the present command has been answered. */
  #isSettled = false

  constructor(session: Session, transactions: Transactions) {
    this.#session = session
    this.#transactions = transactions
  }

  /** Whether lines of MONITOR come, also between the replies of a transaction. */
  get monitors(): boolean {
    return this.#session.lane.isPinned && this.#reasons.has('monitors')
  }

  /** Whether invalidations come of what the client has read. */
  get tracks(): boolean {
    return this.#session.lane.isPinned && this.#reasons.has('tracks')
  }

  /**
   * Whether every reply of a pinned lane has arrived, on which an open transaction is discarded by the question. If not,
   * the present command is taken again once that is so.
   */
  settledOrLater(): boolean {
    const { lane, parser } = this.#session
    const isSettled = this.#isSettled || lane.state.kind !== 'pinned'
    this.#isSettled = false
    if (isSettled || lane.state.kind !== 'pinned') return true
    parser.repeat()
    const settled = lane.state.stream.subscriptions().then(() => {
      this.#isSettled = true
    })
    this.#session.waitFor(settled)
    return false
  }

  /** Takes the parser's present frame, a command that subscribes or leaves. */
  routeSubscription(): void {
    if (!this.#pin()) return
    const { lane, outlet, parser } = this.#session
    // A confirmation is no reply, so there is nothing to be skipped.
    if (outlet.replies === 'skipping') outlet.replies = 'on'
    if (lane.state.kind === 'pinned') lane.state.stream.skipReply(false)
    if (this.#transactions.isOpen) this.#reasons.add('uncounted')
    if (parser.argumentCount !== 2) this.#transactions.queue?.loseCount()
    this.#forward()
    this.#lookWhetherFree()
  }

  /** Takes the parser's present frame, which is MONITOR. An engine refuses it in a transaction. */
  routeMonitor(): void {
    const { frameBuffer, frameStart, frameEnd, argumentCount } = this.#session.parser
    if (argumentCount > 1 || this.#transactions.isOpen) {
      this.#session.lane.forwardHere(frameBuffer, frameStart, frameEnd, 1)
      return
    }
    if (!this.#pin()) return
    this.#reasons.add('monitors')
    this.#session.lane.filterWith(hideMonitorSource)
    this.#forward()
  }

  /** Takes the parser's present frame, a subcommand of CLIENT about tracking with these arguments. */
  routeTracking(name: string, args: readonly string[]): void {
    if (args.some((arg) => arg.toUpperCase() === 'REDIRECT')) {
      this.#session.lane.replyAndPoison(NO_REDIRECT)
      return
    }
    if (!this.#pin()) return
    if (name === 'CLIENT|TRACKING') this.#noteTracking(args)
    this.#forward()
    // Behind CLIENT CACHING the next command has to be the client's.
    if (this.#reasons.size === 0) this.#lookWhetherFree()
  }

  /** In a transaction nobody knows whether the command is going to be carried out. */
  #noteTracking([word = '']: readonly string[]): void {
    if (word.toUpperCase() === 'ON') this.#reasons.add('tracks')
    else if (!this.#transactions.isOpen) this.#reasons.delete('tracks')
  }

  /** Lets the engine speak from now on. Answers false when the command is refused, or has to be taken again first. */
  #pin(): boolean {
    const { lane } = this.#session
    if (lane.state.kind === 'pinned') return true
    if (!this.#session.quietOrLater()) return false
    if (lane.isShared) lane.enterOwn('none')
    lane.pin()
    this.#reasons.clear()
    this.#isMuted = false
    if (this.#session.outlet.replies === 'off') this.setReplies('OFF')
    this.#transactions.followPinned()
    return true
  }

  #unpinIfFree(): void {
    const { lane, outlet } = this.#session
    if (this.#reasons.size > 0) return
    lane.unpin()
    if (this.#isMuted) outlet.replies = 'off'
    this.#isMuted = false
  }

  /** What CLIENT REPLY says (`ON`, `OFF` or `SKIP`), on a pinned lane. What is no reply comes all the same. */
  setReplies(word: string): void {
    const { lane, outlet } = this.#session
    if (lane.state.kind !== 'pinned') return
    if (word === 'SKIP') {
      lane.state.stream.skipReply(true)
      return
    }
    this.#isMuted = word === 'OFF'
    outlet.replies = 'on'
    lane.state.stream.muteReplies(this.#isMuted)
  }

  #forward(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#session.parser
    const { lane } = this.#session
    lane.forwardHere(frameBuffer, frameStart, frameEnd, 1)
  }

  /** In a transaction nothing can be looked up. */
  #lookWhetherFree(): void {
    const { lane } = this.#session
    if (lane.state.kind !== 'pinned' || this.#transactions.isOpen) return
    const counted = lane.state.stream.subscriptions()
    this.#session.waitFor(counted.then((subscriptions) => (subscriptions === 0 ? this.#unpinIfFree() : undefined)))
  }
}
