/** The files of databases that other nodes have taken over from this one. */
import { mkdir, readdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { auditRow } from '../accounts/index.js'
import type { NewAuditRow } from '../accounts/transactions/accounts.js'
import { codeOf, type Timer } from '../base/index.js'
import type { ChangeDeps } from './deps.js'
import * as databases from './transactions/databases.js'
import * as recoveries from './transactions/recoveries.js'
import { systemCaller } from './usage/index.js'

/** Below the data directory. */
const SET_ASIDE = 'set-aside'

/** What `setAside` needs. */
export interface SetAsideDeps extends Pick<ChangeDeps, 'store' | 'dataDir' | 'logger' | 'clock'> {
  /** The name of this node. */
  readonly node: string
}

/**
 * Sets aside the files of databases that other nodes have taken over from this one, once for each takeover: files that
 * appear later are a copy of the new home. No engine may use the files.
 * @param isElsewhere whether another node is the home of a database now. If the database has come back, this node serves it
 * from its files.
 */
export async function setAside(deps: SetAsideDeps, isElsewhere: (databaseId: string) => boolean): Promise<void> {
  for (const taken of await deps.store.run(recoveries.takenFrom, { from: deps.node })) {
    await settle(deps, taken, isElsewhere(taken.database_id))
  }
}

/** Like `setAside`, for one database that another node serves. */
export async function setAsideOne(deps: SetAsideDeps, databaseId: string): Promise<void> {
  const taken = await deps.store.run(recoveries.takenFrom, { from: deps.node })
  for (const one of taken) if (one.database_id === databaseId) await settle(deps, one, true)
}

async function settle(deps: SetAsideDeps, taken: recoveries.TakenHome, isElsewhere: boolean): Promise<void> {
  const { database_id: databaseId, taken_at: at } = taken
  const row = isElsewhere ? await keepFiles(deps, databaseId, at) : undefined
  const kept = row && { row, audit: await auditOf(deps, row) }
  await deps.store.run(recoveries.forgetTaken, { databaseId, from: deps.node, at, kept })
}

/** Undefined when there are no files. A process that was killed afterwards may have moved them already. */
async function keepFiles(
  deps: SetAsideDeps,
  databaseId: string,
  at: number,
): Promise<recoveries.SetAsideRow | undefined> {
  const { dataDir, logger, node } = deps
  const [files, path] = [join(dataDir, 'databases', databaseId), join(SET_ASIDE, `${databaseId}-${at}`)]
  await mkdir(join(dataDir, SET_ASIDE), { recursive: true, mode: 0o700 })
  if (await exists(files)) await rename(files, join(dataDir, path))
  else if (!(await exists(join(dataDir, path)))) return undefined
  const bytes = await sizeOf(join(dataDir, path))
  logger.warn('database_files_set_aside', { databaseId, kept: path, bytes })
  return { node, path, database_id: databaseId, size_bytes: bytes, taken_at: at }
}

async function auditOf({ store, clock }: SetAsideDeps, kept: recoveries.SetAsideRow): Promise<NewAuditRow | undefined> {
  const { database_id: entity, node, path, size_bytes: bytes } = kept
  const database = await store.run(databases.find, { databaseId: entity })
  const event = { action: 'Set Aside Database Files', entity, details: { node, path, bytes } } as const
  return database && auditRow(systemCaller(database.account_id), event, clock.now())
}

/** Rejects when the disk gives no answer, so that no row about the files is deleted then. */
async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

async function sizeOf(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

const LOOK_EVERY_MS = 60_000

/** The files that nodes have set aside. Forgets files of this node that somebody has deleted. */
export class SetAsideFiles {
  readonly #deps: SetAsideDeps
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #state: 'running' | 'stopped' = 'stopped'

  constructor(deps: SetAsideDeps) {
    this.#deps = deps
  }

  /** The set-aside files of a database at all nodes, the oldest first. */
  of(databaseId: string): Promise<readonly recoveries.SetAsideRow[]> {
    return this.#deps.store.run(recoveries.setAsideOf, { databaseId })
  }

  start(): void {
    this.#state = 'running'
    this.#looking = this.#look().finally(() => {
      if (this.#state === 'running') this.#timer = this.#deps.clock.after(LOOK_EVERY_MS, () => this.start())
    })
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#looking
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { store, logger, node, dataDir } = this.#deps
    try {
      for (const { path } of await store.run(recoveries.setAsideAt, { node })) {
        if (!(await exists(join(dataDir, path)))) await store.run(recoveries.forgetSetAside, { node, path })
      }
    } catch (error) {
      logger.warn('database_set_aside_not_read', { error })
    }
  }
}
