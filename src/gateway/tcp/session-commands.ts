import {
  encodeArray,
  encodeBulk,
  encodeError,
  encodeInteger,
  encodeMap,
  encodeNull,
  encodeSimple,
} from '../resp/encode.js'

/** What a client told about itself, and what CLIENT INFO tells about it. */
export interface ClientProfile {
  readonly id: number
  readonly address: string
  readonly localAddress: string
  readonly connectedAtMs: number
  lastCommandAtMs: number
  name: string
  libraryName: string
  libraryVersion: string
}

/** One line of CLIENT LIST, in the engine's form and order. */
export function describeClient(profile: ClientProfile, session: SessionFacts, nowMs: number): string {
  const seconds = (sinceMs: number): number => Math.max(0, Math.floor((nowMs - sinceMs) / 1000))
  const { id, address, localAddress, name, libraryName, libraryVersion } = profile
  return (
    `id=${id} addr=${address} laddr=${localAddress} name=${name} age=${seconds(profile.connectedAtMs)} ` +
    `idle=${seconds(profile.lastCommandAtMs)} flags=${session.flags} db=0 user=${session.user} ` +
    `resp=${session.protocol} lib-name=${libraryName} lib-ver=${libraryVersion}`
  )
}

/** What a session knows of itself at the moment. */
export interface SessionFacts {
  readonly user: string
  readonly protocol: 2 | 3
  /** `N` normal, `x` in a transaction, `P` subscribed or otherwise pinned. */
  readonly flags: 'N' | 'x' | 'P'
}

/** What the commands below need of a session. */
export interface CommandContext {
  readonly profile: ClientProfile
  readonly protocol: 2 | 3
  readonly describeSelf: () => string
  readonly describeAll: () => readonly string[]
}

type Handler = (context: CommandContext, args: readonly string[]) => Buffer

const OK = encodeSimple('OK')
const PLAIN_NAME = /^[\x21-\x7e]*$/

/**
 * Answers a command about the client's own connection. `name` is a row of the command table, `args` are the arguments
 * behind it. Changes nothing but the profile.
 */
export function answerSessionCommand(context: CommandContext, name: string, args: readonly string[]): Buffer {
  const handler = HANDLERS[name]
  if (!handler) throw new Error(`no handler for the session command ${name}`)
  return handler(context, args)
}

const HANDLERS: Readonly<Record<string, Handler>> = {
  SELECT: (_, args) => {
    if (args.length !== 1) return wrongArity('select')
    if (!/^-?\d+$/.test(args[0] ?? '')) return encodeError('ERR value is not an integer or out of range')
    return args[0] === '0' ? OK : encodeError('ERR DB index is out of range')
  },
  'CLIENT|ID': ({ profile }, args) => (args.length === 0 ? encodeInteger(profile.id) : wrongArity('client|id')),
  'CLIENT|GETNAME': ({ profile, protocol }) => (profile.name === '' ? encodeNull(protocol) : encodeBulk(profile.name)),
  'CLIENT|SETNAME': ({ profile }, args) => {
    const [name] = args
    if (name === undefined || args.length > 1) return wrongArity('client|setname')
    return setName(profile, name)
  },
  'CLIENT|SETINFO': ({ profile }, args) => setInfo(profile, args),
  'CLIENT|INFO': ({ describeSelf }) => encodeBulk(`${describeSelf()}\n`),
  'CLIENT|LIST': ({ describeAll }) =>
    encodeBulk(
      describeAll()
        .map((line) => `${line}\n`)
        .join(''),
    ),
  // The only setting that the reference knows (redis 3.6); keyspace notifications are off and stay off.
  'CONFIG|GET': (_, args) => {
    if (args.length === 0) return wrongArity('config|get')
    const setting = 'notify-keyspace-events'
    const asked = args.some((pattern) => globMatches(pattern.toLowerCase(), setting))
    return encodeArray(asked ? [encodeBulk(setting), encodeBulk('')] : [])
  },
}

/** Sets the name of a client, or says why it cannot be one. */
export function setName(profile: ClientProfile, name: string): Buffer {
  if (!PLAIN_NAME.test(name)) {
    return encodeError('ERR Client names cannot contain spaces, newlines or special characters.')
  }
  profile.name = name
  return OK
}

function setInfo(profile: ClientProfile, args: readonly string[]): Buffer {
  const [attribute, value] = args
  if (attribute === undefined || value === undefined || args.length > 2) return wrongArity('client|setinfo')
  const key = attribute.toLowerCase()
  if (!PLAIN_NAME.test(value)) {
    return encodeError(`ERR ${key} cannot contain spaces, newlines or special characters.`)
  }
  if (key === 'lib-name') profile.libraryName = value
  else if (key === 'lib-ver') profile.libraryVersion = value
  else return encodeError(`ERR Unrecognized option '${attribute}'`)
  return OK
}

/** The engine's error for a wrong number of arguments. */
export function wrongArity(command: string): Buffer {
  return encodeError(`ERR wrong number of arguments for '${command}' command`)
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

/** Only `*` and `?` have a meaning; that is what clients ask settings with. */
function globMatches(pattern: string, text: string): boolean {
  const source = pattern
    .slice(0, 256)
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${source}$`).test(text)
}
