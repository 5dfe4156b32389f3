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
  for (const taken of await deps.store.run(recoveries.takenFrom, { from: deps.node })) {
    await settle(deps, taken, isElsewhere(taken.database_id))
  }
}

/** The same for one database that another node serves. */
export async function setAsideOne(deps: SetAsideDeps, databaseId: string): Promise<void> {
  const taken = await deps.store.run(recoveries.takenFrom, { from: deps.node })
  for (const one of taken) if (one.database_id === databaseId) await settle(deps, one, true)
}

async function settle(deps: SetAsideDeps, taken: recoveries.TakenHome, isElsewhere: boolean): Promise<void> {
  const { database_id: databaseId, taken_at: at } = taken
  if (isElsewhere) await keepFiles(deps, databaseId, at)
  await deps.store.run(recoveries.forgetTaken, { databaseId, from: deps.node, at })
}

async function keepFiles({ dataDir, logger }: SetAsideDeps, databaseId: string, at: number): Promise<void> {
  const path = join(dataDir, 'databases', databaseId)
  if ((await stat(path).catch(() => undefined)) === undefined) return
  const kept = join('set-aside', `${databaseId}-${at}`)
  await mkdir(join(dataDir, 'set-aside'), { recursive: true, mode: 0o700 })
  await rename(path, join(dataDir, kept))
  logger.warn('engine_data_quarantined', { databaseId, kept })
}
