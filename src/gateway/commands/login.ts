import { HomeportError } from '../../contract/errors/errors.js'
import { isPlainName, NO_PLAIN_NAME } from '../client/profile.js'
import type { Session } from '../client/session.js'
import type { DataUser } from '../deps.js'
import { readGreeting } from '../engine/greeting.js'
import { errorText } from '../error-text.js'
import { LIMITS_BEFORE_LOGIN, limitsAfterLogin } from '../resp/command-limits.js'
import { encodeCommand, encodeError, encodeSimple } from '../resp/encode.js'
import type { QueuedAnswers } from './queued-answers.js'
import { helloReply } from './session-commands.js'

const OK = encodeSimple('OK')
const WRONG_PASSWORD = encodeError('WRONGPASS invalid username-password pair or user is disabled.')
const SYNTAX_ERROR = encodeError('ERR syntax error')
const NO_NUMBER = encodeError('ERR Protocol version is not an integer or out of range')
const NO_PROTOCOL = encodeError('NOPROTO unsupported protocol version')
const HELLO_BEFORE_LOGIN = encodeError(
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> ' +
    'option can be used to authenticate the client and select the RESP protocol version at the same time',
)

interface Hello {
  /** Omitted: as it is. */
  readonly protocol?: 2 | 3
  readonly credentials?: { readonly username: string; readonly password: string }
  readonly name?: string
}

/** Answers the commands that decide who a connection speaks for: AUTH, HELLO, RESET, QUIT. Nothing is owed then. */
export class Login {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  /** `name` is one of the four; `args` are the arguments behind it. */
  answer(name: string, args: readonly string[]): void {
    switch (name) {
      case 'AUTH':
        this.#auth(args)
        return
      case 'HELLO':
        this.#hello(args)
        return
      case 'RESET':
        this.#reset()
        return
      default:
        this.#session.lane.leave()
        this.#session.lane.reply(OK)
        this.#session.hangUp()
    }
  }

  #auth(args: readonly string[]): void {
    const { lane } = this.#session
    const [first = '', second] = args
    if (args.length > 2) {
      lane.reply(SYNTAX_ERROR)
      return
    }
    this.#inTurn(() => {
      const user = second === undefined ? this.#authenticate(undefined, first) : this.#authenticate(first, second)
      if (user === undefined) {
        lane.reply(WRONG_PASSWORD)
        return undefined
      }
      return this.#become(user, this.#session.protocol, () => lane.reply(OK))
    })
  }

  /** Makes an attempt to log in when those before it from the same address allow it. */
  #inTurn(attempt: () => Promise<void> | undefined | void): void {
    const given = this.#session.services.logins.turn(this.#origin)
    if (given.kind === 'refused') {
      this.#session.refuse(new HomeportError('logins_slowed', given))
      return
    }
    const done = given.kind === 'later' ? given.turn.then(attempt) : attempt()
    if (done) this.#session.waitFor(done)
  }

  get #origin(): string {
    const { services, remoteAddress } = this.#session
    return `${services.guard.database.databaseId} ${remoteAddress}`
  }

  #authenticate(username: string | undefined, password: string): DataUser | undefined {
    const { guard, directory, logins } = this.#session.services
    const user = directory.authenticate(guard.database.databaseId, username, password)
    if (user === undefined) logins.failed(this.#origin)
    else logins.succeeded(this.#origin)
    return user
  }

  /** Goes on as that user, in that version of the protocol. @returns what to wait for before the next command. */
  #become(user: DataUser, protocol: 2 | 3, then: () => Promise<void> | undefined | void): Promise<void> | undefined {
    const session = this.#session
    const { databaseId } = session.services.guard.database
    const isSame = user === session.user && protocol === session.protocol
    session.parser.limits = limitsAfterLogin(session.services.guard.maxRequestBytes)
    if (user !== session.user) session.inlet.settle()
    session.user = user
    session.protocol = protocol
    const done = isSame ? undefined : session.lane.become({ databaseId, user, protocol })
    return done ? done.then(then) : (then() ?? undefined)
  }

  /** Queues HELLO in an open transaction. @returns false where it would log in, which no transaction can. */
  queueHello(queue: QueuedAnswers, args: readonly string[]): boolean {
    const hello = readHello(args)
    const problem = Buffer.isBuffer(hello) ? hello : nameProblem(hello.name)
    if (Buffer.isBuffer(hello) || problem) queue.add(() => problem ?? SYNTAX_ERROR)
    else if (hello.credentials) return false
    else {
      const command = encodeCommand(hello.protocol ? ['HELLO', String(hello.protocol)] : ['HELLO'])
      queue.changeNext((reply) => this.#agreed(hello, reply))
      this.#session.lane.forwardHere(command, 0, command.length, 1)
    }
    return true
  }

  /** The engine has carried out HELLO in a transaction, with this reply. */
  #agreed({ name, protocol }: Hello, reply: Buffer): Buffer {
    const session = this.#session
    const { lane, profile, user } = session
    const greeting = readGreeting(reply)
    if (!greeting || !user) return reply
    if (name !== undefined) profile.name = name
    if (protocol && protocol !== session.protocol) {
      session.protocol = protocol
      lane.rename({ databaseId: session.services.guard.database.databaseId, user, protocol })
    }
    return helloReply(session.protocol, profile.id, greeting)
  }

  #hello(args: readonly string[]): void {
    const session = this.#session
    const hello = readHello(args)
    if (Buffer.isBuffer(hello)) session.lane.reply(hello)
    else if (hello.credentials) this.#inTurn(() => this.#agree(hello))
    else {
      const greeted = this.#agree(hello)
      if (greeted) session.waitFor(greeted)
    }
  }

  /** @returns what to wait for before the next command. */
  #agree({ credentials, name, protocol = this.#session.protocol }: Hello): Promise<void> | undefined {
    const session = this.#session
    const { lane } = session
    const user = credentials ? this.#authenticate(credentials.username, credentials.password) : session.user
    if (user === undefined) {
      lane.reply(credentials ? WRONG_PASSWORD : HELLO_BEFORE_LOGIN)
      return undefined
    }
    const problem = nameProblem(name)
    if (problem) return this.#become(user, session.protocol, () => lane.reply(problem))
    if (name !== undefined) session.profile.name = name
    return this.#become(user, protocol, () => this.#greet())
  }

  /** The answer names the engine's version, so the engine is asked, and woken where it sleeps. */
  #greet(): Promise<void> | undefined {
    const { lane, profile, protocol } = this.#session
    if (lane.state.kind === 'none') return undefined
    return lane.state.link.greeting().then(
      (engine) => lane.reply(helloReply(protocol, profile.id, engine)),
      (error: HomeportError) => lane.reply(encodeError(errorText(error))),
    )
  }

  #reset(): void {
    const session = this.#session
    session.lane.leave()
    session.user = undefined
    session.protocol = 2
    session.profile.name = ''
    session.setReplies(true)
    session.parser.limits = LIMITS_BEFORE_LOGIN
    session.lane.reply(encodeSimple('RESET'))
  }
}

/** Reads what follows HELLO: a version, then `AUTH user password` and `SETNAME name`. @returns the error when it is wrong. */
function readHello([version, ...args]: readonly string[]): Hello | Buffer {
  if (version === undefined) return {}
  if (version !== '2' && version !== '3') return /^-?\d+$/.test(version) ? NO_PROTOCOL : NO_NUMBER
  let hello: Hello = { protocol: version === '3' ? 3 : 2 }
  for (let at = 0; at < args.length; ) {
    const [word = '', first, second] = [args[at], args[at + 1], args[at + 2]]
    if (word.toUpperCase() === 'AUTH' && first !== undefined && second !== undefined) {
      hello = { ...hello, credentials: { username: first, password: second } }
      at += 3
    } else if (word.toUpperCase() === 'SETNAME' && first !== undefined) {
      hello = { ...hello, name: first }
      at += 2
    } else return encodeError(`ERR Syntax error in HELLO option '${word.slice(0, 128)}'`)
  }
  return hello
}

function nameProblem(name: string | undefined): Buffer | undefined {
  return name === undefined || isPlainName(name) ? undefined : encodeError(NO_PLAIN_NAME)
}
