import type { EngineLink } from '../engine/engine-link.js'
import type { ReplicaWatch } from './replica-watch.js'

/** What one user of a database has seen; shared by all connections and requests of that user. */
export interface SeenMoment {
  /** The latest moment of the primary that the user may have seen. */
  moment: number
}

/**
 * One user's lane to the replica in this node's region.
 *
 * A user has seen whatever the primary answered, to a write or a read, and none of its reads may return an older state: it
 * reads its own writes, and never goes back in time.
 */
export class ReplicaLane {
  readonly watch: ReplicaWatch
  readonly #seen: SeenMoment
  readonly #link: () => EngineLink

  constructor(watch: ReplicaWatch, seen: SeenMoment, link: () => EngineLink) {
    this.watch = watch
    this.#seen = seen
    this.#link = link
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
    return this.watch.has(this.#seen.moment)
  }

  /** The primary has just answered the user. */
  sawPrimary(): void {
    this.#seen.moment = this.watch.now
  }

  /**
   * Waits briefly until the replica has what the user has seen, and what there was at `moment`. A moment in the future
   * means the present one. Resolves to whether the replica has it.
   */
  until(moment = 0): Promise<boolean> {
    return this.watch.until(Math.max(this.#seen.moment, Math.min(moment, this.watch.now)))
  }
}
