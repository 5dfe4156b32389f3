import type { Clock } from '../../base/index.js'
import { type Cluster, type Moment, Tenure } from '../../cluster/index.js'

/** A standby that may take its database over. */
export interface Member {
  readonly databaseId: string
  /** The node that keeps it, by name. */
  readonly node: string
}

/** A standby as it was read from the store. */
export interface StoredMember extends Member {
  /** Whether it may take over, by what is stored. */
  readonly mayTake: boolean
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
  /** Standbys of which the store may hear that they are complete, or may have heard, by `keyOf`. */
  #unsettled: ReadonlySet<string> = new Set()

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
   * The store was read: of the standbys of databases of this node, no others may take over. A node that may be dead learns
   * nothing by this: what is missing may have been taken over while it was paused.
   */
  read(members: readonly StoredMember[]): void {
    if (!this.#cluster.mayAct()) return
    this.#unsettled = new Set(members.map(keyOf).filter((key) => this.#unsettled.has(key)))
    const guarded = new Map<string, Map<string, Tenure>>()
    for (const member of members) {
      if (!member.mayTake && !this.#unsettled.has(keyOf(member))) continue
      const { databaseId, node } = member
      const promises = guarded.get(databaseId) ?? new Map<string, Tenure>()
      guarded.set(databaseId, promises.set(node, this.#guarded?.get(databaseId)?.get(node) ?? new Tenure()))
    }
    this.#guarded = guarded
  }

  /**
   * A standby may take over from now on: called before the store hears that it is complete. Before the others are known, all
   * databases count as guarded anyway.
   */
  begin(member: Member): void {
    this.#unsettled = new Set(this.#unsettled).add(keyOf(member))
    const { databaseId, node } = member
    const promises = this.#guarded?.get(databaseId)
    if (!this.#guarded || promises?.has(node)) return
    this.#guarded = new Map(this.#guarded).set(databaseId, new Map(promises).set(node, new Tenure()))
  }

  /**
   * The store has confirmed a note about a standby, so what is read later says whether it may take over. Without an
   * answer the commit may still be on its way; the next one about the same standby comes after it.
   */
  settled(member: Member): void {
    this.#unsettled = new Set([...this.#unsettled].filter((key) => key !== keyOf(member)))
  }

  /** The node of a standby has promised not to take over. @param sent when it was asked. */
  promised({ databaseId, node }: Member, sent: Moment): void {
    this.#guarded?.get(databaseId)?.get(node)?.beaten(sent)
  }
}

const keyOf = ({ databaseId, node }: Member): string => `${databaseId}/${node}`
