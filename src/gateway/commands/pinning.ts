import type { Session } from '../client/session.js'
import { encodeCommand } from '../resp/encode.js'
import { type Redirected, Redirects, redirectOf } from './redirects.js'
import type { Transactions } from './transactions.js'

/**
 * Why the engine may speak on its own accord besides a subscription. `uncounted`: something was subscribed or left in a
 * transaction, so nobody knows how much still is. `told`: other clients have what they track told here. `spares`: what the
 * client reads is not to look used.
 */
type Reason = 'monitors' | 'tracks' | 'uncounted' | 'told' | 'spares'

/**
 * Takes the commands after which the engine speaks on its own accord, and notices when it no longer does: everything
 * that was subscribed has been left, tracking is off. What a client sent behind such a command waits until that is
 * known, so the commands that cannot be taken meanwhile are taken again at once.
 */
export class Pinning {
  readonly #session: Session
  readonly #transactions: Transactions
  readonly #reasons = new Set<Reason>()
  readonly #redirects = new Redirects()
  /** The present command as the engine gets it. */
  #redirected: Redirected | undefined
  /** Whom the client has what it tracks told: 0 for itself. */
  #target = 0
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

  /** Whether what it reads is not to look used. */
  get spares(): boolean {
    return this.#session.lane.isPinned && this.#reasons.has('spares')
  }

  /** Whom the client has what it tracks told: 0 for itself, -1 when it tracks nothing. */
  get target(): number {
    return this.tracks ? this.#target : -1
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
    if (!this.monitors) this.#watch()
    this.#reasons.add('monitors')
    this.#forward()
  }

  #watch(): void {
    const { lane, services } = this.#session
    const view = services.guard.monitors.watch({
      now: () => services.clock.now(),
      // A line cannot be put between the elements of a transaction.
      tell: (line) => {
        const { state } = lane
        if (state.kind === 'pinned' && state.transaction !== 'open') state.stream.insert(line)
      },
    })
    lane.filterWith(view.filter, () => view.end())
  }

  /** Takes the parser's present frame, a subcommand of CLIENT about tracking with these arguments. */
  routeTracking(name: string, args: readonly string[]): void {
    if (!this.#pin()) return
    if (name === 'CLIENT|TRACKING' && redirectOf(args) !== undefined) this.#redirect(args)
    else {
      this.#note(name, args)
      this.#forward()
    }
    // Behind CLIENT CACHING the next command has to be the client's.
    if (this.#reasons.size === 0) this.#lookWhetherFree()
  }

  /** Others have what they track told here from now on. Nothing is owed. */
  becomeRedirectTarget(): Promise<number | undefined> {
    if (!this.#pin()) return Promise.resolve(undefined)
    this.#reasons.add('told')
    return this.#session.lane.number()
  }

  /** The engine gets its own number of the client that is named; that one is asked for it first. */
  #redirect(args: readonly string[]): void {
    const { lane, parser } = this.#session
    const redirected = this.#redirected
    this.#redirected = undefined
    if (!redirected) {
      parser.repeat()
      this.#session.waitFor(this.#resolve(args))
    } else if ('problem' in redirected) lane.replyAndPoison(redirected.problem)
    else {
      if (lane.state.kind === 'pinned')
        lane.state.stream.filterPushes((push) => this.#redirects.inReply('broken', push))
      this.#note('CLIENT|TRACKING', args)
      const command = encodeCommand(['CLIENT', 'TRACKING', ...redirected.args])
      lane.forwardHere(command, 0, command.length, 1)
    }
  }

  async #resolve(args: readonly string[]): Promise<void> {
    this.#redirected = await this.#redirects.resolve(args, (id) => this.#session.reach.sibling(id))
  }

  /** What is known of a command before it is answered. In a transaction nobody knows whether it will be carried out. */
  #note(name: string, args: readonly string[]): void {
    const isOn = args[0]?.toUpperCase() === 'ON'
    switch (name) {
      case 'CLIENT|TRACKING':
        if (isOn) this.#target = redirectOf(args) ?? 0
        this.#keep('tracks', isOn)
        return
      case 'CLIENT|NO-TOUCH':
        this.#keep('spares', isOn)
        return
      case 'CLIENT|GETREDIR':
        this.#renameNext('number', name)
        return
      case 'CLIENT|TRACKINGINFO':
        this.#renameNext('facts', name)
    }
  }

  #keep(reason: Reason, isOn: boolean): void {
    if (isOn) this.#reasons.add(reason)
    else if (!this.#transactions.isOpen) this.#reasons.delete(reason)
  }

  #renameNext(kind: 'number' | 'facts', name: 'CLIENT|GETREDIR' | 'CLIENT|TRACKINGINFO'): void {
    const { lane } = this.#session
    if (this.#redirects.isEmpty || lane.state.kind !== 'pinned') return
    const rename = (reply: Buffer): Buffer => this.#redirects.inReply(name, reply)
    const { queue } = this.#transactions
    if (queue) queue.changeNext(rename)
    else lane.state.stream.filterNext(kind, rename)
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
