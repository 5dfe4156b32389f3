import { HomeportError } from '../../contract/errors/errors.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as backupObjects from '../transactions/backup-objects.js'
import * as backups from '../transactions/backups.js'
import type { BackupDeps } from './deps.js'
import type { Restores } from './restores.js'
import type { StoredBackups } from './stored/stored.js'

type BackupRow = backups.BackupRow

/** Makes a backup the data of a database that this node takes over, because its node is gone. */
export class RecoveredData {
  readonly #deps: BackupDeps
  readonly #restores: Restores
  readonly #stored: StoredBackups

  constructor(deps: BackupDeps, restores: Restores, stored: StoredBackups) {
    this.#deps = deps
    this.#restores = restores
    this.#stored = stored
  }

  /**
   * A completed backup of a database, by its id; without one, the newest whose file this node has or can get.
   * @throws HomeportError `backup_not_found`, `backup_not_ready`
   */
  async find({ account_id, database_id }: DatabaseRow, backupId: string | undefined): Promise<BackupRow> {
    const { store, files } = this.#deps
    const rows = (await store.run(backups.list, { accountId: account_id, databaseId: database_id })) ?? []
    const objects = await store.run(backupObjects.ofDatabase, { databaseId: database_id })
    const stored = new Set(objects.filter(({ state }) => state === 'stored').map((one) => one.backup_id))
    for (const row of rows) {
      if (row.backup_id === backupId && row.state !== 'completed') {
        throw new HomeportError('backup_not_ready', { state: row.state })
      }
      const isWanted = row.state === 'completed' && (backupId === undefined || row.backup_id === backupId)
      if (isWanted && (stored.has(row.backup_id) || (await files.has(row)))) return row
    }
    throw new HomeportError('backup_not_found', { backupId: backupId ?? 'in object storage' })
  }

  /** Downloads a backup, loads it once as a test and stages it, before the database has its new home. */
  async stage(database: DatabaseRow, backup: BackupRow): Promise<void> {
    const { files, fleet } = this.#deps
    await this.#stored.fetch(backup)
    if ((await files.facts(backup)).sha256 !== backup.sha256) {
      throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
    }
    await fleet.checkSnapshot(files.path(backup))
    await files.stage(backup, database.database_id)
  }

  /** Puts the staged data in place. May be repeated. */
  putInPlace(row: DatabaseRow): Promise<void> {
    return this.#restores.recover(row)
  }
}
