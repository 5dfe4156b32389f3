import type * as nodeRows from './transactions/cluster-nodes.js'
import type { Incarnation, Peer } from './types.js'

/** The other nodes that take part, as of the last look. */
export class PeerNodes {
  readonly #gone: ((incarnation: Incarnation) => void)[] = []
  #all: readonly Peer[] = []

  get all(): readonly Peer[] {
    return this.#all
  }

  get incarnations(): ReadonlySet<Incarnation> {
    return new Set(this.#all.map(({ incarnation }) => incarnation))
  }

  of(incarnation: Incarnation | null): Peer | undefined {
    return this.#all.find((peer) => peer.incarnation === incarnation)
  }

  /** Calls `listener` when a node has left or was declared dead. */
  onNodeGone(listener: (incarnation: Incarnation) => void): void {
    this.#gone.push(listener)
  }

  /** Applies the rows of a look. */
  update(rows: readonly nodeRows.NodeRow[]): void {
    const before = this.#all
    this.#all = rows.map(({ incarnation, name, advertise, state }) => ({
      incarnation,
      name,
      advertise,
      state: state === 'draining' ? 'draining' : 'live',
    }))
    for (const { incarnation } of before) {
      if (!this.of(incarnation)) for (const listener of this.#gone) listener(incarnation)
    }
  }
}
