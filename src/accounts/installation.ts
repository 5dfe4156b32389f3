import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { readFileIfThere, replaceFile } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import * as accounts from './transactions/accounts.js'

/** Holds the identity of the store that a data directory was first used with. */
const FILE = 'store-id'

/**
 * Makes sure that a data directory and a store belong together. Files of databases that the store does not know are
 * moved into quarantine; with a foreign store that would be every database of the directory.
 *
 * The store's identity is committed before the directory remembers it, so a crash in between leaves a directory that
 * still belongs to nobody.
 * @param foreign what to do when they do not: the operator may have said that this store is the one from now on.
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
  const remembered = (await readFileIfThere(path))?.trim()
  const installationId = await store.run(accounts.identify, { freshId: randomUUID(), at: nowMs })
  if (remembered === installationId) return installationId
  if (remembered === undefined || foreign === 'take-over') await replaceFile(path, `${installationId}\n`)
  else throw new HomeportError('foreign_data_dir', { directory: dataDir })
  return installationId
}
