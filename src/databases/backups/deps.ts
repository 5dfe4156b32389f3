import { type AgeWatch, pause, type TargetGate } from '../../base/index.js'
import type { DatabasesDeps, SleepControl } from '../deps.js'
import type { Quarantine } from '../quarantine/index.js'
import type { BackupFiles } from './files.js'
import type { UnconfirmedJobs } from './unconfirmed-jobs.js'

/** What the classes of this folder are built from. */
export interface BackupDeps
  extends Pick<
    DatabasesDeps,
    | 'store'
    | 'fleet'
    | 'clock'
    | 'logger'
    | 'plans'
    | 'emailOf'
    | 'meter'
    | 'problems'
    | 'isOperator'
    | 'isStillMember'
    | 'cluster'
    | 'objectStorage'
  > {
  readonly files: BackupFiles
  readonly quarantine: Pick<Quarantine, 'keepBackup'>
  /** See `regionOf`. */
  readonly only: string | undefined
  /** Maximum number of manual backups of a database. */
  readonly maxManual: number
  /** Resolves when no other node answers reads from the data before. */
  readonly withdraw: (databaseId: string) => Promise<void>
  /** The node whose databases are meant; the empty text on a server that is alone: all databases. */
  readonly home: string
  /** Called when the data of a database was replaced and the store knows it. */
  readonly onReplaced: (databaseId: string) => void
  /** Decides which addresses data may be imported from. */
  readonly targets: TargetGate
  readonly sleep: Pick<SleepControl, 'wake' | 'reportStarted' | 'during'>
  readonly lost: UnconfirmedJobs
  /** Whether backups may be deleted for their age. */
  readonly ages: Pick<AgeWatch, 'mayDelete'>
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
}

/** Delay before a failed step is retried. */
const RETRY_MS = 2_000

/**
 * Retries work until it succeeds: for steps that can no longer be rolled back, and for storing outcomes. When the server
 * stops, it rejects instead of retrying, and the next start settles the work.
 */
export async function retryUntilDone<Result>(
  deps: Pick<BackupDeps, 'clock' | 'logger' | 'stopping'>,
  databaseId: string,
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (deps.stopping.aborted) throw error
      deps.logger.error('backup_step_failed', { error, databaseId })
      await pause(deps.clock, RETRY_MS)
    }
  }
}
