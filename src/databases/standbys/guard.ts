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
  /** Whether it may take over, as the store says. */
  readonly mayTake: boolean
}

/** What the nodes of the standbys of a database have promised. */
type Promises = ReadonlyMap<string, Tenure>

/**
 * Whether the home may serve a database that another node may take over.
 *
 * The home may serve while it is certain that no other node has taken over: while this node takes part in the cluster, or
 * for 4 s after it has sent a question that each standby that may take over has answered with a promise not to. A standby
 * takes over 5 s after its own last promise at the earliest, and only from a node that was declared dead. So a database
 * with standbys outlives an outage of PostgreSQL, and a node that was paused or cut off acknowledges nothing any more when
 * the next home begins.
 */
export class Guard {
  readonly #cluster: Pick<Cluster, 'mayAct'>
  readonly #clock: Clock
  /** The databases that may be taken over; undefined until they are known. */
  #guarded: ReadonlyMap<string, Promises> | undefined
  /** Standbys that the store may record as complete, now or later, by `keyOf`. */
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
   * Called when the store was read: no other standbys of databases of this node may take over. A node that may be dead
   * ignores this: a standby that is missing may have taken over while the node was paused.
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
   * Called before the store records that a standby is complete: the standby may take over from now on. As long as the
   * standbys are not known, all databases count as guarded anyway.
   */
  begin(member: Member): void {
    this.#unsettled = new Set(this.#unsettled).add(keyOf(member))
    const { databaseId, node } = member
    const promises = this.#guarded?.get(databaseId)
    if (!this.#guarded || promises?.has(node)) return
    this.#guarded = new Map(this.#guarded).set(databaseId, new Map(promises).set(node, new Tenure()))
  }

  /**
   * Called when the store has confirmed a note about a standby, so that rows read later say whether it may take over. A
   * commit without an answer may still happen; the next note about the same standby comes after it.
   */
  settled(member: Member): void {
    this.#unsettled = new Set([...this.#unsettled].filter((key) => key !== keyOf(member)))
  }

  /** Notes that the node of a standby has promised not to take over. @param sent when the node was asked. */
  promised({ databaseId, node }: Member, sent: Moment): void {
    this.#guarded?.get(databaseId)?.get(node)?.beaten(sent)
  }
}

const keyOf = ({ databaseId, node }: Member): string => `${databaseId}/${node}`
