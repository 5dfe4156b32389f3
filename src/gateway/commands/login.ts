import { HomeportError } from '../../contract/errors/errors.js'
import { clientNameProblem } from '../client/profile.js'
import type { DataUser } from '../deps.js'
import { readGreeting } from '../engine/greeting.js'
import { errorText } from '../error-text.js'
import { encodeCommand, encodeError, encodeSimple } from '../resp/encode.js'
import type { CommandContext } from './command-context.js'
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
  /** Omitted: unchanged. */
  readonly protocol?: 2 | 3
  readonly credentials?: { readonly username: string; readonly password: string }
  readonly name?: string
}

/** Answers AUTH, HELLO, RESET and QUIT, which change or end the login of a connection. Only while no reply is pending. */
export class Login {
  readonly #context: CommandContext

  constructor(context: CommandContext) {
    this.#context = context
  }

  /** `name` is one of the four; `args` are the arguments after it. */
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
        this.#context.lane.leave()
        this.#context.lane.reply(OK)
        this.#context.hangUp()
    }
  }

  #auth(args: readonly string[]): void {
    const context = this.#context
    const [first = '', second] = args
    if (args.length > 2) {
      context.lane.reply(SYNTAX_ERROR)
      return
    }
    this.#attempt(() => {
      const user = second === undefined ? this.#authenticate(undefined, first) : this.#authenticate(first, second)
      if (user === undefined) {
        context.lane.reply(WRONG_PASSWORD)
        return undefined
      }
      return this.#become(user, context.protocol, () => context.lane.reply(OK))
    })
  }

  /** Attempts a login, after a delay if earlier ones from the same address failed. */
  #attempt(login: () => Promise<void> | undefined | void): void {
    const given = this.#context.deps.logins.turn(this.#origin)
    if (given.kind === 'refused') {
      this.#context.refuse(new HomeportError('logins_slowed', given))
      return
    }
    const done = given.kind === 'later' ? given.turn.then(login) : login()
    if (done) this.#context.flow.waitFor(done)
  }

  get #origin(): string {
    const { deps, remoteAddress } = this.#context
    return `${deps.guard.database.databaseId} ${remoteAddress}`
  }

  #authenticate(username: string | undefined, password: string): DataUser | undefined {
    const { guard, directory, logins } = this.#context.deps
    const user = directory.authenticate(guard.database.databaseId, username, password)
    if (user === undefined) logins.failed(this.#origin)
    else logins.succeeded(this.#origin)
    return user
  }

  /** Continues as `user`, in `protocol`, and then calls `then`. @returns a promise that the next command has to wait for. */
  #become(user: DataUser, protocol: 2 | 3, then: () => Promise<void> | undefined | void): Promise<void> | undefined {
    const context = this.#context
    const { databaseId } = context.deps.guard.database
    const isSame = user === context.user && protocol === context.protocol
    context.identify(user, protocol)
    const done = isSame ? undefined : context.lane.become({ databaseId, user, protocol })
    return done ? done.then(then) : (then() ?? undefined)
  }

  /** Queues HELLO, of `bytes` bytes, in an open transaction. @returns false for HELLO with AUTH, which cannot be queued. */
  queueHello(queue: QueuedAnswers, args: readonly string[], bytes: number): boolean {
    const hello = readHello(args)
    const problem = Buffer.isBuffer(hello) ? hello : nameProblem(hello.name)
    if (Buffer.isBuffer(hello) || problem) queue.add(() => problem ?? SYNTAX_ERROR, bytes)
    else if (hello.credentials) return false
    else {
      const command = encodeCommand(hello.protocol ? ['HELLO', String(hello.protocol)] : ['HELLO'])
      queue.changeNext((reply) => this.#applyQueued(hello, reply))
      this.#context.lane.send(command, 0, command.length, 1)
    }
    return true
  }

  /** Applies a HELLO that the engine has run in a transaction. @returns the reply for the client */
  #applyQueued({ name, protocol }: Hello, reply: Buffer): Buffer {
    const context = this.#context
    const { lane, profile, user } = context
    const greeting = readGreeting(reply)
    if (!greeting || !user) return reply
    if (name !== undefined) profile.name = name
    if (protocol && protocol !== context.protocol) {
      context.identify(user, protocol)
      lane.changeKey({ databaseId: context.deps.guard.database.databaseId, user, protocol })
    }
    return helloReply(context.protocol, profile.id, greeting)
  }

  #hello(args: readonly string[]): void {
    const hello = readHello(args)
    if (Buffer.isBuffer(hello)) this.#context.lane.reply(hello)
    else if (hello.credentials) this.#attempt(() => this.#apply(hello))
    else {
      const greeted = this.#apply(hello)
      if (greeted) this.#context.flow.waitFor(greeted)
    }
  }

  /** @returns a promise that the next command has to wait for. */
  #apply({ credentials, name, protocol = this.#context.protocol }: Hello): Promise<void> | undefined {
    const context = this.#context
    const user = credentials ? this.#authenticate(credentials.username, credentials.password) : context.user
    if (user === undefined) {
      context.lane.reply(credentials ? WRONG_PASSWORD : HELLO_BEFORE_LOGIN)
      return undefined
    }
    const problem = nameProblem(name)
    if (problem) return this.#become(user, context.protocol, () => context.lane.reply(problem))
    if (name !== undefined) context.profile.name = name
    return this.#become(user, protocol, () => this.#greet())
  }

  /** Replies to HELLO. The reply contains the engine's version, so the engine is asked, which wakes a sleeping database. */
  #greet(): Promise<void> | undefined {
    const context = this.#context
    const { lane, profile, protocol } = context
    if (lane.state.kind === 'none') return undefined
    return lane.state.link.greeting().then(
      (engine) => context.lane.reply(helloReply(protocol, profile.id, engine)),
      (error: HomeportError) => context.lane.reply(encodeError(errorText(error))),
    )
  }

  #reset(): void {
    const { lane, outlet, profile } = this.#context
    const isSkipped = outlet.replies === 'skipping' || (lane.state.kind === 'pinned' && lane.state.stream.skipsReply)
    lane.leave()
    this.#context.identify(undefined, 2)
    profile.name = ''
    outlet.replies = 'on'
    if (!isSkipped) lane.reply(encodeSimple('RESET'))
  }
}

/** Parses the arguments of HELLO: a version, then `AUTH user password` and `SETNAME name`. @returns an error if they are wrong. */
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
  const problem = name === undefined ? undefined : clientNameProblem(name)
  return problem === undefined ? undefined : encodeError(problem)
}
