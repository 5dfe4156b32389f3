import type { DatabasesOptions } from '../parts.js'
import type { BackupFiles } from './files.js'

/** What backups are made of. */
export interface BackupParts
  extends Pick<DatabasesOptions, 'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'emailOf'> {
  readonly files: BackupFiles
  /** Resolves when the engine of a database serves, bringing it up where that is still to be done. */
  readonly wake: (databaseId: string) => Promise<unknown>
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
}
