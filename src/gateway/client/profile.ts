import type { ClientSocket } from './client-socket.js'

/** The identity of a client: its id, addresses and times, and the names that it has set. */
export class ClientProfile {
  readonly id: number
  readonly connectedAtMs: number
  lastCommandAtMs: number
  /** Row of its last command in the command table; undefined before the first and after an unknown one. */
  lastCommand: string | undefined
  name = ''
  libraryName = ''
  libraryVersion = ''
  readonly #socket: ClientSocket

  constructor(socket: ClientSocket, id: number, nowMs: number) {
    this.#socket = socket
    this.id = id
    this.connectedAtMs = nowMs
    this.lastCommandAtMs = nowMs
  }

  /** Memory that the names take, bytes. */
  get heldBytes(): number {
    return this.name.length + this.libraryName.length + this.libraryVersion.length
  }

  /** Address and port of the client. Costs a system call, so it is read only when needed. */
  get address(): string {
    return `${this.#socket.remoteAddress}:${this.#socket.remotePort}`
  }

  /** Address and port to which the client has connected. */
  get localAddress(): string {
    return `${this.#socket.localAddress}:${this.#socket.localPort}`
  }
}

/** The present state of a session, for CLIENT INFO. */
export interface SessionFacts {
  readonly user: string
  readonly protocol: 2 | 3
  /**
   * The engine's letters: `P` subscribed, `O` monitors, `t` tracks, `T` no-touch, `x` in a transaction, `b` blocked; else
   * `N`.
   */
  readonly flags: string
  readonly channels: number
  readonly patterns: number
  readonly shardChannels: number
  /** Commands queued in the open transaction; -1 when none is open. */
  readonly queued: number
  /** Id of the client that gets its invalidations: 0 for itself, -1 without tracking. */
  readonly redirect: number
  /** Bytes of commands that were not handled yet. */
  readonly inputBytes: number
  /** Bytes of unread replies. */
  readonly outputBytes: number
}

const PLAIN_NAME = /^[\x21-\x7e]*$/

/**
 * One line of CLIENT LIST, in the engine's format and order, with every field that client libraries rely on. Memory is
 * what the gateway holds for the client: connections to engines are shared.
 */
export function describeClient(profile: ClientProfile, session: SessionFacts, nowMs: number): string {
  const seconds = (sinceMs: number): number => Math.max(0, Math.floor((nowMs - sinceMs) / 1000))
  const { id, address, localAddress, name, libraryName, libraryVersion } = profile
  return (
    `id=${id} addr=${address} laddr=${localAddress} fd=-1 name=${name} age=${seconds(profile.connectedAtMs)} ` +
    `idle=${seconds(profile.lastCommandAtMs)} flags=${session.flags} db=0 sub=${session.channels} ` +
    `psub=${session.patterns} ssub=${session.shardChannels} multi=${session.queued} qbuf=${session.inputBytes} qbuf-free=0 ` +
    `argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=${session.outputBytes} ` +
    `tot-mem=${session.inputBytes + session.outputBytes} events=r cmd=${profile.lastCommand?.toLowerCase() ?? 'NULL'} ` +
    `user=${session.user} redir=${session.redirect} resp=${session.protocol} lib-name=${libraryName} lib-ver=${libraryVersion}`
  )
}

/** Longest name, characters. Limited, because every CLIENT LIST contains all names. */
const MAX_NAME_LENGTH = 1_024

/** The engine's error text for an invalid name of a client or its library, without the beginning that says which name. */
function problemOfName(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return `cannot be longer than ${MAX_NAME_LENGTH} characters.`
  return PLAIN_NAME.test(name) ? undefined : 'cannot contain spaces, newlines or special characters.'
}

/** The error text for a client name that is not valid. */
export function clientNameProblem(name: string): string | undefined {
  const problem = problemOfName(name)
  return problem && `ERR Client names ${problem}`
}

/** Sets the name of a client. @returns an error text if the name is invalid. */
export function setName(profile: ClientProfile, name: string): string | undefined {
  const problem = clientNameProblem(name)
  if (problem === undefined) profile.name = name
  return problem
}

/** Sets the name or version of the client's library. @returns an error text if it is invalid. */
export function setInfo(profile: ClientProfile, attribute: string, value: string): string | undefined {
  const key = attribute.toLowerCase()
  const problem = problemOfName(value)
  if (problem !== undefined) return `ERR ${key} ${problem}`
  if (key === 'lib-name') profile.libraryName = value
  else if (key === 'lib-ver') profile.libraryVersion = value
  else return `ERR Unrecognized option '${attribute}'`
  return undefined
}
