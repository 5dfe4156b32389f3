import type { Socket } from 'node:net'
import type { Clock, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors.js'
import { findCommand, type ServedCommand } from '../command-table.js'
import { errorText } from '../error-text.js'
import type { Lanes } from '../lane/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { LatencySample } from '../limits/latency-sample.js'
import type { LoginWatch } from '../limits/login-watch.js'
import { Steering } from '../regions/steering.js'
import { CommandParser, limitsAfterLogin } from '../resp/command-parser.js'
import { encodeError } from '../resp/encode.js'
import type { Administration, DatabaseDirectory, DataUser, GatewayLogger } from '../seams.js'
import { ClientLane, type LaneOwner } from './client-lane.js'
import { type ClientProfile, describeClient, newProfile } from './client-profile.js'
import { CommandRouter } from './command-router.js'
import { FrameRun } from './frame-run.js'
import { Permits } from './permits.js'
import type { ListedClient } from './session-commands.js'

/** What a session needs of its surroundings. */
export interface SessionServices {
  /** What limits and counts the commands of the database. */
  readonly guard: DatabaseGuard
  readonly directory: Pick<DatabaseDirectory, 'authenticate'>
  readonly administration: Administration
  /** Slows down those who guess passwords. */
  readonly logins: LoginWatch
  /** How long a client may be connected without having logged in. */
  readonly loginTimeoutMs: number
  readonly lanes: Lanes
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** The other sessions of the same database, this one included. */
  readonly siblings: () => Iterable<Session>
}

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
 * - `reader`: until the client has read more of what was sent to it.
 * - `end`: for ever; the connection is being closed.
 */
type Wait = 'nothing' | 'quiet' | 'window' | 'engine' | 'rate' | 'reader' | 'end'

/**
 * Whether the client gets its replies (CLIENT REPLY). `skip`: all but the next one; `skipping`: that one is on its way.
 */
type Replies = 'on' | 'off' | 'skip' | 'skipping'

/**
 * Commands of one client that may be with the engine at a time: at first, and at most. The window doubles each time it
 * was full and its replies have come, so that a client whose replies are huge is known as a slow reader while little
 * is on its way.
 */
const FIRST_WINDOW = 32
const LARGEST_WINDOW = 256
/** Replies that a client may leave unread before it gets a lane of its own and has to wait. */
const SLOW_READER_BYTES = 1024 * 1024
/** Replies that a client may leave unread on a shared lane, where nobody can be made to wait for it. */
const LOST_READER_BYTES = 256 * 1024 * 1024
/** Input that is read while the client has to wait. */
const HELD_INPUT_BYTES = 256 * 1024

/** The connection of one client: frames its commands, keeps their order, and sends them where they belong. */
export class Session implements LaneOwner, ListedClient {
  readonly profile: ClientProfile
  readonly services: SessionServices
  readonly parser = new CommandParser()
  readonly lane: ClientLane
  readonly permits: Permits
  readonly #steering = new Steering(this)
  user: DataUser | undefined
  protocol: 2 | 3 = 2

  readonly #socket: Socket
  readonly #router: CommandRouter
  #wait: Wait = 'nothing'
  #replies: Replies = 'on'
  #window = FIRST_WINDOW
  #inputEnded = false
  readonly #latency: LatencySample
  readonly #loginTimer: Timer
  readonly #run = new FrameRun()

  constructor(socket: Socket, id: number, services: SessionServices) {
    this.services = services
    this.#socket = socket
    this.profile = newProfile(socket, id, services.clock.now())
    this.lane = new ClientLane(services.lanes, this, services.guard.meter)
    this.permits = new Permits(this)
    this.#latency = new LatencySample(services.guard.meter)
    this.#router = new CommandRouter(this)
    this.#loginTimer = services.clock.after(services.loginTimeoutMs, () => this.#endStranger())
    socket.on('data', (chunk: Buffer) => this.#onData(chunk))
    socket.on('drain', () => this.#onDrain())
    socket.on('end', () => this.#onInputEnd())
    socket.on('error', (error) => services.logger.debug({ err: error }, 'a client connection failed'))
    socket.on('close', () => this.#onClose())
  }

  /** Where the client connects from. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  get kind(): 'normal' | 'pubsub' {
    return this.lane.state.kind === 'pinned' ? 'pubsub' : 'normal'
  }

  describe(): string {
    const { kind } = this.lane.state
    const inTransaction = this.lane.state.kind === 'own' && this.lane.state.transaction === 'open'
    const flags = kind === 'pinned' ? 'P' : inTransaction ? 'x' : 'N'
    const facts = { user: this.user ?? '(none)', protocol: this.protocol, flags } as const
    return describeClient(this.profile, facts, this.services.clock.now())
  }

  /** From now on the client gets its replies, or none. Only while nothing is owed. */
  setReplies(on: boolean): void {
    this.#replies = on ? 'on' : 'off'
  }

  /** The client does not want the reply to its next command. Only while nothing is owed. */
  skipReply(): void {
    if (this.#replies === 'on') this.#replies = 'skip'
  }

  /** Whether every reply has arrived. If not, the present command is taken again once that is so. */
  quietOrLater(): boolean {
    if (this.lane.owed === 0) return true
    this.parser.repeat()
    this.#wait = 'quiet'
    return false
  }

  /** Takes the present command again when its turn has come among those of the database. */
  waitForTurn(): void {
    this.parser.repeat()
    this.#wait = 'rate'
    this.services.guard.rate.wait(1, () => {
      this.permits.giveToken()
      this.#proceed('rate')
    })
  }

  /** Whether nothing was taken that is not yet answered. */
  get isIdle(): boolean {
    return this.#run.count === 0 && this.lane.owed === 0
  }

  /** Sends what was taken before the present command. Answers false when that one has to be taken again first. */
  sendRun(): boolean {
    this.#flushRun()
    if (this.#wait !== 'nothing') this.parser.repeat()
    return this.#wait === 'nothing'
  }

  /** Takes no further command until `promise` is settled. */
  waitFor(promise: Promise<void>): void {
    this.#wait = 'engine'
    void promise.finally(() => this.#proceed('engine'))
  }

  /** The limits of the database have changed. */
  relimit(): void {
    if (this.user) this.parser.limits = limitsAfterLogin(this.services.guard.maxRequestBytes)
  }

  /** Ends a connection that has sent nothing since `sinceMs` and waits for nothing. */
  endIfIdleSince(sinceMs: number): void {
    if (this.profile.lastCommandAtMs <= sinceMs && this.lane.owed === 0 && this.lane.state.kind !== 'pinned') {
      this.hangUp()
    }
  }

  /** Answers with an error of the catalogue. */
  refuse(error: HomeportError): void {
    this.lane.replyAndPoison(encodeError(errorText(error)))
  }

  write(bytes: Buffer): void {
    if (this.#socket.destroyed || this.#replies !== 'on') return
    this.services.guard.meter.bytesOut += bytes.length
    this.#socket.write(bytes)
    if (this.#socket.writableLength > SLOW_READER_BYTES) this.#onSlowReader()
  }

  progressed(): void {
    this.#latency.answered(this.lane.answered)
    if (this.#wait === 'reader') this.#afterReader()
    else if (this.#wait === 'quiet' && this.lane.owed === 0) this.#proceedSoon('quiet')
    else if (this.#wait === 'window' && this.lane.owed <= this.#window / 2) this.#widen()
    else if (this.#inputEnded && this.#wait === 'nothing' && this.lane.owed === 0) this.hangUp()
  }

  hangUp(): void {
    this.#wait = 'end'
    this.#socket.destroySoon()
  }

  /** The server stops: ends once what is owed has arrived, or at once where that may take for ever. */
  finish(): void {
    this.#onInputEnd()
  }

  cut(): void {
    this.#wait = 'end'
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    this.services.guard.meter.bytesIn += chunk.length
    this.parser.push(chunk)
    if (this.#wait === 'nothing') this.#takeCommands()
    else if (this.parser.heldBytes > HELD_INPUT_BYTES) this.#socket.pause()
  }

  #takeCommands(): void {
    this.profile.lastCommandAtMs = this.user ? this.services.guard.touch() : this.services.clock.now()
    if (this.user) this.#waitForBandwidth()
    while (this.#wait === 'nothing' && this.#takeCommand()) {
      // every turn takes one command
    }
    this.#flushRun()
    this.parser.release()
    if (this.#inputEnded) this.progressed()
  }

  #waitForBandwidth(): void {
    const { waitMs } = this.services.guard.bandwidth
    if (waitMs === 0 || this.#wait !== 'nothing') return
    this.#wait = 'rate'
    this.services.clock.after(waitMs, () => this.#proceed('rate'))
  }

  /** @returns whether there may be another one. */
  #takeCommand(): boolean {
    if (this.#replies === 'skipping' && !this.#isSkipped()) return false
    switch (this.parser.next()) {
      case 'frame':
        this.#onFrame()
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
      this.#wait = 'quiet'
      return false
    }
    this.#replies = 'on'
    return true
  }

  #onFrame(): void {
    const { parser } = this
    if (this.user && !this.permits.takeToken()) return
    const skips = this.#replies === 'skip'
    const command = findCommand(parser.frameBuffer, parser.nameStart, parser.nameEnd)
    if (!this.#steering.passes(command)) return
    if (command?.allowed && command.state === 'stateless' && this.user && this.permits.passes(command))
      this.#addToRun(command)
    else if (this.sendRun()) this.#router.route(command)
    if (skips && !parser.repeats) this.#replies = 'skipping'
    this.permits.conclude()
  }

  #addToRun(command: ServedCommand): void {
    this.services.guard.count(command, 1)
    const { frameBuffer, frameStart, frameEnd } = this.parser
    if (!this.#run.isContinuedBy(frameBuffer, frameStart)) this.#flushRun()
    this.#run.add(frameBuffer, frameStart, frameEnd, command.access === 'write')
    if (this.#run.count + this.lane.owed >= this.#window) this.#flushRun()
  }

  #flushRun(): void {
    const { buffer, start, end, count, writes } = this.#run
    if (count === 0) return
    this.#run.clear()
    this.lane.forward(buffer, start, end, count)
    if (this.lane.state.kind !== 'pinned') this.#latency.begin(this.lane.answered + this.lane.owed, writes)
    this.#mindFlow()
  }

  #mindFlow(): void {
    const { state, owed } = this.lane
    if (this.#wait !== 'nothing' || state.kind === 'none') return
    if (owed >= this.#window) this.#wait = 'window'
    else if (state.link.isCongested) {
      this.#wait = 'engine'
      state.link.onceRoomy(() => this.#proceedSoon('engine'))
    }
  }

  #onOversize(): void {
    this.#flushRun()
    const { maxRequestBytes: limitBytes } = this.parser.limits
    this.refuse(new HomeportError('request_too_large', { limitBytes, actualBytes: this.parser.actualBytes }))
  }

  #onBroken(): void {
    this.#flushRun()
    this.lane.reply(encodeError(`ERR ${this.parser.problem}`))
    this.#inputEnded = true
    if (this.#wait === 'nothing') this.progressed()
  }

  #widen(): void {
    this.#window = Math.min(2 * this.#window, LARGEST_WINDOW)
    this.#proceedSoon('window')
  }

  /** After the present call has returned: the lane that calls is in the middle of its own work. */
  #proceedSoon(from: Wait): void {
    queueMicrotask(() => this.#proceed(from))
  }

  #proceed(from: Wait): void {
    if (this.#wait !== from) return
    if (from !== 'reader' && this.#socket.writableLength > SLOW_READER_BYTES) {
      this.#wait = 'reader'
      return
    }
    this.#wait = 'nothing'
    if (this.#socket.isPaused()) this.#socket.resume()
    this.#takeCommands()
  }

  #onSlowReader(): void {
    this.lane.hold()
    if (this.lane.state.kind === 'shared' && this.#socket.writableLength > LOST_READER_BYTES) this.#dropLostReader()
    else if (this.#wait === 'nothing') this.#wait = 'reader'
  }

  #dropLostReader(): void {
    const { databaseId } = this.services.guard.database
    const { address } = this.profile
    this.services.logger.warn({ databaseId, address }, 'a client that does not read its replies was disconnected')
    this.cut()
  }

  #onDrain(): void {
    this.lane.unhold()
    if (this.#wait === 'reader') this.#afterReader()
  }

  /** Whoever read too slowly once is not trusted with the shared lane again: there, nobody can wait for it. */
  #afterReader(): void {
    if (this.#socket.writableNeedDrain) return
    if (this.lane.state.kind === 'shared') {
      if (this.lane.owed > 0) return
      this.lane.enterOwn('kept')
    }
    this.#proceedSoon('reader')
  }

  /** The client sends no more. It may still wait for replies, but nobody waits for it on a lane of its own. */
  #onInputEnd(): void {
    this.#inputEnded = true
    const { kind } = this.lane.state
    if (kind === 'own' || kind === 'pinned') this.cut()
    else this.progressed()
  }

  #endStranger(): void {
    if (!this.user) this.cut()
  }

  #onClose(): void {
    this.#wait = 'end'
    this.#loginTimer.cancel()
    this.lane.leave()
  }
}
