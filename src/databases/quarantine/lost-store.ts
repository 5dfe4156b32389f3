import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { hasSqliteStore } from '../../store/index.js'

/**
 * Looks before the store is opened, which would make a new one: a data directory with databases has a store.
 * @throws HomeportError `store_missing`, unless the operator has said that a new one is to be made.
 */
export async function refuseLostStore(config: Pick<Config, 'dataDir' | 'store' | 'acceptUnknownData'>): Promise<void> {
  if (config.store.kind !== 'sqlite' || config.acceptUnknownData === 'quarantine') return
  const databases = await readdir(join(config.dataDir, 'databases')).catch(() => [])
  if (databases.length === 0 || (await hasSqliteStore(config.dataDir))) return
  throw new HomeportError('store_missing', { directory: config.dataDir, databases: databases.length })
}
