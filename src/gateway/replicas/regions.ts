import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type DataEndpoint, type DataUser, type EndpointSource, OBSERVER, type SiblingNodes } from '../deps.js'
import type { EngineLink } from '../engine/engine-link.js'
import { askOver, textReply } from '../limits/engine-questions.js'
import { encodeCommand } from '../resp/encode.js'
import { ReplicaLane, type SeenMoment, type SiblingQuery } from './replica-lane.js'
import { type Position, primaryPosition as positionOfPrimary, ReplicaWatch, replicaPosition } from './replica-watch.js'

/** The connections to a replica with the same key are interchangeable. */
export interface ReplicaKey {
  readonly databaseId: string
  readonly user: DataUser
  readonly protocol: 2 | 3
}

/** The collaborators of the regions of a node. */
export interface RegionsOptions {
  /** The region that this node serves. */
  readonly region: string
  readonly fleet: EndpointSource
  /** The shared lane to the primary. */
  readonly primary: (key: ReplicaKey) => EngineLink
  /** The replication position of a primary at another node. Omitted: the engine of the primary is asked. */
  readonly primaryPosition?: ((databaseId: string) => Promise<Position | undefined>) | undefined
  /** The other nodes that clients of the region use. Omitted: there are none. */
  readonly siblings?: SiblingNodes | undefined
  /** The shared lane to the replica. */
  readonly replica: (key: ReplicaKey) => EngineLink
  /** Closes the connections to the replica of a database. */
  readonly drop: (databaseId: string) => void
  readonly clock: Clock
}

interface Known {
  readonly watch: ReplicaWatch
  readonly seenBy: Map<DataUser, SeenMoment>
}

const POSITION = encodeCommand(['INFO', 'replication'])

/** The replicas in this node's region, and what each user of each database has seen. */
export class Regions {
  readonly #options: RegionsOptions
  readonly #known = new Map<string, Known>()

  constructor(options: RegionsOptions) {
    this.#options = options
  }

  /** A user's lane to the replica. Only the first question to the replica shows whether there is one. */
  lane(key: ReplicaKey): ReplicaLane {
    const { watch, seenBy } = this.#of(key.databaseId)
    const known = seenBy.get(key.user)
    // A new user may have seen everything up to now.
    const seen = known ?? { moment: watch.now }
    if (!known) seenBy.set(key.user, seen)
    return new ReplicaLane({ watch, seen, link: () => this.#options.replica(key), others: this.#othersOf(key) })
  }

  #othersOf({ databaseId }: ReplicaKey): SiblingQuery | undefined {
    const { siblings } = this.#options
    if (!siblings || siblings.isOnlyNodeOfRegion(databaseId)) return undefined
    return { ask: () => siblings.askSiblings(databaseId, () => this.sawPrimary(databaseId)) }
  }

  /** Records that the primary has answered a client whose user is unknown: every user of the database may have seen it. */
  sawPrimary(databaseId: string): void {
    const known = this.#known.get(databaseId)
    if (known) for (const seen of known.seenBy.values()) seen.moment = known.watch.now
  }

  /** Records that a connection to the replica of a database is lost. */
  lost(databaseId: string): void {
    this.#known.get(databaseId)?.watch.lost()
  }

  /** Forgets a database whose credentials have changed or that is no longer served. */
  forget(databaseId: string): void {
    this.lost(databaseId)
    this.#known.delete(databaseId)
  }

  /** Picks the replica in this node's region. @throws HomeportError `engine_unavailable` */
  pick(endpoints: readonly DataEndpoint[]): DataEndpoint {
    const found = endpoints.find(({ role, region }) => role === 'replica' && region === this.#options.region)
    if (!found) throw new HomeportError('engine_unavailable', {})
    return found
  }

  #of(databaseId: string): Known {
    const known = this.#known.get(databaseId)
    if (known) return known
    const made = { watch: this.#newWatch(databaseId), seenBy: new Map<DataUser, SeenMoment>() }
    this.#known.set(databaseId, made)
    return made
  }

  #newWatch(databaseId: string): ReplicaWatch {
    const { fleet, primary, replica, drop, clock, primaryPosition } = this.#options
    const key: ReplicaKey = { databaseId, user: OBSERVER, protocol: 2 }
    return new ReplicaWatch({
      clock,
      drop: () => drop(databaseId),
      askPrimary: async () =>
        primaryPosition ? primaryPosition(databaseId) : positionOfPrimary(await infoOf(primary(key))),
      // Checks before it dials: most databases may have no replica here, and a failed dial is logged.
      askReplica: async () => {
        const link = replica(key)
        if (!link.isConnected) this.pick(await fleet.endpoints(databaseId))
        return replicaPosition(await infoOf(link))
      },
    })
  }
}

async function infoOf(link: EngineLink): Promise<string> {
  return textReply(await askOver(link)(POSITION))
}
