import { type Clock, unreachable } from '../../base/index.js'
import { missingCommand } from '../commands/command-table.js'
import type { DataAccess, DatabaseLookup, GatewayLogger, RegionReplica, ReplicasHere, ServedDatabase } from '../deps.js'
import { DEFAULT_MAX_REQUEST_BYTES } from '../deps.js'
import { type LaneKey, Lanes } from '../engine/lanes.js'
import type { ReplyLimits } from '../engine/reply-gate.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import type { ReplicaLane } from './replica-lane.js'

/** The collaborators of the reads of replicas here. */
export interface ReadsHereOptions {
  readonly replicas: ReplicasHere
  readonly clock: Clock
  readonly logger: GatewayLogger
}

/** The name of this node's region in the endpoints of replicas that it keeps. */
const HERE = 'here'

/**
 * Reads of databases whose home is another node, from replicas that this node keeps. The node sees every command that its
 * clients send to such a database, so it knows what each user has seen, as for a database of its own. It asks the home for
 * the replication position of the primary. The home answers everything that the replica cannot.
 */
export class ReadsHere {
  readonly #replicas: ReplicasHere
  readonly #lanes: Lanes
  readonly #served = new Map<string, ServedDatabase>()
  readonly #unsubscribe: () => void

  constructor({ replicas, clock, logger }: ReadsHereOptions) {
    this.#replicas = replicas
    this.#lanes = new Lanes({
      clock,
      logger,
      directory: replicas.directory,
      fleet: {
        endpoints: async (databaseId, signal) =>
          (await replicas.endpoints(databaseId, signal)).map(({ socketPath }) => ({
            role: 'replica',
            region: HERE,
            socketPath,
          })),
      },
      settings: { region: HERE },
      primaryPosition: (databaseId) => replicas.primaryPosition(databaseId),
      siblings: replicas,
      // When the home no longer allows reads, replies that arrive are dropped, and the home answers these reads.
      home: { mayServe: (databaseId) => replicas.mayRead(databaseId), confirm: () => undefined },
      replyLimits: (databaseId) => this.#limitsOf(databaseId),
    })
    this.#unsubscribe = replicas.directory.onChange((databaseId) => this.#changed(databaseId))
  }

  close(): void {
    this.#unsubscribe()
    this.#lanes.close()
  }

  /** The database and user of a REST token, if this node keeps a replica of it. */
  byToken(token: string): DataAccess | undefined {
    return this.#replicas.directory.byRestToken(token)
  }

  /** The limits of a database; undefined when this node keeps no replica of it. */
  find(databaseId: string): ServedDatabase | undefined {
    return this.#replicas.directory.find(databaseId)
  }

  /** The lane of a user to the replica; undefined when this node keeps none. */
  lane(key: LaneKey): ReplicaLane | undefined {
    return this.find(key.databaseId) && this.#lanes.replica(key)
  }

  /**
   * Call it before an answer of the home is passed to a client whose user is not known: every user of the database may then
   * have seen it, here or at the node of the region that keeps the replica.
   */
  sawPrimary(by: DatabaseLookup): void {
    this.countForwarded(by)
    const databaseId = this.#databaseOf(by)
    if (databaseId !== undefined) this.#lanes.sawPrimary(databaseId)
  }

  /** Call it instead of `sawPrimary` for a client whose user the caller knows and notes on its lane. */
  countForwarded(by: DatabaseLookup): void {
    this.#replicas.countForwarded(by)
  }

  /** See `SiblingNodes`. */
  replicaInRegion(by: DatabaseLookup): RegionReplica | undefined {
    return this.#replicas.replicaInRegion(by)
  }

  #databaseOf(by: DatabaseLookup): string | undefined {
    switch (by.kind) {
      case 'port':
        return by.databaseId
      case 'token':
        return this.byToken(by.token)?.database.databaseId
      case 'name':
        return [...this.#served.values()].find(({ serverName }) => serverName === by.serverName)?.databaseId
      default:
        return unreachable(by)
    }
  }

  /** Whether the home allows reads now. */
  mayRead(databaseId: string): boolean {
    return this.#replicas.mayRead(databaseId)
  }

  /** See `ReplicasHere`. */
  take(databaseId: string, count: number, seen: 'node' | 'token'): boolean {
    return this.#replicas.take(databaseId, count, seen)
  }

  /** Counts commands that were taken, by name, and bytes from and to the client. */
  note(databaseId: string, commands: readonly string[], bytesIn: number, bytesOut: number): void {
    this.#replicas.note(databaseId, commands, bytesIn, bytesOut)
  }

  #limitsOf(databaseId: string): ReplyLimits {
    const most = (): number => this.find(databaseId)?.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES
    return {
      get maxReplyBytes() {
        return most()
      },
      reword: (error) => {
        const ours = missingCommand(error)
        return ours && encodeError(errorText(ours))
      },
    }
  }

  /** Closes connections whose credentials have changed. Their reads go to the home. */
  #changed(databaseId: string): void {
    const before = this.#served.get(databaseId)
    const now = this.find(databaseId)
    if (now) this.#served.set(databaseId, now)
    else this.#served.delete(databaseId)
    if (!now || (before && before.loginEpoch !== now.loginEpoch)) this.#lanes.forget(databaseId)
    const { userMarks: past = {} } = before ?? {}
    for (const [user, mark] of Object.entries(past)) {
      if (now && now.userMarks?.[user] !== mark) this.#lanes.forgetUser(databaseId, user)
    }
  }
}
