import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { Evidence } from '../../fleet/index.js'
import * as backups from '../transactions/backups.js'
import { type BackupDeps, untilDone } from './deps.js'

type BackupRow = backups.BackupRow
type NewBackup = backups.NewBackup
type Figures = Omit<Extract<backups.BackupResult, { kind: 'completed' }>, 'kind'>

/** Brings a pending backup to its end: completed or failed, and the row says which. */
export class BackupCreation {
  readonly #deps: BackupDeps

  constructor(deps: BackupDeps) {
    this.#deps = deps
  }

  /** Takes a snapshot of the backup's database and checks it. Rejects when it fails; then its row says so. */
  make(backup: NewBackup): Promise<BackupRow> {
    return this.settle(backup, async () => {
      const { fleet, files, sleep } = this.#deps
      const file = await files.prepare(backup)
      sleep.wake(backup.database_id)
      await fleet.endpoints(backup.database_id, undefined, 'while-loading')
      const evidence = await fleet.takeSnapshot(backup.database_id, file)
      return this.figures(backup, evidence).catch(asFailedSnapshot)
    })
  }

  /** Loads the file of a backup in an engine of its own and answers what is to be known of it. */
  async figures(backup: NewBackup, evidence?: Evidence): Promise<Figures> {
    const { fleet, files } = this.#deps
    const { keys: keyCount, dataBytes } = await fleet.checkSnapshot(files.path(backup), evidence)
    return { ...(await files.facts(backup)), keyCount, dataBytes }
  }

  /** Writes down how `work` ends. A backup that failed has no file. */
  async settle(backup: NewBackup, work: () => Promise<Figures>): Promise<BackupRow> {
    try {
      return await this.#finish(backup, { kind: 'completed', ...(await work()) })
    } catch (error) {
      this.#deps.logger.error({ error, backupId: backup.backup_id }, 'a backup has failed')
      await this.#deps.files.remove(backup)
      await this.#finish(backup, { kind: 'failed', failure: reasonOf(error) })
      throw error
    }
  }

  async #finish(
    { backup_id: backupId, database_id: databaseId }: NewBackup,
    result: backups.BackupResult,
  ): Promise<BackupRow> {
    const { store, clock } = this.#deps
    const finished = { backupId, result, at: clock.now() }
    const row = await untilDone(this.#deps, databaseId, () => store.run(backups.finish, finished))
    if (!row) throw new HomeportError('backup_not_found', { backupId })
    return row
  }
}

/** What people may read of an error: those of the catalogue are worded for them. */
export function reasonOf(error: unknown): string {
  return error instanceof HomeportError ? error.message : 'something went wrong on our side; the log has the details'
}

/** A snapshot that we took ourselves is nobody else's fault. */
function asFailedSnapshot(error: unknown): never {
  if (!isError(error, 'snapshot_unusable')) throw error
  throw new HomeportError('snapshot_failed', { reason: error.message }, { cause: error })
}
