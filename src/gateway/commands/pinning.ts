import type { MonitorView } from '../monitor/monitors.js'
import { encodeCommand } from '../resp/encode.js'
import type { CommandContext } from './command-context.js'
import { findSibling, type Redirected, Redirects, redirectOf } from './sibling-control.js'
import type { Transactions } from './transactions.js'

/**
 * Why a lane stays pinned besides subscriptions.
 *
 * - `monitors`, `tracks`: MONITOR, CLIENT TRACKING ON.
 * - `uncounted`: a transaction subscribes or unsubscribes, so the number of subscriptions is unknown.
 * - `redirectTarget`: the client receives the invalidations of other clients.
 * - `noTouch`: CLIENT NO-TOUCH ON, a state of the engine's connection.
 */
type Reason = 'monitors' | 'tracks' | 'uncounted' | 'redirectTarget' | 'noTouch'

/**
 * Pins a client's lane for commands after which the engine pushes messages, and unpins it when the client has
 * unsubscribed from everything and tracking is off. Later commands of the client wait until it is known whether the lane
 * stays pinned.
 */
export class Pinning {
  readonly #context: CommandContext
  readonly #transactions: Transactions
  readonly #reasons = new Set<Reason>()
  readonly #redirects = new Redirects()
  /** The present CLIENT TRACKING in the form for the engine. */
  #redirected: Redirected | undefined
  /** Id of the client that gets this client's invalidations; 0 for itself. */
  #target = 0
  /** Whether the client of a pinned lane has turned replies off. */
  #isMuted = false
  /** Whether everything sent before the present command was answered. */
  #isSettled = false

  constructor(context: CommandContext, transactions: Transactions) {
    this.#context = context
    this.#transactions = transactions
  }

  /** Whether the client gets lines of MONITOR, also between the replies of a transaction. */
  get monitors(): boolean {
    return this.#isPinnedFor('monitors')
  }

  /** Whether the engine tracks what the client reads. */
  get tracks(): boolean {
    return this.#isPinnedFor('tracks')
  }

  /** Whether reads of the client leave the access time of keys unchanged. */
  get noTouch(): boolean {
    return this.#isPinnedFor('noTouch')
  }

  /** Id of the client that gets this client's invalidations: 0 for itself, -1 without tracking. */
  get redirectId(): number {
    return this.tracks ? this.#target : -1
  }

  #isPinnedFor(reason: Reason): boolean {
    return this.#context.lane.isPinned && this.#reasons.has(reason)
  }

  /**
   * Whether every reply of a pinned lane has arrived. If not, the present command is taken again when they have. A call
   * discards an open transaction.
   */
  settledOrRetry(): boolean {
    const { state } = this.#context.lane
    const isSettled = this.#isSettled || state.kind !== 'pinned'
    this.#isSettled = false
    if (isSettled || state.kind !== 'pinned') return true
    const settled = state.stream.subscriptions().then(() => {
      this.#isSettled = true
    })
    this.#context.flow.retryWhen(settled)
    return false
  }

  /** Routes the present command, which subscribes or unsubscribes. */
  routeSubscription(): void {
    if (!this.#pin() || !this.#unskip()) return
    const { frame } = this.#context
    if (this.#transactions.isOpen) this.#reasons.add('uncounted')
    if (frame.argumentCount !== 2) this.#transactions.queue?.loseCount()
    this.#send()
    this.#unpinUnlessSubscribed()
  }

  /**
   * Ends CLIENT REPLY SKIP, which does not skip a confirmation, because that is not a reply. Waits first for earlier
   * replies, which may still have to be skipped.
   * @returns false: the present command is taken again first
   */
  #unskip(): boolean {
    const { state } = this.#context.lane
    const skips = state.kind === 'pinned' && state.stream.skipsReply && !this.#transactions.isOpen
    if (!skips) this.#isSettled = false
    if (!skips) return true
    if (!this.settledOrRetry()) return false
    state.stream.skipReply(false)
    return true
  }

  /** Routes MONITOR. An engine refuses it in a transaction. */
  routeMonitor(): void {
    if (this.#context.frame.argumentCount > 1 || this.#transactions.isOpen) {
      this.#send()
      return
    }
    const refusal = this.monitors ? undefined : this.#context.deps.guard.monitors.refusal
    if (refusal) {
      this.#context.refuse(refusal)
      return
    }
    if (!this.#pin()) return
    if (this.monitors) this.#send()
    else if (this.settledOrRetry()) this.#monitor()
  }

  #monitor(): void {
    const { lane, deps } = this.#context
    if (lane.state.kind !== 'pinned') return
    const { stream } = lane.state
    const view = deps.guard.monitors.watch({
      now: () => deps.clock.now(),
      // The gateway cannot insert a line between the elements of the reply to EXEC.
      show: (line) => {
        const { state } = lane
        if (state.kind === 'pinned' && state.transaction !== 'open') state.stream.insert(line)
      },
    })
    lane.filterWith(view.filter, () => view.end())
    this.#reasons.add('monitors')
    this.#send()
    this.#context.flow.waitFor(stream.subscriptions().then((count) => this.#unmonitorIfRefused(view, count)))
  }

  #unmonitorIfRefused(view: MonitorView, subscriptions: number): void {
    if (!view.isRefused) return
    this.#reasons.delete('monitors')
    if (subscriptions === 0) this.#unpinWithoutReason()
  }

  /** Routes a subcommand of CLIENT about tracking, with these arguments. */
  routeTracking(name: string, args: readonly string[]): void {
    if (!this.#pin()) return
    if (name === 'CLIENT|TRACKING' && redirectOf(args) !== undefined) this.#redirect(args)
    else {
      this.#note(name, args)
      this.#send()
    }
    // Only without a reason to stay pinned does it ask the engine: CLIENT CACHING applies to the client's next command.
    if (this.#reasons.size === 0) this.#unpinUnlessSubscribed()
  }

  /** Pins the lane, so that the client can receive the invalidations of others. Only while no reply is pending. */
  becomeRedirectTarget(): Promise<number | undefined> {
    if (!this.#pin()) return Promise.resolve(undefined)
    this.#reasons.add('redirectTarget')
    return this.#context.lane.engineClientId()
  }

  /** Sends CLIENT TRACKING with the engine's id of the target client. The first call asks the target for that id. */
  #redirect(args: readonly string[]): void {
    const { lane } = this.#context
    const redirected = this.#redirected
    this.#redirected = undefined
    if (!redirected) this.#context.flow.retryWhen(this.#resolve(args))
    else if ('problem' in redirected) this.#context.lane.replyError(redirected.problem)
    else {
      if (lane.state.kind === 'pinned')
        lane.state.stream.filterPushes((push) => this.#redirects.inReply('broken', push))
      this.#note('CLIENT|TRACKING', args)
      const command = encodeCommand(['CLIENT', 'TRACKING', ...redirected.args])
      lane.send(command, 0, command.length, 1)
    }
  }

  async #resolve(args: readonly string[]): Promise<void> {
    this.#redirected = await this.#redirects.resolve(args, (id) => findSibling(this.#context, id))
  }

  /** Records what a command will change. A command in a transaction may not run, so there it only adds reasons. */
  #note(name: string, args: readonly string[]): void {
    const isOn = args[0]?.toUpperCase() === 'ON'
    switch (name) {
      case 'CLIENT|TRACKING':
        if (isOn) this.#target = redirectOf(args) ?? 0
        this.#setReason('tracks', isOn)
        return
      case 'CLIENT|NO-TOUCH':
        this.#setReason('noTouch', isOn)
        return
      case 'CLIENT|GETREDIR':
        this.#translateNext('number', name)
        return
      case 'CLIENT|TRACKINGINFO':
        this.#translateNext('facts', name)
    }
  }

  #setReason(reason: Reason, isOn: boolean): void {
    if (isOn) this.#reasons.add(reason)
    else if (!this.#transactions.isOpen) this.#reasons.delete(reason)
  }

  /** Translates the engine's id in the next reply of this kind. */
  #translateNext(kind: 'number' | 'facts', name: 'CLIENT|GETREDIR' | 'CLIENT|TRACKINGINFO'): void {
    const { lane } = this.#context
    if (this.#redirects.isEmpty || lane.state.kind !== 'pinned') return
    const translate = (reply: Buffer): Buffer => this.#redirects.inReply(name, reply)
    const { queue } = this.#transactions
    if (queue) queue.changeNext(translate)
    else lane.state.stream.filterNext(kind, translate)
  }

  /** Pins the lane if it is not pinned. False: the present command is taken again first. */
  #pin(): boolean {
    const { lane } = this.#context
    if (lane.state.kind !== 'pinned') {
      if (!this.#context.flow.quietOrRetry()) return false
      if (lane.isShared) lane.enterDedicated('none')
      lane.pin()
      this.#reasons.clear()
      this.#isMuted = false
      this.#transactions.followPinned()
    }
    this.#adoptReplies()
    return true
  }

  /** Applies an earlier CLIENT REPLY of the client to the stream. */
  #adoptReplies(): void {
    const { outlet } = this.#context
    const { replies } = outlet
    if (replies === 'on') return
    outlet.replies = 'on'
    this.setReplies(replies === 'off' ? 'OFF' : 'SKIP')
  }

  #unpinWithoutReason(): void {
    const { lane, outlet } = this.#context
    if (this.#reasons.size > 0) return
    lane.unpin()
    if (this.#isMuted) outlet.replies = 'off'
    this.#isMuted = false
  }

  /** Applies CLIENT REPLY (`ON`, `OFF` or `SKIP`) to a pinned lane. Messages that are no replies still pass. */
  setReplies(word: string): void {
    const { lane, outlet } = this.#context
    if (lane.state.kind !== 'pinned') return
    if (word === 'SKIP') {
      lane.state.stream.skipReply(true)
      return
    }
    this.#isMuted = word === 'OFF'
    outlet.replies = 'on'
    lane.state.stream.muteReplies(this.#isMuted)
  }

  #send(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#context.frame
    this.#context.lane.send(frameBuffer, frameStart, frameEnd, 1)
  }

  /** Unpins the lane if nothing is subscribed. In a transaction the engine cannot be asked. */
  #unpinUnlessSubscribed(): void {
    const { lane } = this.#context
    if (lane.state.kind !== 'pinned' || this.#transactions.isOpen) return
    const counted = lane.state.stream.subscriptions()
    this.#context.flow.waitFor(counted.then((count) => (count === 0 ? this.#unpinWithoutReason() : undefined)))
  }
}
