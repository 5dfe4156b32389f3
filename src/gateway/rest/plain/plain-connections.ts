import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock, Strangers, Timer } from '../../../base/index.js'
import { closed } from '../../../http/index.js'
import { type ConnectionHandle, interceptConnections, presetOptions } from '../../client/node-internals.js'
import { PlainConnection } from './plain-connection.js'
import { KEEP_ALIVE_SECONDS, type PlainRequest, type PlainResponse } from './plain-messages.js'

/** What plain connections need of their listener. */
export interface PlainConnectionsDeps {
  readonly clock: Clock
  readonly strangers: Pick<Strangers, 'admit'>
  /** How often idle connections are looked for. */
  readonly sweepMs: number
  /** Answers a request. */
  readonly serve: (request: PlainRequest, response: PlainResponse) => void
}

const TCP_KEEP_ALIVE_SECONDS = 300

/**
 * The connections of an HTTP server over which only plain requests have come so far (`plain-head.ts`). They are read and answered
 * here, with a fraction of the calls that Node's HTTP server makes. It gets a connection for good as soon as anything else comes.
 */
export class PlainConnections {
  readonly #deps: PlainConnectionsDeps
  readonly #open = new Set<PlainConnection>()
  readonly #withNode = new Set<Socket>()
  #sweep: Timer | undefined

  constructor(deps: PlainConnectionsDeps) {
    this.#deps = deps
  }

  /** Takes the connections that a listening server accepts, where internals of Node are used; else all are Node's. */
  take(server: Server): void {
    const areSet = presetOptions(server, TCP_KEEP_ALIVE_SECONDS)
    interceptConnections(server, (handle) => this.#accept(handle, areSet, server))
  }

  /** Whether a connection was accepted here, before Node got it. */
  has(socket: Socket): boolean {
    return this.#withNode.has(socket)
  }

  /** Ends the connections once their requests are answered. Resolves when all are closed, also those that Node got. */
  async close(): Promise<void> {
    const all = [...this.#sockets].map(closed)
    for (const connection of this.#open) connection.end()
    await Promise.all(all)
    this.#sweep?.cancel()
  }

  /** Closes all connections. */
  destroy(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  get #sockets(): Iterable<Socket> {
    return [...[...this.#open].map(({ socket }) => socket), ...this.#withNode]
  }

  #accept(handle: ConnectionHandle, isSet: boolean, server: Server): void {
    const { clock, serve, strangers } = this.#deps
    const connection: PlainConnection = new PlainConnection(handle, {
      now: () => clock.now(),
      serve,
      toNode: (socket) => {
        this.#open.delete(connection)
        this.#withNode.add(socket)
        server.emit('connection', socket)
      },
    })
    const { socket } = connection
    if (!isSet) socket.setNoDelay(true)
    this.#open.add(connection)
    strangers.admit(socket)
    socket.on('close', () => {
      this.#open.delete(connection)
      this.#withNode.delete(socket)
    })
    this.#scheduleSweep()
  }

  /** Sets the timer of the next sweep, unless it is set or there is no connection. */
  #scheduleSweep(): void {
    if (this.#sweep || this.#open.size === 0) return
    this.#sweep = this.#deps.clock.after(this.#deps.sweepMs, () => {
      this.#sweep = undefined
      for (const connection of this.#open) connection.checkIdle(1_000 * KEEP_ALIVE_SECONDS)
      this.#scheduleSweep()
    })
  }
}
