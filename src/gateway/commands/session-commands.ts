import { setInfo, setName } from '../client/profile.js'
import { MAX_PAUSE_MS } from '../limits/command-pause.js'
import { wholeNumber } from '../resp/arguments.js'
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
import { type CommandContext, type ListedClient, maySee } from './command-context.js'
import { arityProblem } from './refusals.js'

/** The answer to a command about connections. `ends`: it also closes the connection of the client that sent it. */
export interface SessionAnswer {
  readonly reply: Buffer | Promise<Buffer>
  readonly ends?: boolean
}

type Handler = (context: CommandContext, args: readonly string[]) => SessionAnswer['reply'] | SessionAnswer

/** The users that every database has. */
const BUILT_IN_USERS: ReadonlySet<string> = new Set(['default', 'default_ro'])
const OK = encodeSimple('OK')
/** The reply to READONLY of an engine that is not in a cluster. */
const NO_CLUSTER = encodeError('ERR This instance has cluster support disabled')
const SYNTAX_ERROR = encodeError('ERR syntax error')

/**
 * Answers a command about clients and their connections. `name` is a row of the command table, `args` are the arguments
 * after it, in a valid number.
 */
export function answerSessionCommand(context: CommandContext, name: string, args: readonly string[]): SessionAnswer {
  const handler = HANDLERS[name]
  if (!handler) throw new Error(`no handler for the session command ${name}`)
  const answer = handler(context, args)
  return 'reply' in answer ? answer : { reply: answer }
}

const HANDLERS: Readonly<Record<string, Handler>> = {
  SELECT: (_, args) => selectReply(args),
  // Some tools send READONLY before they read, and continue on exactly this error.
  READONLY: () => NO_CLUSTER,
  READWRITE: () => NO_CLUSTER,
  'CLIENT|ID': ({ profile }) => encodeInteger(profile.id),
  'CLIENT|GETNAME': ({ profile, protocol }) => (profile.name === '' ? encodeNull(protocol) : encodeBulk(profile.name)),
  'CLIENT|SETNAME': ({ profile }, [name = '']) => okUnless(setName(profile, name)),
  'CLIENT|SETINFO': ({ profile }, [attribute = '', value = '']) => okUnless(setInfo(profile, attribute, value)),
  'CLIENT|INFO': (context) => encodeVerbatim(context.protocol, `${context.describe(commandBytes(context))}\n`),
  'CLIENT|LIST': list,
  'CLIENT|KILL': kill,
  'CLIENT|UNBLOCK': unblock,
  'CLIENT|PAUSE': pause,
  'CLIENT|UNPAUSE': unpause,
  // With CAPA, clients declare which redirections to other servers they understand. The gateway sends no redirections.
  'CLIENT|CAPA': () => OK,
  // The gateway evicts no client for the memory that it holds in the engine.
  'CLIENT|NO-EVICT': (_, [word = '']) => (/^(on|off)$/i.test(word) ? OK : SYNTAX_ERROR),
}

const okUnless = (problem: string | undefined): Buffer => (problem === undefined ? OK : encodeError(problem))

/** Length of the present command, which counts as input of the client that sends it. */
const commandBytes = ({ frame }: CommandContext): number => frame.frameEnd - frame.frameStart

function list(context: CommandContext, args: readonly string[]): Buffer {
  const outcome = listFilter(args)
  if ('problem' in outcome) return encodeError(outcome.problem)
  const bytes = commandBytes(context)
  const lines = visible(context, outcome.filter).map((one) => `${one.describe(one === context ? bytes : 0)}\n`)
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
  const found = visible(context, (client) => outcome.filter(client) && !(outcome.skipsSelf && client === context))
  return { reply: encodeInteger(found.length), ends: end(context, found) }
}

/** Answers CLIENT UNBLOCK. A client that the caller may not see is treated like one without a blocking command. */
function unblock(context: CommandContext, [text = '', word = 'TIMEOUT']: readonly string[]): Buffer | Promise<Buffer> {
  const manner = word.toUpperCase()
  if (manner !== 'TIMEOUT' && manner !== 'ERROR')
    return encodeError('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR')
  const id = wholeNumber(text)
  if (id === undefined) return encodeError('ERR value is not an integer or out of range')
  const [client] = visible(context, ({ profile }) => profile.id === id)
  return client ? client.control.unblock(manner).then((done) => encodeInteger(Number(done))) : encodeInteger(0)
}

/** Answers CLIENT PAUSE. Only the owner may pause, because a pause holds the commands of all clients. */
function pause(context: CommandContext, [text = '', word = 'ALL']: readonly string[]): Buffer {
  if (context.user !== 'default') return notPermitted('client|pause')
  const mode = word.toUpperCase()
  if (mode !== 'WRITE' && mode !== 'ALL') return encodeError('ERR CLIENT PAUSE mode must be WRITE or ALL')
  const ms = wholeNumber(text)
  if (ms === undefined) return encodeError('ERR timeout is not an integer or out of range')
  if (ms < 0) return encodeError('ERR timeout is negative')
  if (ms > MAX_PAUSE_MS) return encodeError(`ERR timeout is out of range: at most ${MAX_PAUSE_MS} ms are possible`)
  context.deps.guard.pause.begin(mode === 'ALL' ? 'all' : 'write', ms)
  return OK
}

function unpause(context: CommandContext): Buffer {
  if (context.user !== 'default') return notPermitted('client|unpause')
  context.deps.guard.pause.end()
  return OK
}

const notPermitted = (command: string): Buffer =>
  encodeError(`NOPERM this user has no permissions to run the '${command}' command`)

/** Whether the caller may know that a user exists. Only the owner may know of all users. */
function isKnownUser({ user, deps }: CommandContext, name: string): boolean {
  if (BUILT_IN_USERS.has(name) || name === user) return true
  return user === 'default' && Object.hasOwn(deps.guard.database.userMarks ?? {}, name)
}

/** Closes connections. @returns whether the client that asks is among them; it still gets its reply. */
function end(context: CommandContext, clients: readonly ListedClient[]): boolean {
  for (const client of clients) if (client !== context) client.cut()
  return clients.includes(context)
}

/** The clients that pass the filter and that the client that asks may see. */
function visible(context: CommandContext, passes: ClientFilter): readonly ListedClient[] {
  return [...context.deps.siblings()].filter((client) => maySee(context, client) && passes(client))
}

/** The reply to HELLO: the engine's, with the gateway's id of the client. */
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

const NO_INDEX = 'value is out of range, value must between -2147483648 and 2147483647'

/** The reply to SELECT on every protocol, as from an engine that has one database. `args` follow the name. */
export function selectReply(args: readonly string[]): Buffer {
  const problem = arityProblem('SELECT', args.length + 1)
  if (problem !== undefined) return encodeError(`ERR ${problem}`)
  const number = wholeNumber(args[0] ?? '')
  if (number === undefined) return encodeError('ERR value is not an integer or out of range')
  if (number < -(2 ** 31) || number >= 2 ** 31) return encodeError(`ERR ${NO_INDEX}`)
  return number === 0 ? OK : encodeError('ERR DB index is out of range')
}

/** Whether CLIENT LIST or CLIENT KILL applies to a client. */
type ClientFilter = (client: ListedClient) => boolean

/** A filter, or the engine's error text. */
type FilterOutcome = { readonly filter: ClientFilter } | { readonly problem: string }

/** `skipsSelf`: CLIENT KILL leaves out the client that sends it. */
type KillOutcome = { readonly filter: ClientFilter; readonly skipsSelf: boolean } | { readonly problem: string }

const SYNTAX_PROBLEM = { problem: 'ERR syntax error' }

/** Parses the arguments of CLIENT LIST: none, `TYPE kind`, or `ID id…`. */
function listFilter(args: readonly string[]): FilterOutcome {
  const [word, first, ...rest] = args
  if (word === undefined) return { filter: () => true }
  if (word.toUpperCase() === 'TYPE' && first !== undefined && rest.length === 0) return ofKind(first)
  if (word.toUpperCase() !== 'ID' || first === undefined) return SYNTAX_PROBLEM
  const ids = new Set([first, ...rest].map(wholeNumber))
  if (ids.has(undefined)) return { problem: 'ERR Invalid client ID' }
  return { filter: ({ profile }) => ids.has(profile.id) }
}

/**
 * Parses the option pairs of CLIENT KILL. A client has to match all of them; of several pairs with the same word, the last
 * one counts, as in engines. `isUser`: whether a user exists.
 */
function killFilter(args: readonly string[], isUser: (name: string) => boolean): KillOutcome {
  if (args.length % 2 === 1) return SYNTAX_PROBLEM
  let skipsSelf = true
  const byWord = new Map<string, ClientFilter>()
  for (let at = 0; at < args.length; at += 2) {
    const [word = '', value = ''] = [args[at]?.toUpperCase(), args[at + 1]]
    if (word === 'SKIPME') {
      if (!/^(yes|no)$/i.test(value)) return SYNTAX_PROBLEM
      skipsSelf = value.toLowerCase() === 'yes'
      continue
    }
    const outcome = pairFilter(word, value, isUser)
    if ('problem' in outcome) return outcome
    byWord.set(word, outcome.filter)
  }
  const filters = [...byWord.values()]
  return { skipsSelf, filter: (client) => filters.every((passes) => passes(client)) }
}

function pairFilter(word: string, value: string, isUser: (name: string) => boolean): FilterOutcome {
  switch (word) {
    case 'ID': {
      const id = wholeNumber(value)
      if (id === undefined || id < 1) return { problem: 'ERR client-id should be greater than 0' }
      return { filter: ({ profile }) => profile.id === id }
    }
    case 'TYPE':
      return ofKind(value)
    case 'USER':
      if (!isUser(value)) return { problem: `ERR No such user '${value}'` }
      return { filter: ({ user }) => user === value }
    case 'ADDR':
      return { filter: ({ profile }) => profile.address === value }
    case 'LADDR':
      return { filter: ({ profile }) => profile.localAddress === value }
    default:
      return SYNTAX_PROBLEM
  }
}

/** Parses a client type. No client of the gateway is a peer of the engine, such as a replica. */
function ofKind(word: string): FilterOutcome {
  switch (word.toLowerCase()) {
    case 'normal':
      return { filter: ({ kind }) => kind === 'normal' }
    case 'pubsub':
      return { filter: ({ kind }) => kind === 'pubsub' }
    case 'master':
    case 'slave':
    case 'replica':
      return { filter: () => false }
    default:
      return { problem: `ERR Unknown client type '${word}'` }
  }
}
