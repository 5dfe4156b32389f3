import { unreachable } from '../../base/index.js'
import type { Session } from '../client/session.js'
import { DISCARD } from '../engine/reply-sink.js'
import { encodeCommand, encodeError, encodeSimple } from '../resp/encode.js'
import { frameArguments } from '../resp/frame-arguments.js'
import { administer } from './administer.js'
import { bareContainer, findSubcommand, type KnownCommand, type ServedCommand } from './command-table.js'
import { Login } from './login.js'
import { arityProblem } from './own-arity.js'
import { hasTooManyArguments, tooManyArguments } from './permits.js'
import { Pinning } from './pinning.js'
import type { QueuedAnswers } from './queued-answers.js'
import { forEngine, SCRIPT_ARGUMENTS } from './script-flags.js'
import { answerSessionCommand, notForSubscribers, type SessionAnswer, wrongArity } from './session-commands.js'
import { NOT_IN_TRANSACTION, Transactions } from './transactions.js'
import { refusalOf, subcommandRefusal } from './unknown-command.js'

const LOGIN_COMMANDS = new Set(['AUTH', 'HELLO', 'QUIT', 'RESET'])
/** What they do may only happen once everything before them has. */
const REACHES_OTHERS = new Set(['CLIENT|KILL', 'CLIENT|UNBLOCK'])
/** What is asked about every client of the database. */
const LOOKS_AT_ALL = new Set(['CLIENT|LIST', ...REACHES_OTHERS])
/** How much more work a command is that is not simply passed on, and one that looks at every client. */
const EFFORT_OF_ROUTING = 4
const EFFORT_OF_ALL = 64
const ARGUMENTS_PER_EFFORT = 64
const NOT_LOGGED_IN = encodeError('NOAUTH Authentication required.')
const UNCOUNTED = encodeError('ERR Command not allowed here, where its place in the transaction cannot be told')
const TOO_MANY_QUEUED = encodeError('ERR too many commands about connections and the database in one transaction')
const SYNTAX_ERROR = encodeError('ERR syntax error')
const OK = encodeSimple('OK')
const PING = encodeCommand(['PING'])
/** No error repeats more of a command. */
const MOST_SHOWN_WORDS = 48
const MOST_SHOWN_BYTES = 512
/** What an HTTP request begins with: a browser was lured into talking to this port. */
const HTTP_WORDS = new Set(['POST', 'HOST:'])

/** Decides about every command that is not simply passed on: what it does to the connection, and who answers it. */
export class CommandRouter {
  readonly #session: Session
  readonly #login: Login
  readonly #transactions: Transactions
  readonly #pinning: Pinning

  constructor(session: Session) {
    this.#session = session
    this.#login = new Login(session)
    this.#transactions = new Transactions(session)
    this.#pinning = new Pinning(session, this.#transactions)
  }

  /** The connection's state as CLIENT LIST tells it: see `SessionFacts`. */
  get clientState(): { readonly flags: string; readonly queued: number; readonly redirect: number } {
    const { queue } = this.#transactions
    const { blocked, kind } = this.#session
    const letters = [
      this.#pinning.monitors ? 'O' : '',
      kind === 'pubsub' ? 'P' : '',
      queue ? 'x' : '',
      blocked > 0 ? 'b' : '',
      this.#pinning.tracks ? 't' : '',
      this.#pinning.spares ? 'T' : '',
    ]
    return { flags: letters.join('') || 'N', queued: queue?.length ?? -1, redirect: this.#pinning.target }
  }

  /** See `Reach`. Nothing is owed. */
  becomeRedirectTarget(): Promise<number | undefined> {
    return this.#pinning.becomeRedirectTarget()
  }

  /** Takes the parser's present frame, whose row in the command table is `command`. */
  route(command: KnownCommand | undefined): void {
    const { user, lane, parser } = this.#session
    this.#session.flow.toil(EFFORT_OF_ROUTING + parser.argumentCount / ARGUMENTS_PER_EFFORT)
    if (command && hasTooManyArguments(command, parser.argumentCount)) {
      this.#session.refuse(tooManyArguments())
      return
    }
    if (command && LOGIN_COMMANDS.has(command.name)) {
      this.#toLogin(command.name)
      return
    }
    if (!user) {
      HTTP_WORDS.has(this.#name()) ? this.#session.cut() : lane.reply(NOT_LOGGED_IN)
      return
    }
    if (command?.allowed && command.state === 'container') this.#routeSubcommand(command)
    else if (command?.allowed) this.#routeAllowed(command)
    else this.#session.refuse(refusalOf(command, this.#firstWords()))
  }

  #toLogin(name: string): void {
    const { lane } = this.#session
    const problem = arityProblem(name, this.#session.parser.argumentCount)
    if (problem !== undefined) lane.replyAndPoison(encodeError(`ERR ${problem}`))
    else if (name === 'QUIT' || name === 'RESET') this.#toLoginWhenQuiet(name)
    else if (this.#session.isPlainSubscriber) lane.reply(notForSubscribers(name))
    else if (this.#transactions.queue) this.#queueLogin(name, this.#transactions.queue)
    else this.#toLoginWhenQuiet(name)
  }

  #queueLogin(name: string, queue: QueuedAnswers): void {
    const isQueued = name === 'HELLO' && !this.#refuses(name) && this.#login.queueHello(queue, this.#arguments(1))
    if (!isQueued) this.#session.lane.replyAndPoison(NOT_IN_TRANSACTION)
  }

  #toLoginWhenQuiet(name: string): void {
    if (!this.#isSettledOrLater()) return
    this.#login.answer(name, this.#arguments(1))
  }

  #routeSubcommand(container: ServedCommand): void {
    const { lane } = this.#session
    const [subcommand] = this.#arguments(1)
    if (subcommand !== undefined) {
      const row = findSubcommand(container.name, subcommand)
      this.#session.profile.lastCommand = row?.name
      if (row?.allowed) this.#routeAllowed(row)
      else this.#session.refuse(subcommandRefusal(row, container.name, subcommand))
      return
    }
    const bare = bareContainer(container)
    if (bare) this.#routeAllowed(bare)
    else lane.replyAndPoison(wrongArity(container.name.toLowerCase()))
  }

  #routeAllowed(command: ServedCommand): void {
    const isForEngine = command.state !== 'session' && command.state !== 'managed'
    if (isForEngine && !this.#session.permits.admit(command)) return
    if (isForEngine && this.#transactions.isOpen) this.#session.hold.note(command)
    switch (command.state) {
      case 'stateless':
      case 'container':
        if (command.effect === 'script') this.#forwardScript(command.name)
        else if (command.name.startsWith('SCRIPT|')) this.#session.lane.forward(...this.#frameFor(command.name), 1)
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

  /** Answers a command about the connection; in a transaction when its turn comes. */
  #answer({ name }: ServedCommand): void {
    const session = this.#session
    if (this.#refuses(name)) return
    const args = this.#arguments(name.includes('|') ? 2 : 1)
    const queue = this.#transactions.queue
    if (name === 'CLIENT|REPLY') {
      queue ? session.lane.replyAndPoison(NOT_IN_TRANSACTION) : this.#setReplies(args)
      return
    }
    if (queue) {
      queue.add(() => {
        const { reply, ends } = this.#answerNow(name, args)
        if (ends) queue.endsConnection = true
        return reply
      })
      return
    }
    if (REACHES_OTHERS.has(name) && !session.quietOrLater()) return
    if (LOOKS_AT_ALL.has(name)) session.flow.toil(EFFORT_OF_ALL)
    const { reply, ends } = this.#answerNow(name, args)
    if (Buffer.isBuffer(reply)) session.lane.reply(reply)
    else session.waitFor(reply.then((bytes) => session.lane.reply(bytes)))
    if (ends) session.hangUp()
  }

  #answerNow(name: string, args: readonly string[]): SessionAnswer {
    const session = this.#session
    const { siblings: all, guard } = session.services
    const { pause } = guard
    const { frameStart, frameEnd } = session.parser
    const commandBytes = frameEnd - frameStart
    const isUser = (user: string): boolean => Object.hasOwn(guard.database.userMarks ?? {}, user)
    return answerSessionCommand(
      { self: session, commandBytes, protocol: session.protocol, all, isUser, pause },
      name,
      args,
    )
  }

  /** Whether a command that no engine answers cannot be answered now; the client has been told why. */
  #refuses(name: string): boolean {
    const { lane, parser, isPlainSubscriber } = this.#session
    const { queue } = this.#transactions
    const problem = arityProblem(name, parser.argumentCount)
    if (problem !== undefined) lane.replyAndPoison(encodeError(`ERR ${problem}`))
    else if (isPlainSubscriber) lane.reply(notForSubscribers(name))
    else if (queue?.isFull) lane.replyAndPoison(TOO_MANY_QUEUED)
    else if (queue?.isUncounted) lane.replyAndPoison(UNCOUNTED)
    else return false
    return true
  }

  /** What is owed is still sent, or not sent, as it was before. */
  #setReplies(args: readonly string[]): void {
    const session = this.#session
    const word = args[0]?.toUpperCase() ?? ''
    if (!/^(ON|OFF|SKIP)$/.test(word)) {
      session.lane.reply(SYNTAX_ERROR)
      return
    }
    if (!this.#isSettledOrLater()) return
    if (session.lane.isPinned) this.#pinning.setReplies(word)
    else if (word === 'SKIP') session.skipReply()
    else session.setReplies(word === 'ON')
    if (word === 'ON') session.lane.reply(OK)
  }

  /** Answers a command about the database itself or its engine; in a transaction when its turn comes. */
  #administer({ name, state }: ServedCommand): void {
    const { lane, protocol, services, user = '', remoteAddress: address = '' } = this.#session
    if (this.#refuses(name)) return
    const queue = this.#transactions.queue
    // What an engine tells of itself includes what this client sent before.
    if (state === 'observed' && !queue && !this.#isSettledOrLater()) return
    const { databaseId } = services.guard.database
    const request = { databaseId, user, address, name, args: this.#arguments(name.includes('|') ? 2 : 1) }
    const answer = (): Promise<Buffer> => administer(services, request, protocol, services.guard.clientCounts)
    if (queue) queue.add(answer)
    else this.#session.waitFor(answer().then((reply) => lane.reply(reply)))
  }

  /** Whether every reply has arrived, on a pinned lane too. If not, the present command is taken again once that is so. */
  #isSettledOrLater(): boolean {
    return this.#session.quietOrLater() && this.#pinning.settledOrLater()
  }

  #forwardScript(name: string): void {
    const { lane, services } = this.#session
    lane.returnToShared()
    this.#transactions.noteScript()
    lane.forwardWatched(...this.#frameFor(name), 'script', services.guard.scripts.begin())
  }

  /** The present frame, or what the engine is sent in its place. */
  #frameFor(name: string): [bytes: Buffer, start: number, end: number] {
    const { frameBuffer, frameStart, frameEnd, argumentCount } = this.#session.parser
    const first = frameArguments(frameBuffer, frameStart, Math.min(argumentCount, SCRIPT_ARGUMENTS))
    if (!forEngine(name, first)) return [frameBuffer, frameStart, frameEnd]
    const all = frameArguments(frameBuffer, frameStart, argumentCount)
    const bytes = encodeCommand(forEngine(name, all) ?? all)
    return [bytes, 0, bytes.length]
  }

  #forwardBlocking(name: string): void {
    const { lane } = this.#session
    if (lane.state.kind === 'shared') {
      if (!this.#session.quietOrLater()) return
      lane.enterOwn('none')
    }
    if (name.startsWith('WAIT') && lane.state.kind === 'own' && lane.state.transaction !== 'open') {
      // The engine waits for what was written before the last command of the connection, and this one may be fresh.
      lane.state.link.send(DISCARD, PING, 0, PING.length, 1)
    }
    const { meter } = this.#session.services.guard
    meter.holds++
    this.#session.blocked++
    this.#forwardWatched(() => {
      meter.holds--
      this.#session.blocked--
      meter.lastActivityAtMs = this.#session.services.clock.now()
    })
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
    const { frameBuffer, frameStart, frameEnd } = this.#session.parser
    this.#session.lane.forward(frameBuffer, frameStart, frameEnd, 1)
  }

  #forwardWatched(settled: () => void): void {
    const { frameBuffer, frameStart, frameEnd } = this.#session.parser
    this.#session.lane.forwardWatched(frameBuffer, frameStart, frameEnd, 'event', settled)
  }

  #name(): string {
    const { frameBuffer, nameStart, nameEnd } = this.#session.parser
    return frameBuffer.toString('utf8', nameStart, Math.min(nameEnd, nameStart + 128)).toUpperCase()
  }

  /** As many words as an error repeats. */
  #firstWords(): readonly string[] {
    const { frameBuffer, frameStart, argumentCount } = this.#session.parser
    return frameArguments(frameBuffer, frameStart, Math.min(argumentCount, MOST_SHOWN_WORDS)).map((word) =>
      word.toString('utf8', 0, MOST_SHOWN_BYTES),
    )
  }

  #arguments(from: number): readonly string[] {
    const { frameBuffer, frameStart, argumentCount } = this.#session.parser
    return frameArguments(frameBuffer, frameStart, argumentCount)
      .slice(from)
      .map((arg) => arg.toString())
  }
}
