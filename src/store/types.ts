import type { StoreMeter } from '../telemetry/index.js'
import type { StoreDamage } from './damage.js'
import type { Operation } from './operation.js'

/** Callbacks for failures of an open store. */
export interface StoreWatch {
  /** Called once, when the store has failed for good. Acknowledged writes are safe. */
  readonly onFailure: (error: Error) => void
  /** Called whenever damaged data is found. The caller that read it gets `store_damaged`; everything else continues. */
  readonly onDamage: (damage: StoreDamage) => void
  /** Called whenever PostgreSQL has refused a write because its disk is full; the caller gets `store_full`. */
  readonly onFull?: () => void
  /** Called regularly with the time by which PostgreSQL's clock is ahead of this machine's, and whether that is too much. */
  readonly onClock?: (aheadMs: number, isTooFar: boolean) => void
  /** Counts transactions, for metrics. */
  readonly meter?: StoreMeter
}

/**
 * Who else may use a PostgreSQL store. `alone`: nobody. `cluster`: the nodes of a cluster. `cluster upkeep`: the nodes of a
 * cluster, over a few separate connections, so that a node's beats never wait behind its other work. SQLite: always `alone`.
 */
export type StoreSharing = 'alone' | 'cluster' | 'cluster upkeep'

/** The durable state of the server. */
export interface Store {
  /**
   * Runs a transaction. A write resolves when its commit is on disk; if it rejects, nothing has changed.
   * @throws HomeportError the refusal of the transaction, or `store_full`, `store_unavailable`, `store_damaged`,
   * `store_outcome_unknown`.
   */
  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result>
  /**
   * Resolves when all operations that run now have ended. A row that a read has seen may be of a commit whose caller is
   * not notified yet; after this it is.
   */
  settled(): Promise<void>
  /**
   * Calls `listener` after each `store_outcome_unknown`: the changes of the commit may be in the store, but are not in
   * memory. Also calls it when another PostgreSQL server has taken over, which may lack commits that are in memory. Returns
   * a function that unsubscribes.
   */
  onLostCommit(listener: () => void): () => void
  /**
   * Whether this process has just used the store for much work besides large jobs, which should slow down then. Absent where
   * the store itself runs other operations before the batches of jobs.
   */
  isUsedByOthers?(): boolean
  /**
   * Binds all further transactions to one incarnation of a node. When that incarnation is declared dead
   * (`endConnectionsOf`), transactions that have not committed never will, and calls reject with `store_unavailable`. Absent
   * where only one server uses the store.
   */
  actFor?(incarnation: number): void
  /** For `doctor` and `/health`; contains no secret. */
  describe(): StoreDescription
  /** Finishes pending operations and closes. */
  close(): Promise<void>
}

/** The database of a store and the durability of its commits. */
export interface StoreDescription {
  readonly kind: 'sqlite' | 'postgres'
  readonly durability: string
}
