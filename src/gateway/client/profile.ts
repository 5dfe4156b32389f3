import type { Socket } from 'node:net'

/** What a client told about itself, and what CLIENT INFO tells about it. */
export class ClientProfile {
  readonly id: number
  readonly connectedAtMs: number
  lastCommandAtMs: number
  /** Row of the command table of its last command; undefined before the first and behind one that is unknown. */
  lastCommand: string | undefined
  name = ''
  libraryName = ''
  libraryVersion = ''
  readonly #socket: Socket

  constructor(socket: Socket, id: number, nowMs: number) {
    this.#socket = socket
    this.id = id
    this.connectedAtMs = nowMs
    this.lastCommandAtMs = nowMs
  }

  /** Where the client connects from. Costs a system call, and few are asked for it. */
  get address(): string {
    return `${this.#socket.remoteAddress}:${this.#socket.remotePort}`
  }

  /** Where it connects to. */
  get localAddress(): string {
    return `${this.#socket.localAddress}:${this.#socket.localPort}`
  }
}

/** What a session knows of itself at the moment. */
export interface SessionFacts {
  readonly user: string
  readonly protocol: 2 | 3
  /**
   * In the engine's letters: `P` subscribed, `O` monitors, `t` tracks, `T` reads without touching, `x` in a transaction,
   * `b` blocked; else `N`.
   */
  readonly flags: string
  readonly channels: number
  readonly patterns: number
  readonly shardChannels: number
  /** Commands of the open transaction that wait for EXEC; -1 when none is open. */
  readonly queued: number
  /** Whom it has what it tracks told: 0 for itself, -1 when it tracks nothing. */
  readonly redirect: number
  /** Bytes of commands that have not been taken. */
  readonly inputBytes: number
  /** Bytes of replies that it has not read. */
  readonly outputBytes: number
}

const PLAIN_NAME = /^[\x21-\x7e]*$/

/**
 * One line of CLIENT LIST, in the engine's form and order, with every number that client libraries count on. Of memory
 * only what the gateway holds for the client is told: engine connections are shared.
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

/** The engine's words for a name that no client may have. */
export const NO_PLAIN_NAME = 'ERR Client names cannot contain spaces, newlines or special characters.'

/** Whether a client may have this name. */
export function isPlainName(name: string): boolean {
  return PLAIN_NAME.test(name)
}

/** Sets the name of a client. @returns what is wrong with it, if anything. */
export function setName(profile: ClientProfile, name: string): string | undefined {
  if (!isPlainName(name)) return NO_PLAIN_NAME
  profile.name = name
  return undefined
}

/** Notes the library that a client is written with. @returns what is wrong with it, if anything. */
export function setInfo(profile: ClientProfile, attribute: string, value: string): string | undefined {
  const key = attribute.toLowerCase()
  if (!PLAIN_NAME.test(value)) return `ERR ${key} cannot contain spaces, newlines or special characters.`
  if (key === 'lib-name') profile.libraryName = value
  else if (key === 'lib-ver') profile.libraryVersion = value
  else return `ERR Unrecognized option '${attribute}'`
  return undefined
}
