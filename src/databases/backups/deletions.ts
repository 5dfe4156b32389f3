import * as deletions from '../transactions/backup-deletions.js'
import type { BackupDeps } from './deps.js'
import type { BackupName } from './files.js'

/** What `deleteFiles` needs. */
export type DeletionDeps = Pick<BackupDeps, 'store' | 'logger'> & {
  readonly files: Pick<BackupDeps['files'], 'remove'>
}

/**
 * Deletes the files of backups that are deleted or have failed. Never rejects: the next start deletes the files that are
 * left.
 */
export async function deleteFiles(deps: DeletionDeps, gone: readonly BackupName[]): Promise<void> {
  for (const backup of gone) {
    try {
      await deps.files.remove(backup)
      await deps.store.run(deletions.forget, { ids: [backup.backup_id] })
    } catch (error) {
      deps.logger.warn('backup_file_left', { error, backupId: backup.backup_id })
    }
  }
}
