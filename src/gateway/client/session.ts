import { type MemoryConsumer, type Timer, WORTH_NOTING_BYTES } from '../../base/index.js'
import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import type { CommandContext, RetryCondition, SessionDeps } from '../commands/command-context.js'
import { findCommand } from '../commands/command-table.js'
import { Permits } from '../commands/permits.js'
import { CommandRouter, monitorCommand } from '../commands/router.js'
import { ClientControl } from '../commands/sibling-control.js'
import type { DataUser } from '../deps.js'
import { errorText } from '../error-text.js'
import { Steering } from '../replicas/steering.js'
import { LIMITS_BEFORE_LOGIN, limitsAfterLogin } from '../resp/command-limits.js'
import { CommandParser } from '../resp/command-parser.js'
import { encodeError } from '../resp/encode.js'
import type { ClientSocket } from './client-socket.js'
import { CommandGroup } from './command-group.js'
import { Flow, type FlowOwner } from './flow.js'
import { guarded, guardedReceiver } from './guarded.js'
import type { Inlet } from './inlet.js'
import { ClientLane, type LaneOwner } from './lane.js'
import { Outlet } from './outlet.js'
import { PauseHold } from './pause-hold.js'
import { ClientProfile, describeClient } from './profile.js'
import { Upload } from './upload.js'

/** A client that sends no more still gets the replies that arrive in this time, where others may never come. */
const LAST_REPLIES_MS = 1_000
/** Effort of a stretch of empty commands, in commands that are only passed on. */
const EFFORT_OF_EMPTY = 64
/** Input that is read while the client has to wait. */
const MOST_WAITING_INPUT_BYTES = 256 * 1024
const NOTHING_SUBSCRIBED = { channels: 0, patterns: 0, shardChannels: 0 }

/** The connection of one client: frames its commands, keeps their order, and passes each to its handler or its lane. */
export class Session implements CommandContext, LaneOwner, FlowOwner, MemoryConsumer {
  readonly deps: SessionDeps
  readonly profile: ClientProfile
  readonly lane: ClientLane
  readonly outlet: Outlet
  readonly control: ClientControl
  user: DataUser | undefined
  protocol: 2 | 3 = 2
  blocked = 0

  readonly #socket: ClientSocket
  readonly #inlet: Inlet
  readonly #parser = new CommandParser()
  readonly #flow: Flow
  readonly #group: CommandGroup
  readonly #permits: Permits
  readonly #hold = new PauseHold(this)
  readonly #steering = new Steering(this)
  readonly #router: CommandRouter
  readonly #upload: Upload
  readonly #loginTimer: Timer
  #inputEnded = false

  constructor(inlet: Inlet, id: number, deps: SessionDeps) {
    const { socket } = inlet
    this.deps = deps
    this.#inlet = inlet
    this.#socket = socket
    this.profile = new ClientProfile(socket, id, deps.clock.now())
    this.lane = new ClientLane(deps.lanes, this, deps.guard.meter)
    this.outlet = new Outlet(inlet, deps.readerBounds, {
      drained: () => this.#flow.readerCaughtUp(),
      grew: (bytes) => deps.memory.grow(this, bytes),
    })
    this.#flow = new Flow(this, this.lane, this.outlet, deps.guard.maxRequestBytes)
    this.#group = new CommandGroup(this.lane, this.#flow, this.#hold, deps.guard.meter)
    this.#permits = new Permits(this)
    this.#router = new CommandRouter(this, this.#permits, this.#hold)
    this.#upload = new Upload(this, this.#parser, this.#permits, this.#hold)
    this.control = new ClientControl(this, () => this.#router.becomeRedirectTarget())
    this.#loginTimer = deps.clock.after(deps.loginTimeoutMs, () => (this.user ? undefined : this.cut()))
    inlet.receive = guardedReceiver(this, (memory, length) => this.#onData(memory, length))
    const onEnd = guarded(this, () => this.finish())
    socket.on('end', onEnd)
    socket.on('error', (error) => deps.logger.debug('gateway_client_failed', { error }))
    socket.on('close', () => this.#onClose())
  }

  get owner(): string {
    return this.deps.guard.database.databaseId
  }

  /** Bytes of an incomplete command, of unread replies, of queued commands and of names. */
  get heldBytes(): number {
    return this.#parser.heldBytes + this.outlet.queuedBytes + this.#router.heldBytes + this.profile.heldBytes
  }

  evict(): void {
    this.#cutAndWarn('gateway_client_over_memory')
  }

  get frame(): CommandParser {
    return this.#parser
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  get kind(): 'normal' | 'pubsub' {
    const { state } = this.lane
    return state.kind === 'pinned' && state.stream.isSubscribed ? 'pubsub' : 'normal'
  }

  get isPlainSubscriber(): boolean {
    return this.protocol === 2 && this.kind === 'pubsub'
  }

  get isIdle(): boolean {
    return this.#group.isEmpty && this.lane.pendingReplies === 0
  }

  get isQuiescent(): boolean {
    return this.#flow.isOpen && this.isIdle && !this.#upload.isSending
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  describe(commandBytes = 0): string {
    const { state } = this.lane
    const facts = {
      user: this.user ?? '(none)',
      protocol: this.protocol,
      ...(state.kind === 'pinned' ? state.stream.subscribed : NOTHING_SUBSCRIBED),
      ...this.#router.clientState,
      inputBytes: this.#parser.heldBytes + commandBytes,
      outputBytes: this.outlet.queuedBytes,
    }
    return describeClient(this.profile, facts, this.deps.clock.now())
  }

  identify(user: DataUser | undefined, protocol: 2 | 3): void {
    if (user !== undefined && user !== this.user) this.#inlet.settle()
    this.user = user
    this.protocol = protocol
    this.outlet.countIn(user === undefined ? undefined : this.deps.guard.meter)
    this.applyLimits()
  }

  /** Applies the limits of the database, which may have changed. */
  applyLimits(): void {
    const { maxRequestBytes } = this.deps.guard
    this.#parser.limits = this.user ? limitsAfterLogin(maxRequestBytes) : LIMITS_BEFORE_LOGIN
  }

  retryWhen(condition: RetryCondition): void {
    this.#parser.repeat()
    if (typeof condition === 'string') this.#flow.wait(condition)
    else this.waitFor(condition)
  }

  get willRetry(): boolean {
    return this.#parser.repeats
  }

  resume(condition: 'rate' | 'pause'): void {
    this.#flow.proceed(condition)
  }

  quietOrRetry(): boolean {
    if (this.lane.pendingReplies === 0) return true
    this.retryWhen('quiet')
    return false
  }

  flush(): boolean {
    this.#group.send()
    if (!this.#flow.isOpen) this.#parser.repeat()
    return this.#flow.isOpen
  }

  waitFor(promise: Promise<void>): void {
    this.#flow.wait('engine')
    promise.then(() => this.#flow.proceed('engine')).catch((error: unknown) => this.fault(error))
  }

  addEffort(effort: number): void {
    this.#flow.addEffort(effort)
  }

  reply(bytes: Buffer): void {
    this.lane.reply(bytes)
  }

  replyError(bytes: Buffer): void {
    this.lane.replyError(bytes)
  }

  refuse(error: HomeportError): void {
    this.lane.replyError(encodeError(errorText(error)))
  }

  write(bytes: Buffer): void {
    if (this.outlet.write(bytes)) this.#flow.readerFellBehind()
  }

  progressed(): void {
    this.#group.progressed()
    this.#flow.repliesArrived()
    this.control.progressed()
    if (this.#inputEnded && this.#flow.isOpen && this.lane.pendingReplies === 0) this.hangUp()
  }

  hangUp(): void {
    this.#flow.wait('end')
    this.#socket.destroySoon()
  }

  cut(): void {
    this.#flow.wait('end')
    this.#socket.destroy()
  }

  fault(error: unknown): void {
    this.deps.logger.error('gateway_client_fault', { error, databaseId: this.owner, address: this.profile.address })
    this.cut()
  }

  /** The client sends no more, or the server stops. The client still gets its replies, except those that may never come. */
  finish(): void {
    this.#inputEnded = true
    if (this.#upload.isSending) this.cut()
    else this.#finishReplies()
  }

  /**
   * Closes a connection that has sent nothing since `sinceMs` and waits for nothing. Of one that waits, a little more is
   * read: that the client has gone is behind what it has sent.
   */
  endIfIdleSince(sinceMs: number): void {
    const waits =
      this.lane.state.kind === 'pinned' || this.blocked > 0 || (this.lane.pendingReplies > 0 && !this.#upload.isSending)
    if (this.profile.lastCommandAtMs <= sinceMs && !waits) this.hangUp()
    else if (this.blocked > 0) this.#socket.resume()
  }

  takeMore(): void {
    if (this.#socket.isPaused()) this.#socket.resume()
    this.#takeCommands()
  }

  stopReading(): void {
    this.#socket.pause()
  }

  dropLostReader(): void {
    this.#cutAndWarn('gateway_client_not_reading')
  }

  #cutAndWarn(event: 'gateway_client_over_memory' | 'gateway_client_not_reading'): void {
    this.deps.logger.warn(event, { databaseId: this.owner, address: this.profile.address })
    this.cut()
  }

  #onData(memory: Buffer, length: number): void {
    this.outlet.received(length)
    // Behind bytes that are no command, nothing is one.
    if (this.#inputEnded) return
    this.#parser.push(memory, length)
    if (this.#flow.isOpen) this.#takeCommands()
    else if (this.#parser.heldBytes > MOST_WAITING_INPUT_BYTES) this.#socket.pause()
    this.#parser.release()
    if (this.heldBytes > WORTH_NOTING_BYTES) this.deps.memory.grow(this, length)
  }

  /** A fault in one client's command must not end the process, and with it every other connection. */
  #takeCommands(): void {
    try {
      this.#takeAll()
    } catch (error) {
      this.fault(error)
    }
  }

  #takeAll(): void {
    this.profile.lastCommandAtMs = this.user ? this.deps.guard.touch() : this.deps.clock.now()
    if (this.user) this.#waitForBandwidth()
    while (this.#flow.isOpen && this.#takeCommand()) this.#flow.commandTaken()
    this.#group.send()
    this.#parser.release()
    this.control.progressed()
    if (this.#inputEnded) this.#finishReplies()
  }

  #waitForBandwidth(): void {
    const { waitMs } = this.deps.guard.bandwidth
    if (waitMs === 0 || !this.#flow.isOpen) return
    this.#flow.wait('rate')
    this.deps.clock.after(waitMs, () => this.#flow.proceed('rate'))
  }

  /** @returns whether there may be another one. */
  #takeCommand(): boolean {
    if (this.outlet.replies === 'skipping' && !this.#isSkipped()) return false
    switch (this.#parser.next()) {
      case 'frame':
        this.#onFrame()
        return true
      case 'large':
        this.#upload.consider()
        return true
      case 'part':
        this.#upload.pass()
        this.#flow.commandsSent()
        return true
      case 'last':
        this.#upload.end()
        this.#conclude(this.#beginSkip())
        return true
      case 'empty':
        this.#flow.addEffort(EFFORT_OF_EMPTY)
        return true
      case 'oversize':
        this.#onOversize()
        return true
      case 'broken':
        this.#onBroken()
        return false
      case 'more':
        return false
    }
  }

  /** Whether the reply that the client does not want has arrived. */
  #isSkipped(): boolean {
    this.#group.send()
    if (this.lane.pendingReplies > 0) {
      this.#flow.wait('quiet')
      return false
    }
    this.outlet.replies = 'on'
    return true
  }

  #onFrame(): void {
    if (this.user && !this.#permits.takeToken()) return
    const { frameBuffer, nameStart, nameEnd } = this.#parser
    const command = findCommand(frameBuffer, nameStart, nameEnd)
    this.profile.lastCommand = command?.name
    if (!this.#hold.passes(command) || !this.#steering.passes(command)) return
    const skips = this.#beginSkip()
    if (command?.allowed && command.state === 'stateless' && this.user && this.#permits.passes(command)) {
      this.deps.guard.count(command, 1)
      this.#group.add(this.#parser, command)
    } else if (this.flush()) this.#router.route(command)
    if (this.deps.guard.monitors.isWatched) monitorCommand(this, command)
    this.#conclude(skips)
  }

  /** @returns whether the client does not want the reply to the present command. */
  #beginSkip(): boolean {
    if (this.outlet.replies !== 'skip') return false
    this.outlet.replies = 'skipping'
    return true
  }

  /** The present command was handled, or is going to be taken again. */
  #conclude(skips: boolean): void {
    if (skips && this.willRetry) this.outlet.replies = 'skip'
    this.#permits.conclude()
  }

  #onOversize(): void {
    this.#group.send()
    const { maxRequestBytes: limitBytes } = this.#parser.limits
    const error = refusal('request_too_large', { limitBytes, actualBytes: this.#parser.actualBytes })
    if (!this.#upload.breakOff(encodeError(errorText(error)))) this.refuse(error)
    this.#conclude(this.#beginSkip())
  }

  #onBroken(): void {
    this.#group.send()
    const problem = encodeError(`ERR ${this.#parser.problem}`)
    if (!this.#upload.breakOff(problem)) this.reply(problem)
    this.#inputEnded = true
  }

  #finishReplies(): void {
    const { state } = this.lane
    const mayNeverCome = state.kind === 'pinned' || this.blocked > 0
    if (!mayNeverCome) this.progressed()
    else this.deps.clock.after(LAST_REPLIES_MS, () => this.cut())
    if (state.kind === 'pinned' && this.#flow.isOpen) void state.stream.subscriptions().then(() => this.hangUp())
  }

  #onClose(): void {
    this.#flow.wait('end')
    this.#loginTimer.cancel()
    this.deps.memory.remove(this)
    this.#hold.close()
    this.lane.leave()
    this.control.progressed()
  }
}
