import type { Store } from '../store/index.js'
import { DeathWatch, type Look } from './membership.js'
import * as nodeRows from './transactions/cluster-nodes.js'
import type { Incarnation } from './types.js'

/** Declares nodes dead that have stopped beating. */
export class DeathDetector {
  readonly #store: Store
  readonly #watch = new DeathWatch()
  readonly #onDeath: (incarnation: Incarnation) => void

  /** @param onDeath called when this node has declared an incarnation dead. */
  constructor(store: Store, onDeath: (incarnation: Incarnation) => void = () => undefined) {
    this.#store = store
    this.#onDeath = onDeath
  }

  /** A look has failed. */
  lookFailed(): void {
    this.#watch.lookFailed()
  }

  /** Evaluates a look, and declares dead the lives that have been silent for too long. */
  async examine(look: Look): Promise<void> {
    for (const { incarnation, beat } of this.#watch.examine(look))
      if (await this.#store.run(nodeRows.declareDead, { incarnation, beat })) this.#onDeath(incarnation)
  }
}
