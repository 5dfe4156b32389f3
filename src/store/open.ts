import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { StoreDamage } from './damage.js'
import { openPostgresStore } from './postgres/store.js'
import { openSqliteStore } from './sqlite/store.js'
import type { Store } from './types.js'

/** Where a store lies and what to do when it breaks. */
export interface StoreSettings {
  /** `sqlite` for a file in the data directory, or a `postgres://` URL. */
  readonly location: string
  /** Holds the SQLite file; must exist. */
  readonly dataDir: string
  /**
   * URLs of sources with transactions besides those of `src/transactions.ts`; store threads load them as well. For tests and
   * benchmarks, which run from sources.
   */
  readonly modules?: readonly string[]
  /** Called when an open store can no longer work; what was acknowledged is safe. */
  readonly onFailure: (error: Error) => void
  /** Called whenever damaged data was met. Omitted: nobody is told but the caller that asked for the data. */
  readonly onDamage?: (damage: StoreDamage) => void
}

/** The file of the SQLite store of a data directory. */
export const sqliteFileIn = (dataDir: string): string => join(dataDir, 'homeport.sqlite')

/** Whether a data directory holds a SQLite store with anything in it, be it in its write-ahead log only. */
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
 * Opens the store that the settings name, with its schema brought up to date.
 * @throws HomeportError `store_not_opened`, `store_in_use`, `store_newer` or `store_full`.
 */
export async function openStore(settings: StoreSettings): Promise<Store> {
  const { onFailure, onDamage = () => undefined } = settings
  const watch = { onFailure, onDamage }
  if (settings.location !== 'sqlite') return openPostgresStore(settings.location, watch)
  return openSqliteStore(sqliteFileIn(settings.dataDir), settings.modules ?? [], watch)
}
