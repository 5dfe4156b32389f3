import type { Socket } from 'node:net'

/** What a client told about itself, and what CLIENT INFO tells about it. */
export class ClientProfile {
  readonly id: number
  readonly connectedAtMs: number
  lastCommandAtMs: number
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
  /** `N` normal, `x` in a transaction, `P` subscribed or otherwise pinned. */
  readonly flags: 'N' | 'x' | 'P'
}

const PLAIN_NAME = /^[\x21-\x7e]*$/

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

/** Sets the name of a client. @returns what is wrong with it, if anything. */
export function setName(profile: ClientProfile, name: string): string | undefined {
  if (!PLAIN_NAME.test(name)) return 'ERR Client names cannot contain spaces, newlines or special characters.'
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
