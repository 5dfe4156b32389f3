import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ServingDirectory } from '../directory.js'

/**
 * Stands in for the data plane where only its ports matter: one listener for each database of a directory, opened and
 * closed as the directory changes.
 */
export class PortGate {
  readonly #directory: ServingDirectory
  readonly #servers = new Map<string, { readonly port: number; readonly server: Server }>()

  constructor(directory: ServingDirectory) {
    this.#directory = directory
    directory.onChange(() => this.#closeGone())
  }

  /** Opens the port of a database; rejects with `port_taken` when another program holds it. */
  async open(databaseId: string): Promise<void> {
    const served = this.#directory.find(databaseId)
    if (!served) throw new Error(`database ${databaseId} is not served`)
    if (this.#servers.get(databaseId)?.port === served.port) return
    const server = createServer((socket) => socket.destroy())
    server.listen(served.port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch {
      throw new HomeportError('port_taken', { port: served.port })
    }
    this.#servers.set(databaseId, { port: served.port, server })
    this.#closeGone()
  }

  /** Closes every port. */
  close(): void {
    for (const { server } of this.#servers.values()) server.close()
    this.#servers.clear()
  }

  #closeGone(): void {
    for (const [databaseId, { port, server }] of this.#servers) {
      if (this.#directory.find(databaseId)?.port === port) continue
      server.close()
      this.#servers.delete(databaseId)
    }
  }
}
