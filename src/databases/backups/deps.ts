import type { TargetGate } from '../../base/index.js'
import type { DatabasesOptions } from '../deps.js'
import type { Sleep } from '../sleep/index.js'
import type { BackupFiles } from './files.js'

/** What backups are made of. */
export interface BackupDeps
  extends Pick<DatabasesOptions, 'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'emailOf'> {
  readonly files: BackupFiles
  /** Told when other data is in place, and the store knows it. */
  readonly onReplaced: (databaseId: string) => void
  /** Judges the servers that data is imported from. */
  readonly targets: TargetGate
  readonly sleep: Pick<Sleep, 'wake' | 'adopt' | 'during'>
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
}
