import * as backups from '../transactions/backups.js'
import type { BackupCreation } from './creation.js'
import type { BackupDeps } from './deps.js'
import type { Jobs } from './jobs.js'

/** What `InterruptedBackups` is built from. */
export interface InterruptedDeps extends Pick<BackupDeps, 'store' | 'files' | 'home' | 'stopping'> {
  readonly creation: Pick<BackupCreation, 'settle' | 'figures'>
  readonly jobs: Pick<Jobs, 'run'>
}

/**
 * Backups that the store has as pending when a server starts, and whose file exists.
 *
 * Either the last server ended while it checked the file, or the store has lost the commit that completed the backup. In the
 * second case, the file of a safety backup may be the only copy of the data before a restore. So the start does not delete
 * such files. It checks them again, without evidence of the database at the snapshot, and completes the backups. Their
 * databases are `backing_up` until then.
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

  /** Completes the backups found by `find`, one after the other. A damaged file makes its backup fail. Never rejects. */
  async complete(): Promise<void> {
    const { jobs, stopping } = this.#deps
    for (const row of this.#found) {
      if (stopping.aborted) return
      // The row has the reason of a failure, and the log too.
      await jobs.run(row.database_id, 'backup', () => this.#complete(row)).catch(() => undefined)
    }
  }

  async #complete(row: backups.BackupRow): Promise<void> {
    const { store, creation, home } = this.#deps
    const pending = await store.run(backups.pendingSnapshots, { home })
    // The start may have completed the deletion of its database.
    if (!pending.some(({ backup_id }) => backup_id === row.backup_id)) return
    await creation.settle(row, () => creation.figures(row))
  }
}
