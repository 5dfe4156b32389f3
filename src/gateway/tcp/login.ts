import type { HomeportError } from '../../contract/errors.js'
import { errorText } from '../error-text.js'
import { LIMITS_BEFORE_LOGIN, limitsAfterLogin } from '../resp/command-parser.js'
import { encodeError, encodeSimple } from '../resp/encode.js'
import type { Session } from './session.js'
import { helloReply, setName, wrongArity } from './session-commands.js'

const OK = encodeSimple('OK')
const WRONG_PASSWORD = encodeError('WRONGPASS invalid username-password pair or user is disabled.')
const SYNTAX_ERROR = encodeError('ERR syntax error')
const NO_PROTOCOL = encodeError('NOPROTO unsupported protocol version')
const PINNED_PROTOCOL = encodeError('ERR The protocol version cannot change while subscribed. Send RESET first.')
const HELLO_BEFORE_LOGIN = encodeError(
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> ' +
    'option can be used to authenticate the client and select the RESP protocol version at the same time',
)

interface HelloOptions {
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
        this.#session.lane.reply(OK)
        this.#session.hangUp()
    }
  }

  #auth(args: readonly string[]): void {
    const { lane } = this.#session
    const [first, second] = args
    if (first === undefined) {
      lane.reply(wrongArity('auth'))
      return
    }
    if (args.length > 2) {
      lane.reply(SYNTAX_ERROR)
      return
    }
    const accepted = second === undefined ? this.#logIn(undefined, first) : this.#logIn(first, second)
    lane.reply(accepted ? OK : WRONG_PASSWORD)
  }

  #logIn(username: string | undefined, password: string): boolean {
    const session = this.#session
    const { guard, directory } = session.services
    const user = directory.authenticate(guard.database.databaseId, username, password)
    if (!user) return false
    if (user !== session.user) {
      session.user = user
      this.#takeLane()
    }
    session.parser.limits = limitsAfterLogin(guard.maxRequestBytes)
    return true
  }

  #takeLane(): void {
    const { lane, protocol, services, user } = this.#session
    if (user) lane.login({ databaseId: services.guard.database.databaseId, user, protocol })
  }

  #hello(args: readonly string[]): void {
    const session = this.#session
    const [version, ...rest] = args
    if (version !== undefined && !/^[23]$/.test(version)) {
      session.lane.reply(NO_PROTOCOL)
      return
    }
    const options = readHelloOptions(rest)
    if (!options) {
      session.lane.reply(SYNTAX_ERROR)
      return
    }
    if (options.credentials && !this.#logIn(options.credentials.username, options.credentials.password)) {
      session.lane.reply(WRONG_PASSWORD)
      return
    }
    if (!session.user) {
      session.lane.reply(HELLO_BEFORE_LOGIN)
      return
    }
    if (options.name !== undefined) setName(session.profile, options.name)
    if (this.#setProtocol(version === undefined ? session.protocol : version === '3' ? 3 : 2)) this.#greet()
  }

  #setProtocol(protocol: 2 | 3): boolean {
    const session = this.#session
    if (protocol === session.protocol) return true
    if (session.lane.state.kind === 'pinned') {
      session.lane.reply(PINNED_PROTOCOL)
      return false
    }
    session.protocol = protocol
    this.#takeLane()
    return true
  }

  /** The answer names the engine's version, so the engine is asked, and woken where it sleeps. */
  #greet(): void {
    const { lane, profile, protocol } = this.#session
    if (lane.state.kind === 'none') return
    const greeted = lane.state.link.greeting().then(
      (engine) => lane.reply(helloReply(protocol, profile.id, engine)),
      (error: HomeportError) => lane.reply(encodeError(errorText(error))),
    )
    this.#session.waitFor(greeted)
  }

  #reset(): void {
    const session = this.#session
    session.lane.leave()
    session.user = undefined
    session.protocol = 2
    session.profile.name = ''
    session.parser.limits = LIMITS_BEFORE_LOGIN
    session.lane.reply(encodeSimple('RESET'))
  }
}

/** Reads what follows the version: `AUTH user password` and `SETNAME name`, each at most once. */
function readHelloOptions(args: readonly string[]): HelloOptions | undefined {
  const [word, first, second] = args
  if (word === undefined) return {}
  if (word.toUpperCase() === 'AUTH' && first !== undefined && second !== undefined) {
    const rest = readHelloOptions(args.slice(3))
    return rest && { ...rest, credentials: { username: first, password: second } }
  }
  if (word.toUpperCase() === 'SETNAME' && first !== undefined) {
    const rest = readHelloOptions(args.slice(2))
    return rest && { ...rest, name: first }
  }
  return undefined
}
