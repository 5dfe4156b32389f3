import type { EngineLink } from '../engine/engine-link.js'
import type { ReplicaWatch } from './replica-watch.js'

/** What one user of a database has seen; shared by all connections and requests of that user. */
export interface Sight {
  /** The latest moment of the primary of which the user may know anything. */
  moment: number
}

/**
 * The way of one user of a database to the replica in this node's region.
 *
 * Whatever the user gets from the primary, a write's reply or a read's, it knows from then on, and no read of it may
 * answer with less: it sees its own writes, and never goes back in time.
 */
export class ReplicaLane {
  readonly watch: ReplicaWatch
  readonly #sight: Sight
  readonly #link: () => EngineLink

  constructor(watch: ReplicaWatch, sight: Sight, link: () => EngineLink) {
    this.watch = watch
    this.#sight = sight
    this.#link = link
  }

  /** The connection to the replica; it must only carry what `isReadable`. */
  get link(): EngineLink {
    return this.#link()
  }

  /** What the user has seen, as a moment of the watch. */
  get moment(): number {
    return this.#sight.moment
  }

  /** Whether a read of the user may go to the replica at once. */
  get isOpen(): boolean {
    return this.watch.has(this.#sight.moment)
  }

  /** The user has just been answered by the primary. */
  sawPrimary(): void {
    this.#sight.moment = this.watch.now
  }

  /**
   * Waits a little until the replica has what the user has seen, and what there was at `moment`; answers whether it has.
   * A moment that is yet to come stands for the present one.
   */
  until(moment = 0): Promise<boolean> {
    return this.watch.until(Math.max(this.#sight.moment, Math.min(moment, this.watch.now)))
  }
}
