import type { EngineLink } from '../engine/engine-link.js'
import type { ReplicaWatch } from './replica-watch.js'

/** The state of a database that one user has seen; shared by all connections and requests of that user. */
export interface SeenMoment {
  /** The latest moment of the primary that the user may have seen. */
  moment: number
}

/** The other nodes of the region, through which clients may reach the primary past this node. */
export interface SiblingQuery {
  /** Asks these nodes what their clients have seen, and notes it. Resolves to false when that is not known. */
  ask(): Promise<boolean>
}

/** The collaborators of a lane. */
export interface ReplicaLaneDeps {
  readonly watch: ReplicaWatch
  readonly seen: SeenMoment
  readonly link: () => EngineLink
  /** Undefined: all clients of the region use this node. */
  readonly others: SiblingQuery | undefined
}

/**
 * One user's lane to the replica in this node's region.
 *
 * A user has seen every answer of the primary, to a write or a read. No read of this user may return an older state: it
 * reads its own writes, and never goes back in time.
 */
export class ReplicaLane {
  readonly watch: ReplicaWatch
  readonly #seen: SeenMoment
  readonly #link: () => EngineLink
  readonly #others: SiblingQuery | undefined

  constructor({ watch, seen, link, others }: ReplicaLaneDeps) {
    this.watch = watch
    this.#seen = seen
    this.#link = link
    this.#others = others
  }

  /** The connection to the replica. It must only carry commands that are `isReadable`. */
  get link(): EngineLink {
    return this.#link()
  }

  /** The latest moment that the user has seen. */
  get moment(): number {
    return this.#seen.moment
  }

  /** Whether a read of the user may go to the replica at once. */
  get isOpen(): boolean {
    return this.#others === undefined && this.hasSeen
  }

  /** Whether the replica has what the user is known to have seen. */
  get hasSeen(): boolean {
    return this.watch.has(this.#seen.moment)
  }

  /** Records that the primary has just answered the user. */
  sawPrimary(): void {
    this.#seen.moment = this.watch.now
  }

  /**
   * Waits briefly until the replica has everything that the user has seen, and the state at `moment`. A moment in the future
   * means the present. Without a moment, it first asks the other ways to the primary. Resolves to whether the replica has
   * that state.
   */
  async until(moment = 0): Promise<boolean> {
    if (moment === 0 && this.#others && !(await this.#others.ask())) return false
    return this.watch.until(Math.max(this.#seen.moment, Math.min(moment, this.watch.now)))
  }
}
