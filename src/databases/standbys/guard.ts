import type { Clock } from '../../base/index.js'
import { type Cluster, type Moment, Tenure } from '../../cluster/index.js'

/** A standby that may take its database over. */
export interface Member {
  readonly databaseId: string
  /** The node that keeps it, by name. */
  readonly node: string
}

/** What the nodes of the standbys of a database have promised. */
type Promises = ReadonlyMap<string, Tenure>

/**
 * Whether the home may serve a database that another node may take over.
 *
 * The home may while it is certain that nobody has taken over: while this node takes part in the cluster, or as long as each
 * standby that may take over has promised not to, until 4 s after the home has sent the question. A standby takes over 5 s after
 * its own last promise at the earliest, and only from a node that was declared dead. So a database with standbys outlives an
 * outage of PostgreSQL, and a node that was paused or cut off acknowledges nothing any more when the next home begins.
 */
export class Guard {
  readonly #cluster: Pick<Cluster, 'mayAct'>
  readonly #clock: Clock
  /** The databases that may be taken over; undefined until they are known. */
  #guarded: ReadonlyMap<string, Promises> | undefined

  constructor(cluster: Pick<Cluster, 'mayAct'>, clock: Clock) {
    this.#cluster = cluster
    this.#clock = clock
  }

  /** Called for each answer of an engine. */
  mayServe(databaseId: string): boolean {
    const promises = this.#guarded?.get(databaseId)
    if (this.#guarded && !promises) return true
    if (this.#cluster.mayAct()) return true
    if (!promises) return false
    const { monotonicMs, wallMs } = this.now()
    for (const promise of promises.values()) if (!promise.mayAct(monotonicMs, wallMs)) return false
    return true
  }

  /** The nodes that may take a database over; undefined until they are known. */
  nodesOf(databaseId: string): readonly string[] | undefined {
    return this.#guarded && [...(this.#guarded.get(databaseId)?.keys() ?? [])]
  }

  now(): Moment {
    return { monotonicMs: performance.now(), wallMs: this.#clock.now() }
  }

  /**
   * The store was read: these standbys of databases of this node may take over, and no others. A node that may be dead learns
   * nothing by this: what is missing may have been taken over while it was paused.
   */
  read(members: readonly Member[]): void {
    if (!this.#cluster.mayAct()) return
    const guarded = new Map<string, Map<string, Tenure>>()
    for (const { databaseId, node } of members) {
      const promises = guarded.get(databaseId) ?? new Map<string, Tenure>()
      guarded.set(databaseId, promises.set(node, this.#guarded?.get(databaseId)?.get(node) ?? new Tenure()))
    }
    this.#guarded = guarded
  }

  /**
   * A standby may take over from now on: called before the store hears that it is complete. Before the others are known, all
   * databases count as guarded anyway.
   */
  begin({ databaseId, node }: Member): void {
    const promises = this.#guarded?.get(databaseId)
    if (!this.#guarded || promises?.has(node)) return
    this.#guarded = new Map(this.#guarded).set(databaseId, new Map(promises).set(node, new Tenure()))
  }

  /** The node of a standby has promised not to take over. @param sent when it was asked. */
  promised({ databaseId, node }: Member, sent: Moment): void {
    this.#guarded?.get(databaseId)?.get(node)?.beaten(sent)
  }
}
