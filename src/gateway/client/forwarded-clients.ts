import { type Duplex, pipeline } from 'node:stream'
import type { Clock } from '../../base/index.js'
import { closed } from '../../http/index.js'

/** The clients of other nodes' databases, whose bytes this node passes on. */
export class ForwardedClients {
  /** By client: its connection to the home, and a function that ends its input, so that the home still sends all replies. */
  readonly #passed = new Map<Duplex, { readonly home: Duplex; readonly finish: () => void }>()
  #isClosed = false

  /** Passes bytes on in both directions. */
  join(client: Duplex, home: Duplex): void {
    pipeline(client, home, client, () => undefined)
    this.add(client, home, () => {
      client.unpipe(home)
      client.resume()
      home.end()
    })
  }

  /** Adds a client whose bytes are passed on. `finish` ends the direction to the home; the home then ends the other one. */
  add(client: Duplex, home: Duplex, finish: () => void): void {
    if (this.#isClosed || client.destroyed) {
      home.destroy()
      client.destroy()
      return
    }
    this.#passed.set(client, { home, finish })
    // The connection to the home closes with that of the client.
    home.once('close', () => this.#passed.delete(client))
  }

  /** Whether the bytes of a client are passed on. */
  has(client: Duplex): boolean {
    return this.#passed.has(client)
  }

  /** Closes every connection once the replies in flight are sent, at the latest after `graceMs`. */
  async close(graceMs: number, clock: Clock): Promise<void> {
    this.#isClosed = true
    const passed = [...this.#passed]
    const ended = passed.map(([, { home }]) => closed(home))
    for (const [client, { finish }] of passed) {
      if (client.writableFinished) client.destroy()
      else client.once('finish', () => client.destroy())
      finish()
    }
    const timer = clock.after(graceMs, () => {
      for (const [client] of passed) client.destroy()
    })
    await Promise.all(ended)
    timer.cancel()
  }
}
