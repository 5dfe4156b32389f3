import { auditRow } from '../../accounts/index.js'
import { isUnwritable, newId } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import { Holds } from '../changes/holds.js'
import { engineSpecOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as backups from '../transactions/backups.js'
import * as restores from '../transactions/restores.js'
import { refuse } from './answers.js'
import type { BackupCreation } from './creation.js'
import { type BackupDeps, retryUntilDone } from './deps.js'
import { factsOf, formatOf } from './files.js'
import type { StoredBackups } from './stored/stored.js'

type BackupRow = backups.BackupRow

/** Errors of an engine that cannot start on the current data. */
const UNREADABLE = ['engine_failed', 'data_missing', 'data_unreadable'] as const

/**
 * Replaces the data of a database by that of a backup. The database is `restoring` all the time.
 *
 * ```
 *   preparing: file compared, safety backup, file staged ──commit──▶ replacing: engines stop, files change, engines start
 *        │ any failure, or a crash                                      │ a failure, or a crash
 *        ▼                                                              ▼
 *   nothing has changed                                               repeated until it succeeds
 * ```
 *
 * When no engine can read the old data, which is when a restore is needed most, a safety backup is impossible: the old
 * files are set aside instead.
 *
 * The commit decides: before it the old data is untouched, after it only the new data counts, and no engine ever starts
 * on a mixture. Commands wait while the files are being replaced.
 */
export class Restores {
  readonly #deps: BackupDeps
  readonly #creation: BackupCreation
  readonly #stored: StoredBackups
  readonly #holds = new Holds()

  constructor(deps: BackupDeps, creation: BackupCreation, stored: StoredBackups) {
    this.#deps = deps
    this.#creation = creation
    this.#stored = stored
  }

  /** Stores that a database is being restored from a backup. @returns the work to do. */
  async begin(caller: Caller, databaseId: string, backupId: string): Promise<() => Promise<void>> {
    const { store, clock, lost, home } = this.#deps
    const at = clock.now()
    const event = { action: 'Restore Backup', entity: databaseId, details: { backup_id: backupId } } as const
    const audit = auditRow(caller, event, at)
    const begun = store.run(restores.begin, { accountId: caller.accountId, databaseId, backupId, home, at, audit })
    const outcome = await lost.watch({ databaseId, backupId, startedAt: at }, begun)
    if (outcome.kind === 'no_backup') throw new HomeportError('backup_not_found', { backupId })
    if (outcome.kind === 'not_ready') throw new HomeportError('backup_not_ready', { state: outcome.state })
    if (outcome.kind !== 'begun') return refuse(outcome, databaseId)
    const { database, backup } = outcome
    return () =>
      this.run(database, async () => {
        await this.#stored.fetch(backup)
        return backup
      })
  }

  /**
   * Carries out a restore that is stored as `preparing`. Rejects when nothing was replaced, or when the engines fail to
   * start.
   * @param obtain resolves to the backup to restore; an import fills it first.
   */
  async run(database: DatabaseRow, obtain: () => Promise<BackupRow>): Promise<void> {
    const { database_id: databaseId } = database
    const { store } = this.#deps
    try {
      await this.#prepare(database, await obtain())
      await store.run(restores.replace, { databaseId })
    } catch (error) {
      if (await this.#undo(databaseId)) throw error
    }
    await this.holding(databaseId, () => this.#replace(database))
  }

  /** Completes a replacement that a crash interrupted. Must run before the database is served. */
  async recover(row: DatabaseRow): Promise<void> {
    const { store, fleet, files, plans } = this.#deps
    const { database_id: databaseId } = row
    await fleet.adoptSnapshot(engineSpecOf(row, plans), files.staged(databaseId))
    await store.run(restores.finish, { databaseId })
    await files.unstage(databaseId)
  }

  /** Makes the clients of a database wait while `work` changes its files. */
  holding(databaseId: string, work: () => Promise<void>): Promise<void> {
    return this.#holds.during(databaseId, work)
  }

  /** Resolves when the data of a database is not being replaced. */
  untilReplaced(databaseId: string, signal?: AbortSignal): Promise<void> {
    return this.#holds.untilReleased(databaseId, signal)
  }

  async #prepare(database: DatabaseRow, backup: BackupRow): Promise<void> {
    const { files, clock, store, plans, fleet, lost } = this.#deps
    const { database_id } = database
    const limitBytes = engineSpecOf(database, plans).maxMemoryBytes
    const dataBytes = backup.data_bytes
    if (dataBytes > limitBytes) throw new HomeportError('backup_too_large', { dataBytes, limitBytes })
    // An engine that finds the disk full could not write its log.
    if (!(await fleet.checkSpace(backup.size_bytes))) throw new HomeportError('store_full', {})
    // Staged first: the checks below read the file that becomes the data, and the file of the backup may be deleted
    // meanwhile.
    await files.stage(backup, database_id).catch(asUnreadable)
    await this.#refuseChanged(backup, database_id)
    const now = clock.now()
    const safety: backups.NewBackup = {
      backup_id: newId('bak_', now),
      database_id,
      name: `Before restoring ${backup.name}`.slice(0, 128),
      kind: 'safety',
      created_at: now,
    }
    await lost.watch(restores.jobOf(safety), store.run(backups.add, { backup: safety }))
    const isSafe = await this.#backUpFirst(safety)
    if (isSafe) return this.#checkReadable(safety)
    await fleet.checkSnapshot(files.staged(database_id))
    await fleet.quarantineData(engineSpecOf(database, plans), `A restore of ${backup.backup_id} replaced it.`)
  }

  /** False when no engine can read the current data; the caller then sets it aside. */
  async #backUpFirst(safety: backups.NewBackup): Promise<boolean> {
    try {
      await this.#creation.create(safety)
      return true
    } catch (error) {
      if (!UNREADABLE.some((code) => isError(error, code))) throw error
      const { database_id: databaseId } = safety
      this.#deps.logger.warn('restore_without_safety_backup', { databaseId })
      return false
    }
  }

  /** Refuses a file that has changed since the backup was completed. */
  async #refuseChanged(backup: BackupRow, databaseId: string): Promise<void> {
    const facts = await factsOf(this.#deps.files.staged(databaseId))
    if (facts.sha256 === backup.sha256) return
    throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
  }

  /**
   * The installed engine may be newer than the backup, or of another vendor. A backup in another format than the
   * installed engine writes is loaded once as a test, while the old data is still in place.
   */
  async #checkReadable(safety: backups.NewBackup): Promise<void> {
    const { files, fleet } = this.#deps
    const staged = files.staged(safety.database_id)
    const [format, own] = await Promise.all([formatOf(staged), formatOf(files.path(safety))])
    if (format !== own) await fleet.checkSnapshot(staged)
  }

  /** Clients reach the engines only after the store knows that the new data is in place. */
  async #replace(database: DatabaseRow): Promise<void> {
    const { store, fleet, files, plans, sleep } = this.#deps
    const { database_id: databaseId } = database
    const spec = engineSpecOf(database, plans, this.#deps.only)
    await retryUntilDone(this.#deps, databaseId, async () => {
      await fleet.ensure({ ...spec, state: 'stopped' })
      await fleet.adoptSnapshot(spec, files.staged(databaseId))
    })
    try {
      sleep.reportStarted(databaseId)
      await fleet.ensure(spec, 'while-loading')
    } finally {
      await retryUntilDone(this.#deps, databaseId, () => store.run(restores.finish, { databaseId }))
      await files.unstage(databaseId)
      await this.#deps.withdraw(databaseId)
      this.#deps.onReplaced(databaseId)
    }
  }

  /** False when there is nothing to undo: the commit succeeded although it was answered with an error. */
  async #undo(databaseId: string): Promise<boolean> {
    const { store, files } = this.#deps
    const undone = await retryUntilDone(this.#deps, databaseId, () => store.run(restores.undo, { databaseId }))
    if (undone) await files.unstage(databaseId)
    return undone
  }
}

/** A full disk is not the fault of the file. */
function asUnreadable(cause: unknown): never {
  if (isUnwritable(cause)) throw new HomeportError('store_full', {}, { cause })
  throw new HomeportError('snapshot_unusable', { reason: 'its file cannot be read' }, { cause })
}
