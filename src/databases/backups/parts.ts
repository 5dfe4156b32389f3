import type { DatabasesOptions } from '../parts.js'
import type { Sleep } from '../sleep/index.js'
import type { BackupFiles } from './files.js'

/** What backups are made of. */
export interface BackupParts
  extends Pick<DatabasesOptions, 'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'emailOf'> {
  readonly files: BackupFiles
  readonly sleep: Pick<Sleep, 'wake' | 'adopt' | 'during'>
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
}
