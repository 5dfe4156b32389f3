import type { Duplex } from 'node:stream'
import { destroySoon } from '../../http/index.js'
import type { ClientAddress } from '../deps.js'

/** The members of a client's socket that the gateway uses. The connection may come over another node. */
export interface ClientSocket extends Duplex {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  /** Closes the connection after everything was sent. */
  destroySoon(): void
  setNoDelay(isOn: boolean): unknown
  setKeepAlive(isOn: boolean, delayMs: number): unknown
}

/** Makes a connection that another node passes on look like one of the client itself, with its address. */
export function asClientSocket(connection: Duplex, client: ClientAddress, local: ClientAddress): ClientSocket {
  return Object.assign(connection, {
    remoteAddress: client.ip,
    remotePort: client.port,
    localAddress: local.ip,
    localPort: local.port,
    destroySoon: () => destroySoon(connection),
    // The node that has accepted the client sets the options of the socket.
    setNoDelay: () => undefined,
    setKeepAlive: () => undefined,
  })
}
