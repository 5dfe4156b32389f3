import type { Backups } from './backups/index.js'
import type { DatabasesDeps } from './deps.js'
import { type DesiredEngines, engineSpecOf, regionOf } from './desired-engine.js'
import type { Homes } from './homes.js'
import { abandonChange, type DatabaseRow, everyRow, finishDeletion, recoveryOf, undoCreation } from './lifecycle.js'
import type { Quarantine } from './quarantine/index.js'
import type { Recovery } from './recovery.js'

/** What `StartUp` is built from. */
export interface StartUpDeps extends Pick<DatabasesDeps, 'store' | 'fleet' | 'plans' | 'settings'> {
  readonly homes: Homes
  readonly recovery: Recovery
  readonly backups: Backups
  readonly quarantine: Quarantine
  readonly engines: Pick<DesiredEngines, 'block'>
}

/**
 * Brings the rows of the store and the files of this node together, before any database is served:
 *
 * 1. Files of databases that other nodes have taken over are set aside.
 * 2. Databases that a server made when it was alone are adopted, if their data is here.
 * 3. A store that does not fit the files is refused, before any of its rows decides what is deleted.
 * 4. Restores in progress are undone or completed; then creations, deletions and changes.
 * 5. Files that no row knows go to quarantine.
 */
export class StartUp {
  readonly #deps: StartUpDeps

  constructor(deps: StartUpDeps) {
    this.#deps = deps
  }

  /** Resolves to the rows that this node serves. Wakes none of them. */
  async run(): Promise<readonly DatabaseRow[]> {
    const { store, fleet, settings, homes, recovery, backups, quarantine, engines } = this.#deps
    const stored = await everyRow(store)
    await recovery.setAside(stored)
    const here = stored.filter((row) => homes.isHere(row))
    const onDisk = await fleet.collectOrphans(new Set(here.map((row) => row.database_id)))
    const before = await homes.adopt(stored, onDisk)
    const known = new Set(before.map((row) => row.database_id))
    // Data of a database that another node serves may be there after this node was given another name. It stays.
    const databaseIds = onDisk.filter((databaseId) => !known.has(databaseId))
    quarantine.check({ databaseIds, backups: [], known: before.length })
    const blocked = await backups.recover()
    engines.block(blocked)
    const rows = (await everyRow(store, settings.node ? [] : stored)).filter((row) => homes.isHere(row))
    const disowned = (await Promise.all(rows.map((row) => this.#recover(row)))).flat()
    // A restore that could not be completed still needs its files.
    const unknown = blocked.size === 0 ? await backups.unknownFiles() : []
    await quarantine.start({ databaseIds: [...databaseIds, ...disowned], backups: unknown, known: rows.length })
    return rows.filter((row) => recoveryOf(row) === 'serve')
  }

  /**
   * Rolls back or completes what a crash interrupted.
   * @returns the id of the database if its files stay although its row is gone.
   */
  async #recover(row: DatabaseRow): Promise<readonly string[]> {
    const { store, fleet, backups } = this.#deps
    const { database_id: databaseId } = row
    switch (recoveryOf(row)) {
      case 'undo-creation': {
        // No client knows a database that is being created. If a client has written to it, the store has lost later
        // commits.
        const isKnown = await fleet.wasWritten(databaseId)
        if (!isKnown) await fleet.remove(databaseId)
        await undoCreation(store, databaseId)
        return isKnown ? [databaseId] : []
      }
      case 'finish-deletion':
        await fleet.remove(databaseId)
        await backups.removeAll(databaseId)
        await finishDeletion(store, databaseId)
        return []
      case 'serve':
        // Before the change is abandoned: if this start crashes too, the next one must repeat it.
        if (row.modifying_state === 'updating_regions') await this.#deleteStrayMembers(row)
        await abandonChange(store, row)
        return []
    }
  }

  #deleteStrayMembers(row: DatabaseRow): Promise<void> {
    const { fleet, plans, settings } = this.#deps
    return fleet.deleteStrayMembers(engineSpecOf(row, plans, regionOf(settings)))
  }
}
