import type { OnPeerRequest, PeerAddress, PeerLink } from '../peer-link.js'
import type { Incarnation } from '../types.js'

interface Linked {
  readonly incarnation: () => Incarnation
  readonly onRequest: OnPeerRequest
}

/** Links between nodes in one process, which call each other directly, without sockets. A test can cut nodes off. */
export class DirectLinks {
  readonly #linked = new Set<Linked>()
  readonly #cut = new Set<Incarnation>()
  #port = 0

  /** From now on no node reaches this one, and it reaches no other. */
  cut(incarnation: Incarnation): void {
    this.#cut.add(incarnation)
  }

  mend(incarnation: Incarnation): void {
    this.#cut.delete(incarnation)
  }

  /** The link of one node. */
  readonly make = (linked: Linked): PeerLink => ({
    name: 'peer link',
    port: ++this.#port,
    start: async () => void this.#linked.add(linked),
    stop: async () => void this.#linked.delete(linked),
    tunnel: async () => Promise.reject(new Error('no tunnels')),
    request: async (peer, topic, payload) => {
      const [from, other] = [linked.incarnation(), this.#find(peer)]
      if (!other || this.#cut.has(from) || this.#cut.has(peer.incarnation)) throw new Error('no answer')
      return copy(await other.onRequest({ topic, payload: copy(payload), from }))
    },
  })

  #find({ incarnation }: PeerAddress): Linked | undefined {
    return [...this.#linked].find((linked) => linked.incarnation() === incarnation)
  }
}

/** A copy of a value, as if it came from a socket. */
const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))
