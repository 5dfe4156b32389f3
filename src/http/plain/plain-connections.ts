import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import {
  type Clock,
  type ConnectionHandle,
  interceptConnections,
  isTurnSpent,
  presetOptions,
  scheduleSlice,
  type Timer,
} from '../../base/index.js'
import { PlainConnection } from './plain-connection.js'
import { KEEP_ALIVE_SECONDS, type PlainRequest, type PlainResponse } from './plain-messages.js'

/** Collaborators and settings of `PlainConnections`. */
export interface PlainConnectionsDeps {
  readonly clock: Clock
  /** Interval of the search for idle connections. */
  readonly sweepMs: number
  /** Called for each new client. Node's HTTP server neither counts such a connection nor closes it. */
  readonly onOpen: (socket: Socket) => void
  /** Answers a request. */
  readonly serve: (request: PlainRequest, response: PlainResponse) => void
}

const TCP_KEEP_ALIVE_SECONDS = 300

/**
 * The connections of an HTTP server over which only plain requests have come so far (`plain-head.ts`). They are read and
 * answered here, with a fraction of the calls that Node's HTTP server makes. When anything else arrives, Node's server gets
 * the connection for good, as a `connection` event.
 */
export class PlainConnections {
  readonly #deps: PlainConnectionsDeps
  readonly #open = new Set<PlainConnection>()
  #sweep: Timer | undefined

  constructor(deps: PlainConnectionsDeps) {
    this.#deps = deps
  }

  /** Takes the connections that a listening server accepts, where internals of Node are used; otherwise Node gets all. */
  take(server: Server): void {
    const areSet = presetOptions(server, TCP_KEEP_ALIVE_SECONDS)
    interceptConnections(server, (handle) => this.#accept(handle, areSet, server))
  }

  /** Ends the connections that Node has not taken over, once their requests are answered. */
  end(): void {
    for (const connection of this.#open) connection.end()
  }

  #accept(handle: ConnectionHandle, isSet: boolean, server: Server): void {
    const { serve, onOpen } = this.#deps
    const connection: PlainConnection = new PlainConnection(handle, {
      serve,
      toNode: (socket) => {
        this.#open.delete(connection)
        server.emit('connection', socket)
      },
    })
    const { socket } = connection
    if (!isSet) socket.setNoDelay(true)
    this.#open.add(connection)
    socket.on('close', () => this.#open.delete(connection))
    onOpen(socket)
    this.#scheduleSweep()
  }

  /** Sets the timer of the next sweep, unless a timer is set or there is no connection. */
  #scheduleSweep(): void {
    if (this.#sweep || this.#open.size === 0) return
    this.#sweep = this.#deps.clock.after(this.#deps.sweepMs, () => this.#sweepFrom([...this.#open], 0))
  }

  /** Continues in a later turn of the event loop when this one is spent: Node may have to take over thousands. */
  #sweepFrom(open: readonly PlainConnection[], first: number): void {
    const maxSweeps = Math.ceil((1_000 * KEEP_ALIVE_SECONDS) / this.#deps.sweepMs)
    for (let next = first; next < open.length; next++) {
      open[next]?.sweep(maxSweeps)
      if (!isTurnSpent()) continue
      scheduleSlice(() => this.#sweepFrom(open, next + 1))
      return
    }
    this.#sweep = undefined
    this.#scheduleSweep()
  }
}
