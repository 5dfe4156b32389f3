import { type Timer, unreachable } from '../../base/index.js'
import type { PauseHold } from '../client/pause-hold.js'
import { DISCARD } from '../engine/reply-sink.js'
import { askOver } from '../limits/engine-questions.js'
import { frameArguments } from '../resp/arguments.js'
import { encodeCommand, encodeError, encodeSimple } from '../resp/encode.js'
import { keep } from '../resp/lent-memory.js'
import { administer } from './administer.js'
import { blockTimeoutMs } from './block-timeout.js'
import type { CommandContext } from './command-context.js'
import { bareContainer, findSubcommand, type KnownCommand, type ServedCommand } from './command-table.js'
import { Login } from './login.js'
import { hasTooManyArguments, type Permits, tooManyArguments } from './permits.js'
import { Pinning } from './pinning.js'
import { MAX_PLACES, type QueuedAnswers } from './queued-answers.js'
import {
  arityProblem,
  isAnsweredHere,
  notForSubscribers,
  refusalOf,
  subcommandRefusal,
  tooLongToAnswer,
  wrongArity,
} from './refusals.js'
import { forEngine, SCRIPT_ARGUMENTS } from './script-flags.js'
import { answerSessionCommand, type SessionAnswer } from './session-commands.js'
import { NOT_IN_TRANSACTION, Transactions } from './transactions.js'

const LOGIN_COMMANDS = new Set(['AUTH', 'HELLO', 'QUIT', 'RESET'])
/** Commands that affect other clients. They wait until every command before them was answered. */
const AFFECTS_OTHERS = new Set(['CLIENT|KILL', 'CLIENT|UNBLOCK'])
/** Commands that examine every client of the database. */
const EXAMINES_ALL = new Set(['CLIENT|LIST', ...AFFECTS_OTHERS])
/** Effort of a command that the router handles, and of one that examines every client, in commands that are passed on. */
const EFFORT_OF_ROUTING = 4
const EFFORT_OF_ALL = 64
const ARGUMENTS_PER_EFFORT = 64
const NOT_LOGGED_IN = encodeError('NOAUTH Authentication required.')
const UNCOUNTED = encodeError('ERR Command not allowed in a transaction that subscribes, or while MONITOR runs')
const TOO_MANY_QUEUED = encodeError(
  `ERR too many commands such as CLIENT and CONFIG in one transaction. Limit: ${MAX_PLACES}`,
)
const SYNTAX_ERROR = encodeError('ERR syntax error')
const OK = encodeSimple('OK')
const PING = encodeCommand(['PING'])
/** Added to a timeout: the engine begins to count it only when the command arrives. */
const ENGINE_DELAY_MS = 2
/** Limits for the part of a command that an error repeats. */
const MAX_SHOWN_WORDS = 48
const MAX_SHOWN_BYTES = 512
/** Words of an HTTP request. A web page can make a browser send one to this port, so the connection is closed. */
const HTTP_WORDS = new Set(['POST', 'HOST:'])

/** Routes every command that is not simply passed on: decides what it does to the connection, and who answers it. */
export class CommandRouter {
  readonly #context: CommandContext
  readonly #permits: Permits
  readonly #hold: PauseHold
  readonly #login: Login
  readonly #transactions: Transactions
  readonly #pinning: Pinning

  constructor(context: CommandContext, permits: Permits, hold: PauseHold) {
    this.#context = context
    this.#permits = permits
    this.#hold = hold
    this.#login = new Login(context)
    this.#transactions = new Transactions(context, hold)
    this.#pinning = new Pinning(context, this.#transactions)
  }

  /** The connection's state in CLIENT LIST: see `SessionFacts`. */
  get clientState(): { readonly flags: string; readonly queued: number; readonly redirect: number } {
    const { queue } = this.#transactions
    const { blocked, kind } = this.#context
    const letters = [
      this.#pinning.monitors ? 'O' : '',
      kind === 'pubsub' ? 'P' : '',
      queue ? 'x' : '',
      blocked > 0 ? 'b' : '',
      this.#pinning.tracks ? 't' : '',
      this.#pinning.noTouch ? 'T' : '',
    ]
    return { flags: letters.join('') || 'N', queued: queue?.length ?? -1, redirect: this.#pinning.redirectId }
  }

  /** Memory that queued commands take, bytes. */
  get heldBytes(): number {
    return this.#transactions.queue?.heldBytes ?? 0
  }

  /** See `SiblingControl`. Only while no reply is pending. */
  becomeRedirectTarget(): Promise<number | undefined> {
    return this.#pinning.becomeRedirectTarget()
  }

  /** Routes the present command, whose row in the command table is `command`. */
  route(command: KnownCommand | undefined): void {
    const context = this.#context
    const { argumentCount } = context.frame
    context.flow.addEffort(EFFORT_OF_ROUTING + argumentCount / ARGUMENTS_PER_EFFORT)
    if (command && hasTooManyArguments(command, argumentCount)) {
      context.refuse(tooManyArguments())
      return
    }
    if (command?.allowed && LOGIN_COMMANDS.has(command.name)) {
      if (!this.#refusesTooLong(command)) this.#toLogin(command.name)
      return
    }
    if (!context.user) {
      HTTP_WORDS.has(this.#name()) ? context.cut() : context.lane.reply(NOT_LOGGED_IN)
      return
    }
    if (command?.allowed && command.state === 'container') this.#routeSubcommand(command)
    else if (command?.allowed) this.#routeAllowed(command)
    else context.refuse(refusalOf(command, this.#firstWords()))
  }

  /** Refuses a command that is too long to be answered here. @returns whether it did. */
  #refusesTooLong(command: ServedCommand): boolean {
    const tooLong = isAnsweredHere(command) ? tooLongToAnswer(this.#frameBytes) : undefined
    if (tooLong) this.#context.refuse(tooLong)
    return tooLong !== undefined
  }

  #toLogin(name: string): void {
    const context = this.#context
    const problem = arityProblem(name, context.frame.argumentCount)
    if (problem !== undefined) context.lane.replyError(encodeError(`ERR ${problem}`))
    else if (name === 'QUIT' || name === 'RESET') this.#toLoginWhenQuiet(name)
    else if (context.isPlainSubscriber) context.lane.reply(notForSubscribers(name))
    else if (this.#transactions.queue) this.#queueLogin(name, this.#transactions.queue)
    else this.#toLoginWhenQuiet(name)
  }

  #queueLogin(name: string, queue: QueuedAnswers): void {
    const isQueued =
      name === 'HELLO' && !this.#refuses(name) && this.#login.queueHello(queue, this.#arguments(1), this.#frameBytes)
    if (!isQueued) this.#context.lane.replyError(NOT_IN_TRANSACTION)
  }

  #toLoginWhenQuiet(name: string): void {
    if (!this.#settledOrRetry()) return
    this.#login.answer(name, this.#arguments(1))
  }

  #routeSubcommand(container: ServedCommand): void {
    const context = this.#context
    const { frameBuffer, frameStart, argumentCount } = context.frame
    const [, word] = frameArguments(frameBuffer, frameStart, Math.min(argumentCount, 2))
    const subcommand = word?.toString('utf8', 0, MAX_SHOWN_BYTES)
    if (subcommand !== undefined) {
      const row = findSubcommand(container.name, subcommand)
      context.profile.lastCommand = row?.name
      if (row?.allowed) this.#routeAllowed(row)
      else context.refuse(subcommandRefusal(row, container.name, subcommand))
      return
    }
    const bare = bareContainer(container)
    if (bare) this.#routeAllowed(bare)
    else context.lane.replyError(wrongArity(container.name.toLowerCase()))
  }

  #routeAllowed(command: ServedCommand): void {
    if (this.#refusesTooLong(command)) return
    const isForEngine = command.state !== 'session' && command.state !== 'managed'
    if (isForEngine && !this.#permits.admit(command)) return
    if (isForEngine && this.#transactions.isOpen) this.#hold.note(command)
    switch (command.state) {
      case 'stateless':
      case 'container':
        if (command.effect === 'script') this.#forwardScript(command.name)
        else if (command.name.startsWith('SCRIPT|')) this.#context.lane.forward(...this.#frameFor(command.name), 1)
        else this.#forward()
        return
      case 'session':
        this.#answer(command)
        return
      case 'managed':
      case 'observed':
        this.#administer(command)
        return
      case 'transaction':
        this.#transactions.route(command.name)
        if (this.#pinning.monitors) this.#transactions.queue?.loseCount()
        return
      case 'blocking':
        this.#forwardBlocking(command.name)
        return
      case 'blocking-option':
        this.#asksToBlock() ? this.#forwardBlocking(command.name) : this.#forward()
        return
      case 'subscription':
        this.#pinning.routeSubscription()
        return
      case 'monitor':
        this.#pinning.routeMonitor()
        return
      case 'tracking':
        this.#pinning.routeTracking(command.name, this.#arguments(2))
        return
      default:
        unreachable(command.state)
    }
  }

  /** Answers a command about the connection; in a transaction at EXEC. */
  #answer({ name }: ServedCommand): void {
    const context = this.#context
    if (this.#refuses(name)) return
    const args = this.#arguments(name.includes('|') ? 2 : 1)
    const queue = this.#transactions.queue
    if (name === 'CLIENT|REPLY') {
      queue ? context.lane.replyError(NOT_IN_TRANSACTION) : this.#setReplies(args)
      return
    }
    if (queue) {
      queue.add(() => {
        const { reply, ends } = answerSessionCommand(context, name, args)
        if (ends) queue.endsConnection = true
        return reply
      }, this.#frameBytes)
      return
    }
    if (AFFECTS_OTHERS.has(name) && !context.flow.quietOrRetry()) return
    if (EXAMINES_ALL.has(name)) context.flow.addEffort(EFFORT_OF_ALL)
    const { reply, ends }: SessionAnswer = answerSessionCommand(context, name, args)
    if (Buffer.isBuffer(reply)) context.lane.reply(reply)
    else context.flow.waitFor(reply.then((bytes) => context.lane.reply(bytes)))
    if (ends) context.hangUp()
  }

  /** Refuses a command of the gateway that cannot be answered now. @returns whether it did. */
  #refuses(name: string): boolean {
    const context = this.#context
    const { queue } = this.#transactions
    const problem = arityProblem(name, context.frame.argumentCount)
    if (problem !== undefined) context.lane.replyError(encodeError(`ERR ${problem}`))
    else if (context.isPlainSubscriber) context.lane.reply(notForSubscribers(name))
    else if (queue?.isFull) context.lane.replyError(TOO_MANY_QUEUED)
    else if (queue?.isUncounted) context.lane.replyError(UNCOUNTED)
    else return false
    return true
  }

  /** Applies CLIENT REPLY after all pending replies, to which the former setting still applies. */
  #setReplies(args: readonly string[]): void {
    const context = this.#context
    const { outlet } = context
    const word = args[0]?.toUpperCase() ?? ''
    if (!/^(ON|OFF|SKIP)$/.test(word)) {
      context.lane.reply(SYNTAX_ERROR)
      return
    }
    if (!this.#settledOrRetry()) return
    if (context.lane.isPinned) this.#pinning.setReplies(word)
    else if (word !== 'SKIP') outlet.replies = word === 'ON' ? 'on' : 'off'
    else if (outlet.replies !== 'off') outlet.replies = 'skip'
    if (word === 'ON') context.lane.reply(OK)
  }

  /** Answers a command about the database or its engine; in a transaction at EXEC. */
  #administer({ name, state }: ServedCommand): void {
    const context = this.#context
    const { protocol, deps, user = '', remoteAddress: address = '' } = context
    if (this.#refuses(name)) return
    const queue = this.#transactions.queue
    // The reply about the engine has to reflect earlier commands of this client.
    if (state === 'observed' && !queue && !this.#settledOrRetry()) return
    const { databaseId } = deps.guard.database
    const request = { databaseId, user, address, name, args: this.#arguments(name.includes('|') ? 2 : 1) }
    const answer = (): Promise<Buffer> => administer(deps, request, protocol, deps.guard.clientCounts)
    if (queue) queue.add(answer, this.#frameBytes)
    else context.flow.waitFor(answer().then((reply) => context.lane.reply(reply)))
  }

  /** Whether no reply is pending, also on a pinned lane. If one is, the present command is taken again afterwards. */
  #settledOrRetry(): boolean {
    return this.#context.flow.quietOrRetry() && this.#pinning.settledOrRetry()
  }

  #forwardScript(name: string): void {
    const { lane, deps } = this.#context
    lane.returnToShared()
    this.#transactions.noteScript()
    lane.sendWatched(...this.#frameFor(name), 'script', deps.guard.scripts.begin())
  }

  /** The present frame, or the command that the engine gets in its place. */
  #frameFor(name: string): [bytes: Buffer, start: number, end: number] {
    const { frameBuffer, frameStart, frameEnd, argumentCount } = this.#context.frame
    const first = frameArguments(frameBuffer, frameStart, Math.min(argumentCount, SCRIPT_ARGUMENTS))
    if (!forEngine(name, first)) return [frameBuffer, frameStart, frameEnd]
    const all = frameArguments(frameBuffer, frameStart, argumentCount)
    const bytes = encodeCommand(forEngine(name, all) ?? all)
    return [bytes, 0, bytes.length]
  }

  #forwardBlocking(name: string): void {
    const context = this.#context
    const { lane } = context
    if (lane.isShared) {
      if (!context.flow.quietOrRetry()) return
      lane.enterDedicated('none')
    }
    if (name.startsWith('WAIT') && lane.state.kind === 'dedicated' && lane.state.transaction !== 'open') {
      // WAIT covers writes that happened before the last command of its connection. A new connection has had no command yet.
      lane.state.link.send(DISCARD, PING, 0, PING.length, 1)
    }
    const { meter } = context.deps.guard
    meter.holds++
    context.blocked++
    const { frameBuffer, frameStart, frameEnd } = context.frame
    const timeout = this.#wakeAtTimeout(name)
    lane.sendWatched(frameBuffer, frameStart, frameEnd, 'event', () => {
      timeout?.cancel()
      meter.holds--
      context.blocked--
      meter.lastActivityAtMs = context.deps.clock.now()
    })
  }

  /**
   * Sends the engine a PING when a timeout has passed. An idle engine checks the timeouts of its blocked clients only in its
   * background work, five times a second; a command makes it check them at once.
   */
  #wakeAtTimeout(name: string): Timer | undefined {
    const { deps, protocol, frame } = this.#context
    const ms = blockTimeoutMs(name, frameArguments(frame.frameBuffer, frame.frameStart, frame.argumentCount))
    if (ms === undefined) return undefined
    const { databaseId } = deps.guard.database
    const wake = async () => askOver(deps.lanes.shared({ databaseId, user: 'default', protocol }))(PING)
    return deps.clock.after(Math.ceil(ms) + ENGINE_DELAY_MS, () => void wake().catch(() => undefined))
  }

  #asksToBlock(): boolean {
    for (const arg of this.#arguments(1)) {
      const word = arg.length < 8 ? arg.toUpperCase() : ''
      if (word === 'BLOCK') return true
      if (word === 'STREAMS') return false
    }
    return false
  }

  #forward(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#context.frame
    this.#context.lane.forward(frameBuffer, frameStart, frameEnd, 1)
  }

  get #frameBytes(): number {
    const { frameStart, frameEnd } = this.#context.frame
    return frameEnd - frameStart
  }

  #name(): string {
    const { frameBuffer, nameStart, nameEnd } = this.#context.frame
    return frameBuffer.toString('utf8', nameStart, Math.min(nameEnd, nameStart + 128)).toUpperCase()
  }

  /** The words that an error repeats. */
  #firstWords(): readonly string[] {
    const { frameBuffer, frameStart, argumentCount } = this.#context.frame
    return frameArguments(frameBuffer, frameStart, Math.min(argumentCount, MAX_SHOWN_WORDS)).map((word) =>
      word.toString('utf8', 0, MAX_SHOWN_BYTES),
    )
  }

  #arguments(from: number): readonly string[] {
    const { frameBuffer, frameStart, argumentCount } = this.#context.frame
    return frameArguments(frameBuffer, frameStart, argumentCount)
      .slice(from)
      .map((arg) => arg.toString())
  }
}

/** Commands that clients may send before login. */
const BEFORE_LOGIN = new Set(['AUTH', 'HELLO', 'RESET', 'QUIT'])
/** Words of a command that are read for MONITOR, which identifies its lines by their beginning. */
const MAX_MONITORED_WORDS = 256

/** Shows the present command, which was sent or answered, to clients that MONITOR the database. */
export function monitorCommand(context: CommandContext, command: KnownCommand | undefined): void {
  const { frame, user, deps, profile } = context
  if (context.flow.willRetry || !command?.allowed || (user === undefined && !BEFORE_LOGIN.has(command.name))) return
  context.flow.addEffort(deps.guard.monitors.count)
  const { frameBuffer, frameStart, frameEnd, argumentCount } = frame
  const bytes = keep(frameBuffer.subarray(frameStart, frameEnd))
  const words = frameArguments(bytes, 0, Math.min(argumentCount, MAX_MONITORED_WORDS))
  const row = command.state === 'container' ? findSubcommand(command.name, words[1]?.toString() ?? '') : command
  const sent = row === undefined && argumentCount === 1 ? command : row
  if (sent?.allowed) deps.guard.monitors.note({ row: sent, words, address: profile.address, isWhole: true })
}
