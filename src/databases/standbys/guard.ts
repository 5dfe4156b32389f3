import type { Clock } from '../../base/index.js'
import { type Cluster, type Moment, Tenure } from '../../cluster/index.js'

/**
 * Whether the home may serve a database that another node may take over.
 *
 * The home may while it is certain that nobody has taken over: while this node takes part in the cluster, or until 4 s
 * after it has sent a question that the standby's node answered with a promise. The standby takes over 5 s after its last
 * promise at the earliest, and only from a node that was declared dead. So a database with a standby outlives an outage of
 * PostgreSQL, and a node that was paused or cut off acknowledges nothing any more when the next home begins.
 */
export class Guard {
  readonly #cluster: Pick<Cluster, 'mayAct'>
  readonly #clock: Clock
  /** The databases that may be taken over, with what their standbys have promised; undefined until it is known. */
  #guarded: ReadonlyMap<string, Tenure> | undefined

  constructor(cluster: Pick<Cluster, 'mayAct'>, clock: Clock) {
    this.#cluster = cluster
    this.#clock = clock
  }

  /** Called for each answer of an engine. */
  mayServe(databaseId: string): boolean {
    const promise = this.#guarded?.get(databaseId)
    if (this.#guarded && !promise) return true
    if (this.#cluster.mayAct()) return true
    if (!promise) return false
    const { monotonicMs, wallMs } = this.now()
    return promise.mayAct(monotonicMs, wallMs)
  }

  /** Whether another node may take a database over; true until it is known. */
  isGuarded(databaseId: string): boolean {
    return this.#guarded?.has(databaseId) ?? true
  }

  now(): Moment {
    return { monotonicMs: performance.now(), wallMs: this.#clock.now() }
  }

  /**
   * The store was read: these databases of this node may be taken over, and no others. A node that may be dead learns nothing
   * by this: what is missing may have been taken over while it was paused.
   */
  read(databaseIds: readonly string[]): void {
    if (!this.#cluster.mayAct()) return
    this.#guarded = new Map(databaseIds.map((id) => [id, this.#guarded?.get(id) ?? new Tenure()]))
  }

  /** A database may be taken over from now on: called before the store hears that its standby is complete. */
  begin(databaseId: string): void {
    const known = this.#guarded ?? new Map<string, Tenure>()
    if (!known.has(databaseId)) this.#guarded = new Map(known).set(databaseId, new Tenure())
  }

  /** The node of the standby has promised not to take over. @param sent when it was asked. */
  promised(databaseId: string, sent: Moment): void {
    this.#guarded?.get(databaseId)?.beaten(sent)
  }
}
