import { type ClientProfile, setInfo, setName } from '../client/profile.js'
import type { DataUser } from '../deps.js'
import { type CommandPause, LONGEST_PAUSE_MS } from '../limits/command-pause.js'
import {
  encodeArray,
  encodeBulk,
  encodeError,
  encodeInteger,
  encodeMap,
  encodeNull,
  encodeSimple,
  encodeVerbatim,
} from '../resp/encode.js'
import { wholeNumber } from '../resp/whole-number.js'
import { type ClientFilter, killFilter, listFilter } from './client-filter.js'
import { wrongArityText } from './own-arity.js'
import type { Reach } from './reach.js'
import { selectReply } from './select-database.js'

/** A client as other clients of the database see it. */
export interface ListedClient {
  readonly profile: ClientProfile
  readonly user: DataUser | undefined
  readonly kind: 'normal' | 'pubsub'
  /** Its line of CLIENT LIST; of a command that is being answered so many bytes are held. */
  describe(commandBytes?: number): string
  /** Ends its connection at once. */
  cut(): void
  /** Ends its connection once what is written has gone out. */
  hangUp(): void
  readonly reach: Pick<Reach, 'becomeRedirectTarget' | 'mayBecomeRedirectTarget' | 'unblock'>
}

/** What the commands below need of a session. */
export interface CommandContext {
  readonly self: ListedClient
  /** Length of the command, which counts as held for the client that sends it. */
  readonly commandBytes: number
  readonly protocol: 2 | 3
  /** Every client of the database, the one that asks included. */
  readonly all: () => Iterable<ListedClient>
  /** Whether the database has a user of this name. */
  readonly isUser: (name: string) => boolean
  readonly pause: CommandPause
}

/** What a session command is answered with; `ends`: the client that asks is among those that it disconnects. */
export interface SessionAnswer {
  readonly reply: Buffer | Promise<Buffer>
  readonly ends?: boolean
}

type Handler = (context: CommandContext, args: readonly string[]) => SessionAnswer['reply'] | SessionAnswer

/** The users that every database has. */
const BUILT_IN_USERS: ReadonlySet<string> = new Set(['default', 'default_ro'])
const OK = encodeSimple('OK')
/** What an engine outside of a cluster says to READONLY. */
const NO_CLUSTER = encodeError('ERR This instance has cluster support disabled')
const SYNTAX_ERROR = encodeError('ERR syntax error')

/**
 * Answers a command about clients and their connections. `name` is a row of the command table, `args` are the arguments
 * behind it, of which there are as many as there have to be.
 */
export function answerSessionCommand(context: CommandContext, name: string, args: readonly string[]): SessionAnswer {
  const handler = HANDLERS[name]
  if (!handler) throw new Error(`no handler for the session command ${name}`)
  const answer = handler(context, args)
  return 'reply' in answer ? answer : { reply: answer }
}

const HANDLERS: Readonly<Record<string, Handler>> = {
  SELECT: (_, args) => selectReply(args),
  // Tools ask for it before they only read, and go on when they are told so in the engine's words.
  READONLY: () => NO_CLUSTER,
  READWRITE: () => NO_CLUSTER,
  'CLIENT|ID': ({ self }) => encodeInteger(self.profile.id),
  'CLIENT|GETNAME': ({ self: { profile }, protocol }) =>
    profile.name === '' ? encodeNull(protocol) : encodeBulk(profile.name),
  'CLIENT|SETNAME': ({ self }, [name = '']) => okUnless(setName(self.profile, name)),
  'CLIENT|SETINFO': ({ self }, [attribute = '', value = '']) => okUnless(setInfo(self.profile, attribute, value)),
  'CLIENT|INFO': ({ self, commandBytes, protocol }) => encodeVerbatim(protocol, `${self.describe(commandBytes)}\n`),
  'CLIENT|LIST': list,
  'CLIENT|KILL': kill,
  'CLIENT|UNBLOCK': unblock,
  'CLIENT|PAUSE': pause,
  'CLIENT|UNPAUSE': unpause,
  // Clients tell what they understand of redirections to other servers, of which there are none here.
  'CLIENT|CAPA': () => OK,
  // Engines end the clients that hold the most memory only where they are told to, and here they are not.
  'CLIENT|NO-EVICT': (_, [word = '']) => (/^(on|off)$/i.test(word) ? OK : SYNTAX_ERROR),
}

const okUnless = (problem: string | undefined): Buffer => (problem === undefined ? OK : encodeError(problem))

function list(context: CommandContext, args: readonly string[]): Buffer {
  const outcome = listFilter(args)
  if ('problem' in outcome) return encodeError(outcome.problem)
  const { self, commandBytes } = context
  const lines = visible(context, outcome.filter).map((one) => `${one.describe(one === self ? commandBytes : 0)}\n`)
  return encodeVerbatim(context.protocol, lines.join(''))
}

function kill(context: CommandContext, args: readonly string[]): Buffer | SessionAnswer {
  if (args.length > 1) return killByFilter(context, args)
  const [address] = args
  const found = visible(context, ({ profile }) => profile.address === address)
  if (found.length === 0) return encodeError('ERR No such client')
  return { reply: OK, ends: end(context, found) }
}

function killByFilter(context: CommandContext, args: readonly string[]): Buffer | SessionAnswer {
  const outcome = killFilter(args, (name) => isKnownUser(context, name))
  if ('problem' in outcome) return encodeError(outcome.problem)
  const found = visible(context, (client) => outcome.filter(client) && !(outcome.sparesSelf && client === context.self))
  return { reply: encodeInteger(found.length), ends: end(context, found) }
}

/** A client that is none of those that one may see is one that does not wait. */
function unblock(context: CommandContext, [text = '', word = 'TIMEOUT']: readonly string[]): Buffer | Promise<Buffer> {
  const manner = word.toUpperCase()
  if (manner !== 'TIMEOUT' && manner !== 'ERROR')
    return encodeError('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR')
  const id = wholeNumber(text)
  if (id === undefined) return encodeError('ERR value is not an integer or out of range')
  const [client] = visible(context, ({ profile }) => profile.id === id)
  return client ? client.reach.unblock(manner).then((done) => encodeInteger(Number(done))) : encodeInteger(0)
}

/** A pause holds everybody's commands, so it is for the owner alone. */
function pause(context: CommandContext, [text = '', word = 'ALL']: readonly string[]): Buffer {
  if (context.self.user !== 'default') return notPermitted('client|pause')
  const mode = word.toUpperCase()
  if (mode !== 'WRITE' && mode !== 'ALL') return encodeError('ERR CLIENT PAUSE mode must be WRITE or ALL')
  const ms = wholeNumber(text)
  if (ms === undefined) return encodeError('ERR timeout is not an integer or out of range')
  if (ms < 0) return encodeError('ERR timeout is negative')
  if (ms > LONGEST_PAUSE_MS)
    return encodeError(`ERR timeout is out of range: at most ${LONGEST_PAUSE_MS} ms are possible`)
  context.pause.begin(mode === 'ALL' ? 'all' : 'write', ms)
  return OK
}

function unpause(context: CommandContext): Buffer {
  if (context.self.user !== 'default') return notPermitted('client|unpause')
  context.pause.end()
  return OK
}

const notPermitted = (command: string): Buffer =>
  encodeError(`NOPERM this user has no permissions to run the '${command}' command`)

/** Who is not the owner does not learn here which other users there are. */
function isKnownUser({ self, isUser }: CommandContext, name: string): boolean {
  return BUILT_IN_USERS.has(name) || name === self.user || (self.user === 'default' && isUser(name))
}

/** @returns whether the client that asks is among them; it still gets its answer. */
function end({ self }: CommandContext, clients: readonly ListedClient[]): boolean {
  for (const client of clients) if (client !== self) client.cut()
  return clients.includes(self)
}

/** `default` owns the database and sees every client of it, other users only those that are logged in like them. */
function visible({ self, all }: CommandContext, fits: ClientFilter): readonly ListedClient[] {
  return [...all()].filter((client) => maySee(self, client) && fits(client))
}

/** Whether a client may know of another one. */
export function maySee(self: Pick<ListedClient, 'user'>, other: Pick<ListedClient, 'user'>): boolean {
  return self.user === 'default' || other.user === self.user
}

/** The engine's error for a wrong number of arguments. */
export function wrongArity(command: string): Buffer {
  return encodeError(`ERR ${wrongArityText(command)}`)
}

/** The engine's error for a command that a subscriber may not send in RESP2; `name` is a row of the command table. */
export function notForSubscribers(name: string): Buffer {
  const allowed = '(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET'
  return encodeError(`ERR Can't execute '${name.toLowerCase()}': only ${allowed} are allowed in this context`)
}

/** The answer to HELLO: the engine's, except that the client's id is ours. */
export function helloReply(
  protocol: 2 | 3,
  id: number,
  engine: { readonly server: string; readonly version: string },
): Buffer {
  return encodeMap(protocol, [
    [encodeBulk('server'), encodeBulk(engine.server)],
    [encodeBulk('version'), encodeBulk(engine.version)],
    [encodeBulk('proto'), encodeInteger(protocol)],
    [encodeBulk('id'), encodeInteger(id)],
    [encodeBulk('mode'), encodeBulk('standalone')],
    [encodeBulk('role'), encodeBulk('master')],
    [encodeBulk('modules'), encodeArray([])],
  ])
}
