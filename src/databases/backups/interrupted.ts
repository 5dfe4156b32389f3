import * as backups from '../transactions/backups.js'
import { type BackupCreation, reasonOf } from './creation.js'
import type { BackupDeps } from './deps.js'
import type { Jobs } from './jobs.js'

/** What `InterruptedBackups` is built from. */
export interface InterruptedDeps
  extends Pick<BackupDeps, 'store' | 'files' | 'home' | 'stopping' | 'logger' | 'quarantine'> {
  readonly creation: Pick<BackupCreation, 'finish' | 'figures'>
  readonly jobs: Pick<Jobs, 'run'>
}

/**
 * Backups that the store has as pending when a server starts, and whose file exists.
 *
 * Either the last server ended while it checked the file, or the store has lost the commit that completed the backup. In the
 * second case, the file of a safety backup may be the only copy of the data before a restore. So the start does not delete
 * such files. It checks them again, without evidence of the database at the snapshot, and completes the backups. Their
 * databases are `backing_up` until then. A file that does not pass goes to quarantine: it may be the only copy, and the
 * failure may be the machine's.
 *
 * Imports are not completed: their files hold foreign data, which the client still has.
 */
export class InterruptedBackups {
  readonly #deps: InterruptedDeps
  #found: readonly backups.BackupRow[] = []

  constructor(deps: InterruptedDeps) {
    this.#deps = deps
  }

  /** Finds the backups to complete. @returns their ids. */
  async find(): Promise<string[]> {
    const { store, files, home } = this.#deps
    const pending = await store.run(backups.pendingSnapshots, { home })
    const exists = await Promise.all(pending.map((row) => files.mayHave(row)))
    this.#found = pending.filter((_, i) => exists[i])
    return this.#found.map(({ backup_id }) => backup_id)
  }

  /**
   * Completes the backups found by `find`, one after the other. A backup fails when its file does not pass, and the file
   * goes to quarantine. Never rejects.
   */
  async complete(): Promise<void> {
    const { jobs, stopping, logger } = this.#deps
    for (const row of this.#found) {
      if (stopping.aborted) return
      await jobs
        .run(row.database_id, 'backup', () => this.#complete(row))
        .catch((error: unknown) => logger.error('backup_failed', { error, backupId: row.backup_id }))
    }
  }

  async #complete(row: backups.BackupRow): Promise<void> {
    const { store, creation, home } = this.#deps
    const pending = await store.run(backups.pendingSnapshots, { home })
    // The start may have completed the deletion of its database.
    if (!pending.some(({ backup_id }) => backup_id === row.backup_id)) return
    const result = await creation.figures(row).then(
      (figures) => ({ kind: 'completed', ...figures }) as const,
      (error: unknown) => this.#failed(row, error),
    )
    await creation.finish(row, result)
  }

  /** Moves the file away before the row says `failed`: a start deletes the files of failed backups. */
  async #failed(row: backups.BackupRow, error: unknown): Promise<backups.BackupResult> {
    const { stopping, logger, quarantine } = this.#deps
    // The stop ended the check. The row stays pending, and the next start checks the file again.
    if (stopping.aborted) throw error
    logger.error('backup_failed', { error, backupId: row.backup_id })
    const id = await quarantine.keepBackup(row, `A start could not complete this backup: ${reasonOf(error)}`)
    return { kind: 'failed', failure: `${reasonOf(error)} (its file is in quarantine, entry ${id})` }
  }
}
