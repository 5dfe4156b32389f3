import type { Duplex } from 'node:stream'
import type { ClientMemoryBudget, Clock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import type { OnPeerRequest, OnTunnel, PeerAddress, PeerLink, TunnelHead } from '../peer-link.js'
import type { Incarnation } from '../types.js'
import { openPeerCredentials, type PeerCredentials } from './credentials.js'
import { PeerClient } from './peer-client.js'
import { PeerServer } from './peer-server.js'

/** What a link is built from. */
export interface PeerLinkDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn' | 'error'>
  /** The address on which the link listens. */
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The incarnation of this process now. */
  readonly incarnation: () => Incarnation
  readonly onRequest: OnPeerRequest
  /** The memory of clients. Their unread bytes count against it. */
  readonly memory: ClientMemoryBudget
  /** Absent: streams of bytes are refused. */
  readonly onTunnel?: OnTunnel
}

/** Builds the link to the other nodes; it listens after `start`. */
export function createPeerLink(deps: PeerLinkDeps): PeerLink {
  return new Http2Link(deps)
}

class Http2Link implements PeerLink {
  readonly name = 'peer link'
  readonly #deps: PeerLinkDeps
  #open: { readonly credentials: PeerCredentials; readonly server: PeerServer; readonly client: PeerClient } | undefined

  constructor(deps: PeerLinkDeps) {
    this.#deps = deps
  }

  get port(): number {
    return this.#open?.server.port ?? this.#deps.port
  }

  async start(): Promise<void> {
    const credentials = await openPeerCredentials(this.#deps)
    const server = new PeerServer({ ...this.#deps, credentials })
    await server.listen()
    this.#open = { credentials, server, client: new PeerClient({ ...this.#deps, credentials }) }
  }

  async stop(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    open?.credentials.stop()
    open?.client.close()
    await open?.server.close()
  }

  async request(peer: PeerAddress, topic: string, payload: unknown, timeoutMs: number): Promise<unknown> {
    if (!this.#open) throw new Error('the link between nodes is closed')
    return this.#open.client.request(peer, topic, payload, timeoutMs)
  }

  async tunnel(peer: PeerAddress, head: TunnelHead): Promise<Duplex> {
    if (!this.#open) throw new Error('the link between nodes is closed')
    return this.#open.client.tunnel(peer, head)
  }
}
