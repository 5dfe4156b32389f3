/** The files of databases that other nodes have taken over from this one. */
import { mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChangeDeps } from './deps.js'
import * as recoveries from './transactions/recoveries.js'

/** What `setAside` needs. */
export interface SetAsideDeps extends Pick<ChangeDeps, 'store' | 'dataDir' | 'logger'> {
  /** The name of this node. */
  readonly node: string
}

/**
 * Moves the files of databases that others have taken over from this node out of the way, once for each time: what is there
 * later is a copy of the new home. No engine may use the files.
 * @param isElsewhere whether another node is the home of a database now; one that has come back is served from its files.
 */
export async function setAside(deps: SetAsideDeps, isElsewhere: (databaseId: string) => boolean): Promise<void> {
  const { store, node } = deps
  for (const { database_id: databaseId, taken_at: at } of await store.run(recoveries.takenFrom, { from: node })) {
    if (isElsewhere(databaseId)) await keepFiles(deps, databaseId, at)
    await store.run(recoveries.forgetTaken, { databaseId, from: node, at })
  }
}

/** The same for one database that another node serves. */
export async function setAsideOne(deps: SetAsideDeps, databaseId: string): Promise<void> {
  const { store, node } = deps
  const taken = (await store.run(recoveries.takenFrom, { from: node })).find((one) => one.database_id === databaseId)
  if (!taken) return
  await keepFiles(deps, databaseId, taken.taken_at)
  await store.run(recoveries.forgetTaken, { databaseId, from: node, at: taken.taken_at })
}

async function keepFiles({ dataDir, logger }: SetAsideDeps, databaseId: string, at: number): Promise<void> {
  const path = join(dataDir, 'databases', databaseId)
  if ((await stat(path).catch(() => undefined)) === undefined) return
  const kept = join('set-aside', `${databaseId}-${at}`)
  await mkdir(join(dataDir, 'set-aside'), { recursive: true, mode: 0o700 })
  await rename(path, join(dataDir, kept))
  logger.warn('engine_data_quarantined', { databaseId, kept })
}
