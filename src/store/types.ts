import type { StoreDamage } from './damage.js'
import type { Operation } from './operation.js'

/** Who is told of what befalls an open store. */
export interface StoreWatch {
  /** Called once, when the store can never work again; what was acknowledged is safe. */
  readonly onFailure: (error: Error) => void
  /** Called whenever damaged data was met: the caller that asked for it got `store_damaged`, everything else goes on. */
  readonly onDamage: (damage: StoreDamage) => void
}

/** The durable state behind one seam. */
export interface Store {
  /**
   * Runs a named transaction. A writing one resolves when its commit is on disk and rejects with nothing changed.
   * @throws HomeportError whatever the operation refuses with; `store_full` or `store_unavailable` when the store cannot.
   */
  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result>
  /** For `doctor` and `/health`; never holds a secret. */
  describe(): StoreDescription
  /** Finishes what is under way and closes. */
  close(): Promise<void>
}

/** What kind of store this is and what its commits promise. */
export interface StoreDescription {
  readonly kind: 'sqlite' | 'postgres'
  readonly durability: string
}
