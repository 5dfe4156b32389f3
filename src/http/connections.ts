import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { systemClock, yieldToEventLoop } from '../base/index.js'

/**
 * Length of the queue of connections that the system holds until they are accepted, where it allows that. With Node's
 * default of 511, the system may reset clients when a thousand connect at once and the machine is busy.
 */
export const BACKLOG = 4_096

const NEWEST = Symbol('newest request')
const UNANSWERED = Symbol('requests without an answer')

/** A connection with its newest request; earlier requests are complete. */
export interface Connection extends Socket {
  [NEWEST]?: IncomingMessage
  [UNANSWERED]?: number
}

/** The open connections of a listener. */
export class Connections {
  readonly #open = new Set<Connection>()
  readonly #leftoverMs: number
  #isEnding = false

  /** @param leftoverMs time for the rest of a body that arrives after its request was answered. */
  constructor(leftoverMs: number) {
    this.#leftoverMs = leftoverMs
  }

  /** Starts to track a connection, unless it is tracked already. */
  add(connection: Connection): void {
    if (this.#open.has(connection)) return
    this.#open.add(connection)
    connection.once('close', () => this.#open.delete(connection))
  }

  /** Starts to track the connections of a listener. */
  follow(server: Server): void {
    server.on('connection', (connection: Connection) => this.add(connection))
    server.prependListener('request', (request: IncomingMessage, answer: ServerResponse) => {
      const connection: Connection = request.socket
      connection[UNANSWERED] = (connection[UNANSWERED] ?? 0) + 1
      answer.once('close', () => {
        connection[UNANSWERED] = (connection[UNANSWERED] ?? 1) - 1
        if (this.#isEnding) endIfUnused(connection)
        else if (!request.complete) this.#endUnlessComplete(request, connection)
      })
    })
  }

  /** Closes the connection if the body does not end in time: Node would read and discard its rest without a limit. */
  #endUnlessComplete(request: IncomingMessage, connection: Connection): void {
    const timer = systemClock.after(this.#leftoverMs, () => {
      if (!request.complete) connection.destroy()
    })
    request.once('close', () => timer.cancel())
  }

  /** Records that a request has started to arrive. */
  note(request: IncomingMessage): void {
    const connection: Connection = request.socket
    connection[NEWEST] = request
  }

  /** Aborts incomplete requests. */
  endIncomplete(): void {
    for (const connection of this.#open) {
      const request = connection[NEWEST]
      if (request && !request.complete) request.destroy()
    }
  }

  /** Resolves when all connections are closed. */
  async closed(): Promise<void> {
    await Promise.all([...this.#open].map(closed))
  }

  /**
   * Ends connections without a request in flight, now and later: those without any request so far, those between two
   * requests, and those where only the start of the next request has arrived. Node counts the first and the last kind as
   * busy. Requests that have already reached this machine are read first.
   */
  async endUnused(): Promise<void> {
    this.#isEnding = true
    await yieldToEventLoop()
    for (const connection of this.#open) endIfUnused(connection)
  }
}

/** Resolves when a connection is closed, also by an error. */
export const closed = (connection: Duplex): Promise<void> =>
  new Promise((resolve) => connection.once('close', () => resolve()))

/** Ends a connection without an unanswered request, after everything that was written is sent. */
function endIfUnused(connection: Connection): void {
  if ((connection[UNANSWERED] ?? 0) === 0) connection.destroySoon()
}
