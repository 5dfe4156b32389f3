import type { Socket } from 'node:net'
import { type Holder, type Timer, WORTH_NOTING_BYTES } from '../../base/index.js'
import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import { findCommand, type ServedCommand } from '../commands/command-table.js'
import { noteCommand } from '../commands/note-command.js'
import { Permits } from '../commands/permits.js'
import { Reach } from '../commands/reach.js'
import { CommandRouter } from '../commands/router.js'
import type { ListedClient } from '../commands/session-commands.js'
import type { DataUser } from '../deps.js'
import { errorText } from '../error-text.js'
import { LatencySample } from '../limits/latency-sample.js'
import { Steering } from '../replicas/steering.js'
import { limitsAfterLogin } from '../resp/command-limits.js'
import { CommandParser } from '../resp/command-parser.js'
import { encodeError } from '../resp/encode.js'
import { Flow, type FlowOwner } from './flow.js'
import { FrameRun } from './frame-run.js'
import { guarded, guardedReceiver } from './guarded.js'
import { Hold } from './hold.js'
import type { Inlet } from './inlet.js'
import { ClientLane, type LaneOwner } from './lane.js'
import { Outlet } from './outlet.js'
import { ClientProfile, describeClient } from './profile.js'
import type { SessionServices } from './session-services.js'
import { Upload } from './upload.js'

/** Replies that the engine has ready still reach a client that sends no more, though others may never come. */
const LAST_REPLIES_MS = 1_000
/** Many commands of nothing are as much work as so many that are passed on. */
const EFFORT_OF_EMPTY = 64
/** Input that is read while the client has to wait. */
const HELD_INPUT_BYTES = 256 * 1024
const NOTHING_SUBSCRIBED = { channels: 0, patterns: 0, shardChannels: 0 }

/** The connection of one client: frames its commands, keeps their order, and sends them where they belong. */
export class Session implements LaneOwner, FlowOwner, ListedClient, Holder {
  readonly inlet: Inlet
  readonly profile: ClientProfile
  readonly services: SessionServices
  readonly parser = new CommandParser()
  readonly lane: ClientLane
  readonly outlet: Outlet
  readonly permits: Permits
  readonly hold = new Hold(this)
  readonly reach = new Reach(this)
  readonly #steering = new Steering(this)
  user: DataUser | undefined
  protocol: 2 | 3 = 2
  /** Commands that wait in the engine until something happens, or here until a pause ends. */
  blocked = 0

  readonly #socket: Socket
  readonly router: CommandRouter
  readonly flow = new Flow(this)
  readonly #upload = new Upload(this)
  #inputEnded = false
  readonly #latency: LatencySample
  readonly #loginTimer: Timer
  readonly #run = new FrameRun()

  constructor(inlet: Inlet, id: number, services: SessionServices) {
    const { socket } = inlet
    this.inlet = inlet
    this.services = services
    this.#socket = socket
    this.profile = new ClientProfile(socket, id, services.clock.now())
    this.lane = new ClientLane(services.lanes, this, services.guard.meter)
    this.outlet = new Outlet(inlet, services.guard.meter, services.readerBounds, {
      drained: () => this.flow.drained(),
      grew: (bytes) => services.memory.grew(this, bytes),
    })
    this.permits = new Permits(this)
    this.#latency = new LatencySample(services.guard.meter)
    this.router = new CommandRouter(this)
    this.#loginTimer = services.clock.after(services.loginTimeoutMs, () => (this.user ? undefined : this.cut()))
    inlet.receive = guardedReceiver(this, (memory, length) => this.#onData(memory, length))
    const onEnd = guarded(this, () => this.#onInputEnd())
    socket.on('end', onEnd)
    socket.on('error', (error) => services.logger.debug({ error }, 'a client connection failed'))
    socket.on('close', () => this.#onClose())
  }

  get owner(): string {
    return this.services.guard.database.databaseId
  }

  /** A command that has not come to its end, and replies that were not read. */
  get heldBytes(): number {
    return this.parser.heldBytes + this.outlet.queuedBytes
  }

  evict(): void {
    this.#cutTelling('a client was disconnected: its unfinished commands and unread replies took too much memory')
  }

  /** Where the client connects from. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  get kind(): 'normal' | 'pubsub' {
    const { state } = this.lane
    return state.kind === 'pinned' && state.stream.isSubscribed ? 'pubsub' : 'normal'
  }

  /** Whether the client has subscribed to something in RESP2, where an engine takes hardly any other command. */
  get isPlainSubscriber(): boolean {
    const { state } = this.lane
    return this.protocol === 2 && state.kind === 'pinned' && state.stream.isSubscribed
  }

  describe(commandBytes = 0): string {
    const { state } = this.lane
    const facts = {
      user: this.user ?? '(none)',
      protocol: this.protocol,
      ...(state.kind === 'pinned' ? state.stream.subscribed : NOTHING_SUBSCRIBED),
      ...this.router.clientState,
      inputBytes: this.parser.heldBytes + commandBytes,
      outputBytes: this.outlet.queuedBytes,
    }
    return describeClient(this.profile, facts, this.services.clock.now())
  }

  /** From now on the client gets its replies, or none. Only while nothing is owed. */
  setReplies(on: boolean): void {
    this.outlet.replies = on ? 'on' : 'off'
  }

  /** The client does not want the reply to its next command. Only while nothing is owed. */
  skipReply(): void {
    if (this.outlet.replies !== 'off') this.outlet.replies = 'skip'
  }

  /** Whether every reply has arrived. If not, the present command is taken again once that is so. */
  quietOrLater(): boolean {
    if (this.lane.owed === 0) return true
    this.parser.repeat()
    this.flow.wait('quiet')
    return false
  }

  /** Whether nothing was taken that is not yet answered. */
  get isIdle(): boolean {
    return this.#run.count === 0 && this.lane.owed === 0
  }

  /** Whether no command is under way either. */
  get isAtRest(): boolean {
    return this.flow.isOpen && this.isIdle && !this.#upload.isSending
  }

  /** Sends what was taken before the present command. Answers false when that one has to be taken again first. */
  sendRun(): boolean {
    this.#flushRun()
    if (!this.flow.isOpen) this.parser.repeat()
    return this.flow.isOpen
  }

  /** Takes no further command until `promise` is settled. */
  waitFor(promise: Promise<void>): void {
    this.flow.wait('engine')
    promise.then(() => this.flow.proceed('engine')).catch((error: unknown) => this.fault(error))
  }

  /** The limits of the database have changed. */
  relimit(): void {
    if (this.user) this.parser.limits = limitsAfterLogin(this.services.guard.maxRequestBytes)
  }

  /** Ends a connection that has sent nothing since `sinceMs` and waits for nothing. */
  endIfIdleSince(sinceMs: number): void {
    const waits =
      this.lane.state.kind === 'pinned' || this.blocked > 0 || (this.lane.owed > 0 && !this.#upload.isSending)
    if (this.profile.lastCommandAtMs <= sinceMs && !waits) this.hangUp()
  }

  /** Answers with an error of the catalogue. */
  refuse(error: HomeportError): void {
    this.lane.replyAndPoison(encodeError(errorText(error)))
  }

  write(bytes: Buffer): void {
    if (this.outlet.write(bytes)) this.flow.slowed()
  }

  progressed(): void {
    this.#latency.answered(this.lane.answered)
    this.flow.answered()
    this.reach.progressed()
    if (this.#inputEnded && this.flow.isOpen && this.lane.owed === 0) this.hangUp()
  }

  hangUp(): void {
    this.flow.wait('end')
    this.#socket.destroySoon()
  }

  /** The server stops: ends once what is owed has arrived, or at once where that may take forever. */
  finish(): void {
    this.#onInputEnd()
  }

  cut(): void {
    this.flow.wait('end')
    this.#socket.destroy()
  }

  #onData(memory: Buffer, length: number): void {
    this.services.guard.meter.bytesIn += length
    this.parser.push(memory, length)
    if (this.flow.isOpen) this.#takeCommands()
    else if (this.parser.heldBytes > HELD_INPUT_BYTES) this.#socket.pause()
    this.parser.release()
    if (this.parser.heldBytes > WORTH_NOTING_BYTES) this.services.memory.grew(this, length)
  }

  /** Whatever goes wrong with a command must not end the process, and with it everybody else's connections. */
  #takeCommands(): void {
    try {
      this.#takeAll()
    } catch (error) {
      this.fault(error)
    }
  }

  #takeAll(): void {
    this.profile.lastCommandAtMs = this.user ? this.services.guard.touch() : this.services.clock.now()
    if (this.user) this.#waitForBandwidth()
    while (this.flow.isOpen && this.#takeCommand()) this.flow.took()
    this.#flushRun()
    this.parser.release()
    this.reach.progressed()
    if (this.#inputEnded) this.#finishReplies()
  }

  #waitForBandwidth(): void {
    const { waitMs } = this.services.guard.bandwidth
    if (waitMs === 0 || !this.flow.isOpen) return
    this.flow.wait('rate')
    this.services.clock.after(waitMs, () => this.flow.proceed('rate'))
  }

  /** @returns whether there may be another one. */
  #takeCommand(): boolean {
    if (this.outlet.replies === 'skipping' && !this.#isSkipped()) return false
    switch (this.parser.next()) {
      case 'frame':
        this.#onFrame()
        return true
      case 'large':
        this.#upload.consider()
        return true
      case 'part':
        this.#upload.pass()
        this.flow.sent()
        return true
      case 'last':
        this.#upload.end()
        this.#conclude(this.#beginSkip())
        return true
      case 'empty':
        this.flow.toil(EFFORT_OF_EMPTY)
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

  /** Whether the reply that the client does not want has come. */
  #isSkipped(): boolean {
    this.#flushRun()
    if (this.lane.owed > 0) {
      this.flow.wait('quiet')
      return false
    }
    this.outlet.replies = 'on'
    return true
  }

  #onFrame(): void {
    const { parser } = this
    if (this.user && !this.permits.takeToken()) return
    const command = findCommand(parser.frameBuffer, parser.nameStart, parser.nameEnd)
    this.profile.lastCommand = command?.name
    if (!this.hold.passes(command) || !this.#steering.passes(command)) return
    const skips = this.#beginSkip()
    if (command?.allowed && command.state === 'stateless' && this.user && this.permits.passes(command))
      this.#addToRun(command)
    else if (this.sendRun()) this.router.route(command)
    if (this.services.guard.monitors.isWatched) noteCommand(this, command)
    this.#conclude(skips)
  }

  /** @returns whether the present command is the one whose reply the client does not want. */
  #beginSkip(): boolean {
    if (this.outlet.replies !== 'skip') return false
    this.outlet.replies = 'skipping'
    return true
  }

  /** The present command has been dealt with, or is going to be taken again. */
  #conclude(skips: boolean): void {
    if (skips && this.parser.repeats) this.outlet.replies = 'skip'
    this.permits.conclude()
  }

  #addToRun(command: ServedCommand): void {
    this.services.guard.count(command, 1)
    const { frameBuffer, frameStart, frameEnd } = this.parser
    if (!this.#run.isContinuedBy(frameBuffer, frameStart)) this.#flushRun()
    this.#run.add(frameBuffer, frameStart, frameEnd, command)
    if (this.flow.isFull(this.#run.count)) this.#flushRun()
  }

  #flushRun(): void {
    const { buffer, start, end, count, writes } = this.#run
    if (count === 0) return
    if (this.#run.mayWrite) this.hold.noteWrites()
    this.#run.clear()
    this.lane.forward(buffer, start, end, count)
    if (this.lane.state.kind !== 'pinned') this.#latency.begin(this.lane.answered + this.lane.owed, writes)
    this.flow.sent()
  }

  #onOversize(): void {
    this.#flushRun()
    const { maxRequestBytes: limitBytes } = this.parser.limits
    const error = refusal('request_too_large', { limitBytes, actualBytes: this.parser.actualBytes })
    if (!this.#upload.breakOff(encodeError(errorText(error)))) this.refuse(error)
    this.#conclude(this.#beginSkip())
  }

  #onBroken(): void {
    this.#flushRun()
    const problem = encodeError(`ERR ${this.parser.problem}`)
    if (!this.#upload.breakOff(problem)) this.lane.reply(problem)
    this.#inputEnded = true
    if (this.flow.isOpen) this.progressed()
  }

  goOn(): void {
    if (this.#socket.isPaused()) this.#socket.resume()
    this.#takeCommands()
  }

  dropLostReader(): void {
    this.#cutTelling('a client that does not read its replies was disconnected')
  }

  fault(error: unknown): void {
    const { address } = this.profile
    const message = 'a client was disconnected: its command has met a fault'
    this.services.logger.error({ error, databaseId: this.owner, address }, message)
    this.cut()
  }

  #cutTelling(message: string): void {
    this.services.logger.warn({ databaseId: this.owner, address: this.profile.address }, message)
    this.cut()
  }

  /** The client sends no more. It still gets the replies that it waits for, except those that may never come. */
  #onInputEnd(): void {
    this.#inputEnded = true
    if (this.#upload.isSending) this.cut()
    else this.#finishReplies()
  }

  #finishReplies(): void {
    const { state } = this.lane
    const mayNeverCome = state.kind === 'pinned' || this.blocked > 0
    if (!mayNeverCome) this.progressed()
    else this.services.clock.after(LAST_REPLIES_MS, () => this.cut())
    if (state.kind === 'pinned' && this.flow.isOpen) void state.stream.subscriptions().then(() => this.hangUp())
  }

  #onClose(): void {
    this.flow.wait('end')
    this.#loginTimer.cancel()
    this.services.memory.gone(this)
    this.hold.close()
    this.lane.leave()
    this.reach.progressed()
  }
}
