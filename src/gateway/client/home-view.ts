import type { KnownCommand } from '../commands/command-table.js'
import type { DataUser } from '../deps.js'
import { frameArguments } from '../resp/arguments.js'
import type { CommandParser } from '../resp/command-parser.js'
import { HomeReplies, type HomeRepliesOwner, type Special } from './home-replies.js'

/** Arguments of AUTH, HELLO and CLIENT that matter here. */
const MAX_ARGUMENTS = 8

/** The first words of a command. */
export function firstWords({ frameBuffer, frameStart, argumentCount }: CommandParser): readonly string[] {
  return frameArguments(frameBuffer, frameStart, Math.min(argumentCount, MAX_ARGUMENTS)).map(String)
}

/**
 * The state of a client's connection at its home, as the commands that are passed on and the replies to them show it.
 *
 * ```
 *   free ──MULTI, WATCH──▶ held ──EXEC, DISCARD, UNWATCH, RESET is answered──▶ free
 *   any ──SUBSCRIBE, MONITOR, CLIENT TRACKING or REPLY; AUTH, HELLO while held; an unexpected reply──▶ lost
 * ```
 *
 * - free: a plain read means the same here as at the home.
 * - held: a read belongs to a transaction.
 * - lost: the home also sends bytes that are no replies, so nothing more is known.
 */
export class HomeView implements HomeRepliesOwner {
  readonly #replies = new HomeReplies(this)
  #state: 'free' | 'held' | 'lost' = 'free'
  /** The user of the client; undefined before login, or if it is unknown. */
  #user: DataUser | undefined
  /** Every user as which the client may have logged in. */
  readonly #users = new Set<DataUser>()
  /** Whether the client may have logged in as a user that is not in `#users`. */
  #hasUnknownUser = false
  #protocol: 2 | 3 = 2

  /** Whether every command was answered. */
  get isIdle(): boolean {
    return this.#replies.isEmpty
  }

  get isFree(): boolean {
    return this.#state === 'free'
  }

  get isLost(): boolean {
    return this.#state === 'lost'
  }

  get user(): DataUser | undefined {
    return this.#user
  }

  get protocol(): 2 | 3 {
    return this.#protocol
  }

  /** Every known user who may have seen the home's answers. */
  get users(): ReadonlySet<DataUser> {
    return this.#users
  }

  /** Whether an unknown user may have seen them, too. */
  get hasUnknownUser(): boolean {
    return this.#hasUnknownUser
  }

  /** Records that the present command of `parser` is passed on. */
  sentCommand(command: KnownCommand | undefined, parser: CommandParser): void {
    const special = command && this.#specialOf(command, parser)
    if (this.#state !== 'lost') this.#replies.expect(1, special)
    // The reply, which would show whether the login succeeded, cannot be found any more.
    else if (special?.kind === 'login') this.#hasUnknownUser = true
  }

  /** Records that commands are passed on that do not change this state. */
  sent(count: number): void {
    if (this.#state !== 'lost') this.#replies.expect(count)
  }

  /** Takes bytes that the home has sent. */
  received(chunk: Buffer): void {
    if (this.#state !== 'lost') this.#replies.push(chunk)
  }

  answered(special: Special, first: string): void {
    const isError = first.startsWith('-')
    switch (special.kind) {
      case 'login':
        if (special.user !== undefined) this.#users.add(special.user)
        else this.#hasUnknownUser ||= !isError
        // After an error, the home may or may not have logged the client in.
        this.#user = isError ? undefined : special.user
        this.#protocol = special.protocol ?? this.#protocol
        return
      case 'reset':
        this.#user = undefined
        this.#protocol = 2
        this.#release()
        return
      case 'release':
        if (!first.startsWith('+QUEUED') && (!isError || /^-(?:EXECABORT|ERR (?:EXEC|DISCARD) without)/.test(first)))
          this.#release()
    }
  }

  unexpected(): void {
    this.#state = 'lost'
  }

  #release(): void {
    if (this.#state === 'held') this.#state = 'free'
  }

  /** The effect that depends on the home's reply. Changes the state at once where the reply does not matter. */
  #specialOf(command: KnownCommand, parser: CommandParser): Special | undefined {
    if (!command.allowed) return undefined
    const { name, state } = command
    if (name === 'RESET') return { kind: 'reset' }
    if (name === 'AUTH' || name === 'HELLO') return this.#loginOf(name, firstWords(parser))
    if (name === 'EXEC' || name === 'DISCARD' || name === 'UNWATCH') return { kind: 'release' }
    const hasStream = state === 'subscription' || state === 'monitor' || state === 'tracking'
    if (hasStream || name === 'CLIENT|REPLY') this.#state = 'lost'
    else if (state === 'transaction' && this.#state === 'free') this.#state = 'held'
    return undefined
  }

  #loginOf(name: 'AUTH' | 'HELLO', words: readonly string[]): Special | undefined {
    // In a transaction the home queues the command, and the reply does not show its effect.
    if (this.#state === 'held') this.#state = 'lost'
    const [, first, second] = words
    const protocol = name === 'HELLO' ? protocolOf(first) : undefined
    if (name === 'AUTH') return { kind: 'login', user: second === undefined ? 'default' : first, protocol }
    const places = words.flatMap((word, at) => (word.toUpperCase() === 'AUTH' ? [at] : []))
    // At another place the word AUTH may be a client name, so the user is not known.
    const known = places[0] === 2 ? words[3] : undefined
    return { kind: 'login', user: places.length === 0 ? this.#user : known, protocol }
  }
}

const protocolOf = (text: string | undefined): 2 | 3 | undefined => (text === '3' ? 3 : text === '2' ? 2 : undefined)
