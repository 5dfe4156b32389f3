import { join } from 'node:path'
import type { StoreDamage } from './damage.js'
import { openPostgresStore } from './postgres/store.js'
import { closeToOthers } from './sqlite/private-file.js'
import { openSqliteStore } from './sqlite/store.js'
import type { Store } from './types.js'

/** Where a store lies and what to do when it breaks. */
export interface StoreSettings {
  /** `sqlite` for a file in the data directory, or a `postgres://` URL. */
  readonly location: string
  /** Holds the SQLite file; must exist. */
  readonly dataDir: string
  /**
   * URLs of sources with operations besides those of `operations/`; store threads load them as well. For tests and
   * benchmarks, which run from sources.
   */
  readonly modules?: readonly string[]
  /** Called when an open store can no longer work; what was acknowledged is safe. */
  readonly onFailure: (error: Error) => void
  /** Called whenever damaged data was met. Omitted: nobody is told but the caller that asked for the data. */
  readonly onDamage?: (damage: StoreDamage) => void
}

/**
 * Opens the store that the settings name, with its schema brought up to date.
 * @throws HomeportError `store_not_opened`, `store_in_use`, `store_newer` or `store_full`.
 */
export async function openStore(settings: StoreSettings): Promise<Store> {
  const { onFailure, onDamage = () => undefined } = settings
  const watch = { onFailure, onDamage }
  if (settings.location !== 'sqlite') return openPostgresStore(settings.location, watch)
  const path = join(settings.dataDir, 'homeport.sqlite')
  closeToOthers(path)
  return openSqliteStore(path, settings.modules ?? [], watch)
}
