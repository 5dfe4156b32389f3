import { pause, type TargetGate } from '../../base/index.js'
import type { DatabasesDeps, SleepControl } from '../deps.js'
import type { BackupFiles } from './files.js'

/** What backups are made of. */
export interface BackupDeps extends Pick<DatabasesDeps, 'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'emailOf'> {
  readonly files: BackupFiles
  /** Told when other data is in place, and the store knows it. */
  readonly onReplaced: (databaseId: string) => void
  /** Judges the servers that data is imported from. */
  readonly targets: TargetGate
  readonly sleep: Pick<SleepControl, 'wake' | 'noteStarted' | 'during'>
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
}

/** How long to wait before something that failed is tried again. */
const AGAIN_MS = 2_000

/**
 * Does what has to be done until it is done: for steps behind which there is no way back, and for writing down what
 * has become of something. Once the server stops nothing is tried again, because the next start settles it.
 */
export async function untilDone<Result>(
  deps: Pick<BackupDeps, 'clock' | 'logger' | 'stopping'>,
  databaseId: string,
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (deps.stopping.aborted) throw error
      deps.logger.error({ error, databaseId }, 'a step of a backup or restore has failed; trying again')
      await pause(deps.clock, AGAIN_MS)
    }
  }
}
