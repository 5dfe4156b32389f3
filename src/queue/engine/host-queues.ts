import type { Entry } from './entry.js'
import { Fifo } from './fifo.js'

interface Host {
  readonly queue: Fifo
  sending: number
  inRotation: boolean
}

/**
 * Messages that are due, one queue for each destination host. Hosts take turns, and none has more than its share of
 * requests in flight: a host that does not answer keeps its own messages waiting and nobody else's.
 */
export class HostQueues {
  readonly #mostPerHost: number
  readonly #hosts = new Map<string, Host>()
  /** Hosts that have something ready and room in flight, in the order of their turns. */
  readonly #rotation: string[] = []

  constructor(mostPerHost: number) {
    this.#mostPerHost = mostPerHost
  }

  /** Adds a message that is due. */
  push(entry: Entry): void {
    entry.state = 'ready'
    const host = this.#host(entry.host)
    host.queue.push(entry)
    this.#rotate(entry.host, host)
  }

  /** Takes the next message to send; `done` has to follow. */
  take(): Entry | undefined {
    for (;;) {
      const name = this.#rotation.shift()
      if (name === undefined) return undefined
      const host = this.#host(name)
      host.inRotation = false
      const entry = host.queue.shiftAlive('ready')
      if (!entry) {
        this.#forgetIdle(name, host)
        continue
      }
      entry.state = 'sending'
      host.sending++
      this.#rotate(name, host)
      return entry
    }
  }

  /** A message that was taken is no longer in flight. */
  done(name: string): void {
    const host = this.#host(name)
    host.sending--
    this.#rotate(name, host)
    this.#forgetIdle(name, host)
  }

  #host(name: string): Host {
    let host = this.#hosts.get(name)
    if (!host) {
      host = { queue: new Fifo(), sending: 0, inRotation: false }
      this.#hosts.set(name, host)
    }
    return host
  }

  #rotate(name: string, host: Host): void {
    if (host.inRotation || host.queue.size === 0 || host.sending >= this.#mostPerHost) return
    host.inRotation = true
    this.#rotation.push(name)
  }

  #forgetIdle(name: string, host: Host): void {
    if (host.sending === 0 && host.queue.size === 0) this.#hosts.delete(name)
  }
}
