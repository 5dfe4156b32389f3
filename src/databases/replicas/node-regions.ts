import type { Incarnation } from '../../cluster/index.js'
import type { ReplicasDeps } from './deps.js'

/** Nodes whose region is not known are asked again after this time. */
const ASK_EVERY_MS = 1_000

/** Which nodes serve clients of which region. A node never changes its region. */
export class NodeRegions {
  readonly #deps: Pick<ReplicasDeps, 'cluster' | 'placement' | 'logger'>
  /** By incarnation; undefined: the node serves all regions. */
  readonly #regions = new Map<Incarnation, string | undefined>()
  /** Nodes that have announced that they begin, perhaps before they were seen in the store. */
  readonly #joined = new Set<Incarnation>()
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(deps: Pick<ReplicasDeps, 'cluster' | 'placement' | 'logger'>) {
    this.#deps = deps
  }

  joined(incarnation: Incarnation): void {
    this.#joined.add(incarnation)
  }

  gone(incarnation: Incarnation): void {
    this.#regions.delete(incarnation)
    this.#joined.delete(incarnation)
  }

  /** The other nodes that clients of a region may use. Undefined while the region of some node is not known. */
  siblingsIn(region: string, incarnation: Incarnation | undefined): readonly Incarnation[] | undefined {
    const peers = this.#deps.cluster.peers.map((peer) => peer.incarnation)
    const others = [...new Set([...peers, ...this.#joined])].filter((one) => one !== incarnation)
    if (others.some((one) => !this.#regions.has(one))) return undefined
    return others.filter((one) => (this.#regions.get(one) ?? region) === region)
  }

  /** Asks for the regions of nodes whose region is not known, without waiting for the answers. */
  look(): void {
    const { cluster, placement, logger } = this.#deps
    const isKnown = cluster.peers.every(({ incarnation }) => this.#regions.has(incarnation))
    if (isKnown || performance.now() - this.#askedMs < ASK_EVERY_MS) return
    this.#askedMs = performance.now()
    placement
      .regionsOfPeers()
      .then((regions) => {
        for (const [incarnation, region] of regions) this.#regions.set(incarnation, region)
      })
      .catch((error: unknown) => logger.warn('database_regions_not_read', { error }))
  }
}
