import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

const NEWEST = Symbol('newest request')

/** A connection with the request that came over it last; those before it have come whole. */
interface Connection extends Socket {
  [NEWEST]?: IncomingMessage
}

/** The open connections of a listener. */
export class Connections {
  readonly #open = new Set<Connection>()

  /** Follows the connections of a listener, from its start on. */
  follow(server: Server): void {
    server.on('connection', (connection: Connection) => {
      this.#open.add(connection)
      connection.once('close', () => this.#open.delete(connection))
    })
  }

  /** A request has begun to come. */
  note(request: IncomingMessage): void {
    const connection: Connection = request.socket
    connection[NEWEST] = request
  }

  /** Ends requests that have not come whole: their senders may never go on. */
  endIncomplete(): void {
    for (const connection of this.#open) {
      const request = connection[NEWEST]
      if (request && !request.complete) request.destroy()
    }
  }
}
