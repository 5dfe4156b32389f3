import { isUnwritable } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { Evidence } from '../../fleet/index.js'
import * as backups from '../transactions/backups.js'
import { deleteFiles } from './deletions.js'
import { type BackupDeps, retryUntilDone } from './deps.js'

type BackupRow = backups.BackupRow
type NewBackup = backups.NewBackup
type Figures = Omit<Extract<backups.BackupResult, { kind: 'completed' }>, 'kind'>

/** Maximum safety and import backups that a database keeps besides the one being made: more could fill the disk for all. */
const INTERMEDIATE_KEPT = 9

/** Takes, checks and stores backups: a pending row becomes completed or failed. */
export class BackupCreation {
  readonly #deps: BackupDeps

  constructor(deps: BackupDeps) {
    this.#deps = deps
  }

  /** Takes a snapshot of the backup's database and checks it. Rejects when it fails, and its row is `failed`. */
  create(backup: NewBackup): Promise<BackupRow> {
    return this.settle(backup, async () => {
      const { fleet, files, sleep } = this.#deps
      const file = await files.prepare(backup)
      sleep.wake(backup.database_id)
      await fleet.endpoints(backup.database_id, undefined, 'while-loading')
      const evidence = await fleet.takeSnapshot(backup.database_id, file)
      return this.figures(backup, evidence).catch(asFailedSnapshot)
    })
  }

  /** Loads the file of a backup in a temporary engine and resolves to its figures. */
  async figures(backup: NewBackup, evidence?: Evidence): Promise<Figures> {
    const { fleet, files } = this.#deps
    const { keys: keyCount, dataBytes } = await fleet.checkSnapshot(files.path(backup), evidence)
    return { ...(await files.facts(backup)), keyCount, dataBytes }
  }

  /** Stores the outcome of `work`. A failed backup has no file. */
  async settle(backup: NewBackup, work: () => Promise<Figures>): Promise<BackupRow> {
    const figures = await this.#attempt(backup, work)
    // If this rejects, the store may have the outcome: the file stays, and the next start looks at both.
    return this.finish(backup, { kind: 'completed', ...figures })
  }

  async #attempt(backup: NewBackup, work: () => Promise<Figures>): Promise<Figures> {
    try {
      await this.#prune(backup)
      return await work()
    } catch (cause) {
      const error = isUnwritable(cause) ? new HomeportError('store_full', {}, { cause }) : cause
      // A tenant may mistype the URL of an import, which does not concern the operator.
      if (backup.kind === 'import' && error instanceof HomeportError)
        this.#deps.logger.info('import_failed', { error, backupId: backup.backup_id })
      else this.#deps.logger.error('backup_failed', { error, backupId: backup.backup_id })
      // If this fails, the next start deletes the file; the row must not stay pending until then.
      await deleteFiles(this.#deps, [backup])
      await this.finish(backup, { kind: 'failed', failure: reasonOf(error) })
      throw error
    }
  }

  /** Deletes the oldest safety and import backups. No restore needs them, because it copies its backup first. */
  async #prune({ database_id: databaseId, kind }: NewBackup): Promise<void> {
    if (kind !== 'safety' && kind !== 'import') return
    const { store, clock } = this.#deps
    const gone = await store.run(backups.prune, { databaseId, keep: INTERMEDIATE_KEPT, at: clock.now() })
    await deleteFiles(this.#deps, gone)
  }

  /** Stores the outcome of a backup. Retries until the store has it, or the server stops. */
  async finish(
    { backup_id: backupId, database_id: databaseId, kind }: NewBackup,
    result: backups.BackupResult,
  ): Promise<BackupRow> {
    const { store, clock } = this.#deps
    const finished = { backupId, result, at: clock.now() }
    if (this.#deps.meter && kind !== 'import') this.#deps.meter.backups[result.kind]++
    const row = await retryUntilDone(this.#deps, databaseId, () => store.run(backups.finish, finished))
    if (!row) throw new HomeportError('backup_not_found', { backupId })
    return row
  }
}

/** The reason of a failure for users: messages of the error catalogue, and one text for all other errors. */
export function reasonOf(error: unknown): string {
  return error instanceof HomeportError ? error.message : 'an internal error; the log has the details'
}

/** An unusable snapshot that we took ourselves is our failure, not one of the caller's file. */
function asFailedSnapshot(error: unknown): never {
  if (!isError(error, 'snapshot_unusable')) throw error
  throw new HomeportError('snapshot_failed', { reason: error.message }, { cause: error })
}
