import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { StoreMeter } from '../telemetry/index.js'
import type { StoreDamage } from './damage.js'
import { openSqliteStore } from './sqlite/store.js'
import type { Store, StoreSharing } from './types.js'

/** Settings of a store. */
export interface StoreSettings {
  /** `sqlite` for a file in `dataDir`, or a `postgres://` URL. */
  readonly location: string
  /** Directory of the SQLite file; must exist. */
  readonly dataDir: string
  /**
   * URLs of sources with more transactions than `src/transactions.ts`, which store threads load as well. Only for tests and
   * benchmarks.
   */
  readonly modules?: readonly string[]
  /** Who else may use the store. Default: nobody. */
  readonly sharing?: StoreSharing
  /** Called when an open store has failed for good. Acknowledged writes are safe. */
  readonly onFailure: (error: Error) => void
  /** Called whenever damaged data is found. Default: only the caller that read it gets an error. */
  readonly onDamage?: (damage: StoreDamage) => void
  /** Called whenever PostgreSQL has refused a write because its disk is full. */
  readonly onFull?: () => void
  /** Called regularly with the time by which PostgreSQL's clock is ahead of this machine's, and whether that is too much. */
  readonly onClock?: (aheadMs: number, isTooFar: boolean) => void
  /** Counts transactions, for metrics. */
  readonly meter?: StoreMeter
}

/** Path of the SQLite store in a data directory. */
export const sqliteFileIn = (dataDir: string): string => join(dataDir, 'homeport.sqlite')

/** Whether a data directory has a non-empty SQLite store; data may be only in its write-ahead log. */
export async function hasSqliteStore(dataDir: string): Promise<boolean> {
  const path = sqliteFileIn(dataDir)
  const sizes = await Promise.all(
    [path, `${path}-wal`].map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.some((size) => size > 0)
}

/**
 * Opens the store of the settings and migrates its schema.
 * @throws HomeportError `store_not_opened`, `store_in_use`, `nodes_too_old`, `store_newer`, `store_clock_differs` or
 * `store_full`.
 */
export async function openStore(settings: StoreSettings): Promise<Store> {
  const { onFailure, onDamage = () => undefined, onFull, onClock, meter } = settings
  const more = { ...(onFull && { onFull }), ...(onClock && { onClock }), ...(meter && { meter }) }
  const watch = { onFailure, onDamage, ...more }
  if (settings.location === 'sqlite') {
    return openSqliteStore(sqliteFileIn(settings.dataDir), settings.modules ?? [], watch)
  }
  // Loaded only when needed: with its driver, it would take 3 % of the start of a server on SQLite.
  const { openPostgresStore } = await import('./postgres/store.js')
  return openPostgresStore(settings.location, watch, settings.sharing ?? 'alone')
}
