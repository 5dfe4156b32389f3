import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

const NEWEST = Symbol('newest request')

/** A connection with its newest request; earlier requests are complete. */
interface Connection extends Socket {
  [NEWEST]?: IncomingMessage
}

/** The open connections of a listener. */
export class Connections {
  readonly #open = new Set<Connection>()

  /** Starts to track the connections of a listener. */
  follow(server: Server): void {
    server.on('connection', (connection: Connection) => {
      this.#open.add(connection)
      connection.once('close', () => this.#open.delete(connection))
    })
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
}
