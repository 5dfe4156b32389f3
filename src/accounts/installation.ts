import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { readFileIfThere, replaceFile } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import * as accounts from './transactions/accounts.js'

/** The file with the identity of the store that a data directory was first used with. */
const FILE = 'store-id'

/** The identity of the store that a data directory belongs to; undefined before the first start. */
export async function installationOf(dataDir: string): Promise<string | undefined> {
  return (await readFileIfThere(join(dataDir, FILE)))?.trim()
}

/**
 * Checks that a data directory and a store belong together. Databases that the store does not know are moved into
 * quarantine; with a foreign store those would be all databases of the directory.
 *
 * The store's identity is committed before it is written to the directory, so after a crash in between the directory is
 * still unbound.
 * @param foreign what to do when they do not belong together; `take-over` binds the directory to this store.
 * @returns the identity of the store.
 * @throws HomeportError `foreign_data_dir`.
 */
export async function bindDataDir(
  store: Store,
  dataDir: string,
  nowMs: number,
  foreign: 'refuse' | 'take-over' = 'refuse',
): Promise<string> {
  const path = join(dataDir, FILE)
  const remembered = await installationOf(dataDir)
  const installationId = await store.run(accounts.identify, { freshId: randomUUID(), at: nowMs })
  if (remembered === installationId) return installationId
  if (remembered === undefined || foreign === 'take-over') await replaceFile(path, `${installationId}\n`)
  else throw new HomeportError('foreign_data_dir', { directory: dataDir })
  return installationId
}
