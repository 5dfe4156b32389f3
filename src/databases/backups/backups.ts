import type { Readable } from 'node:stream'
import { type AuditEvent, auditRow } from '../../accounts/index.js'
import { newId, type Service } from '../../base/index.js'
import type { BackupRecord, ImportRecord } from '../../contract/databases/backups.js'
import type { StoredBackupRecord } from '../../contract/databases/stored-backups.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import { type DatabaseRow, everyRow } from '../lifecycle.js'
import { nameProblems } from '../rules.js'
import * as deletions from '../transactions/backup-deletions.js'
import * as backups from '../transactions/backups.js'
import * as backupsDaily from '../transactions/backups-daily.js'
import * as restores from '../transactions/restores.js'
import { refuse } from './answers.js'
import { BackupCreation } from './creation.js'
import { DailyBackups, firstDailyAt } from './daily.js'
import { deleteFiles } from './deletions.js'
import type { BackupDeps } from './deps.js'
import { BackupFiles, type BackupName, verifiedFile } from './files.js'
import { Imports, type ReceivedFile } from './imports.js'
import { InterruptedBackups } from './interrupted.js'
import { Jobs } from './jobs.js'
import { listBackups } from './list.js'
import { LossAcceptance } from './loss-acceptance.js'
import { RecoveredData } from './recovered-data.js'
import { Restores } from './restores.js'
import { objectsOf } from './stored/objects.js'
import { StoredBackups } from './stored/stored.js'
import { Uploads } from './stored/uploads.js'
import { UnconfirmedJobs } from './unconfirmed-jobs.js'

type BackupRow = backups.BackupRow

/** The open file of a backup. */
export interface BackupDownload {
  readonly row: Pick<BackupRow, 'name' | 'size_bytes' | 'sha256'>
  readonly stream: Readable
}

/**
 * Backups of databases; see `index.ts`. An operation that takes long commits its beginning first, so that it can be refused
 * at once; then `jobs.ts` runs the rest, whether or not its caller stays.
 */
export class Backups implements Service {
  readonly name = 'backups'
  readonly #deps: BackupDeps
  readonly #creation: BackupCreation
  readonly #restores: Restores
  readonly #lossAcceptance: LossAcceptance
  readonly #daily: DailyBackups
  readonly #imports: Imports
  readonly #stored: StoredBackups
  /** Absent without object storage. */
  readonly #uploads: Uploads | undefined
  readonly #jobs: Jobs
  readonly #interrupted: InterruptedBackups
  /** Backups as the data of databases that this node takes over. */
  readonly recovered: RecoveredData
  #stopping: Promise<void> | undefined

  constructor(options: Omit<BackupDeps, 'files' | 'stopping' | 'lost'> & { readonly dataDir: string }) {
    const { dataDir, ...rest } = options
    this.#jobs = new Jobs(rest)
    const { stopping } = this.#jobs
    this.#deps = { ...rest, files: new BackupFiles(dataDir), stopping, lost: new UnconfirmedJobs(rest) }
    this.#creation = new BackupCreation(this.#deps)
    this.#interrupted = new InterruptedBackups({ ...this.#deps, creation: this.#creation, jobs: this.#jobs })
    const objectDeps = objectsOf(this.#deps)
    this.#stored = new StoredBackups({ ...this.#deps, objects: objectDeps?.objects, creation: this.#creation })
    this.#restores = new Restores(this.#deps, this.#creation, this.#stored)
    this.#lossAcceptance = new LossAcceptance(this.#deps, this.#restores)
    this.#imports = new Imports(this.#deps, this.#creation, this.#restores)
    this.recovered = new RecoveredData(this.#deps, this.#restores, this.#stored)
    this.#uploads = objectDeps && new Uploads({ ...this.#deps, ...objectDeps })
    const keep = objectDeps ? ('all' as const) : ('stored' as const)
    this.#daily = new DailyBackups({ ...this.#deps, keep, create: (backup) => this.#begin({ backup }) })
  }

  /**
   * Undoes or completes what a crash interrupted, except the backups that `start` completes. Must run before any engine
   * starts.
   * @returns the databases whose data is not in place: their engines must not start.
   */
  async recover(): Promise<ReadonlySet<string>> {
    const { store, clock, logger, home } = this.#deps
    const kept = await this.#interrupted.find()
    const replacing = await store.run(restores.recover, { at: clock.now(), kept, home })
    const ids = new Set(replacing.map((restore) => restore.database_id))
    const rows = ids.size === 0 ? [] : await everyRow(store)
    for (const row of rows.filter((one) => ids.has(one.database_id))) {
      try {
        await this.#restores.recover(row)
        ids.delete(row.database_id)
      } catch (error) {
        logger.error('restore_not_completed', { error, databaseId: row.database_id })
      }
    }
    return ids
  }

  /** Settles work that nobody carries out, because the answer to the commit that began it was lost. */
  async settleUnconfirmed(): Promise<void> {
    await this.#deps.lost.settleUnconfirmed()
    await this.#lossAcceptance.settleUnconfirmed()
  }

  /**
   * Deletes the files that deleted and failed backups left. Resolves to the files that look like backups and are not known.
   * Must not be called while a restore is active.
   */
  async unknownFiles(): Promise<readonly BackupName[]> {
    const { store, files, home } = this.#deps
    const left = await store.run(deletions.left, { home })
    const deleted = left.map((backup) => ({ ...backup, state: 'deleted' as const }))
    const unknown = await files.sweep([...(await store.run(backups.everyName, {})), ...deleted])
    if (left.length > 0) await store.run(deletions.forget, { ids: left.map(({ backup_id }) => backup_id) })
    return unknown
  }

  /** Starts the schedule, and completes interrupted backups. Call it after `recover`. */
  async start(): Promise<void> {
    void this.#interrupted.complete().finally(() => this.#uploads?.check())
    this.#daily.start()
    this.#uploads?.start()
  }

  /**
   * Starts no more work, and waits up to 5 s for active work. Then its callers get an error, and the next start settles
   * the work. Stop it before the listeners, which wait for their callers.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#jobs.stop(() => [this.#daily.stop(), this.#uploads?.stop()])
    return this.#stopping
  }

  /** Resolves when the data of a database is not being replaced; rejects with the reason of an aborted signal. */
  untilReplaced(databaseId: string, signal?: AbortSignal): Promise<void> {
    return this.#restores.untilReplaced(databaseId, signal)
  }

  /** The backups of a database of the account, newest first. */
  list(caller: Caller, databaseId: string): Promise<BackupRecord[]> {
    return listBackups(this.#deps, this.#uploads, caller, databaseId)
  }

  /** Creates a backup; resolves when it is completed, rejects when it has failed. */
  async create(caller: Caller, databaseId: string, givenName: string): Promise<void> {
    const name = givenName.trim()
    const problems = nameProblems(name, 'name')
    if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
    await this.#jobs.inTurn(caller, () => this.#createManual(caller, databaseId, name))
  }

  async #createManual(caller: Caller, databaseId: string, name: string): Promise<void> {
    const now = this.#deps.clock.now()
    const backup = {
      backup_id: newId('bak_', now),
      database_id: databaseId,
      name,
      kind: 'manual',
      created_at: now,
    } as const
    const audit = this.#audit(caller, 'Create Backup', databaseId, { name, backup_id: backup.backup_id })
    await this.#begin({ backup, accountId: caller.accountId, audit, most: this.#deps.maxManual })
  }

  /** Wakes a database and writes a snapshot of it to a path that does not exist. The snapshot gets no row of a backup. */
  snapshot(databaseId: string, file: string): Promise<void> {
    const { sleep, fleet } = this.#deps
    return this.#jobs.run(databaseId, 'backup', async () => {
      sleep.wake(databaseId)
      await fleet.endpoints(databaseId, undefined, 'while-loading')
      await fleet.takeSnapshot(databaseId, file)
    })
  }

  /** Deletes a backup and its file. */
  async remove(caller: Caller, databaseId: string, backupId: string): Promise<void> {
    const { accountId } = caller
    const audit = this.#audit(caller, 'Delete Backup', databaseId, { backup_id: backupId })
    const outcome = await this.#deps.store.run(backups.remove, {
      accountId,
      databaseId,
      backupId,
      home: this.#deps.home,
      audit,
    })
    if (outcome.kind === 'no_backup') throw new HomeportError('backup_not_found', { backupId })
    if (outcome.kind !== 'removed') refuse(outcome, databaseId)
    await deleteFiles(this.#deps, [{ database_id: databaseId, backup_id: backupId }])
    this.#uploads?.check()
  }

  /** Deletes all backups of a database that is being deleted. */
  async removeAll(databaseId: string): Promise<void> {
    await this.#deps.store.run(backups.removeAll, { databaseId, at: this.#deps.clock.now() })
    await this.#deps.files.removeAll(databaseId)
    this.#uploads?.check()
  }

  /**
   * Replaces the data of a database by that of a backup. Resolves when the database serves it; rejects when nothing was
   * replaced, or when the engines fail to start.
   */
  restore(caller: Caller, databaseId: string, backupId: string): Promise<void> {
    return this.#jobs.inTurn(caller, async () => {
      const work = await this.#restores.begin(caller, databaseId, backupId)
      await this.#jobs.run(databaseId, 'restore', work)
    })
  }

  /** Accepts the loss of missing or damaged data; resolves when the database serves without it. */
  async acceptLoss(caller: Caller, databaseId: string): Promise<void> {
    const work = await this.#lossAcceptance.begin(caller, databaseId)
    if (work) await this.#jobs.run(databaseId, 'restore', work)
  }

  /** Switches daily backups on or off. */
  async setDaily(caller: Caller, databaseId: string, daily: 'on' | 'off'): Promise<void> {
    const { store, clock } = this.#deps
    const action = daily === 'on' ? 'Enable Daily Backup' : 'Disable Daily Backup'
    const outcome = await store.run(backupsDaily.set, {
      accountId: caller.accountId,
      databaseId,
      firstAt: daily === 'on' ? firstDailyAt(clock.now()) : undefined,
      audit: this.#audit(caller, action, databaseId, {}),
    })
    if (outcome.kind !== 'set') refuse(outcome, databaseId)
    this.#daily.check()
  }

  /** Opens the file of a completed backup, for a caller that may see data. */
  async download(caller: Caller, databaseId: string, backupId: string): Promise<BackupDownload> {
    const { store, files } = this.#deps
    // The file is the data itself, and this role may not see data.
    if (caller.role === 'finance') {
      throw new HomeportError('team_forbidden', { role: caller.role, allowed: 'the owner, an admin or a dev' })
    }
    const row = await store.run(backups.get, { accountId: caller.accountId, backupId })
    if (row?.database_id !== databaseId) throw new HomeportError('backup_not_found', { backupId })
    if (row.state !== 'completed') throw new HomeportError('backup_not_ready', { state: row.state })
    await this.#stored.fetch(row)
    const facts = { sizeBytes: row.size_bytes, sha256: row.sha256 }
    return { row, stream: await verifiedFile(files.path(row), facts) }
  }

  /** The backups in object storage, known here or not; for the operator. */
  listStored(caller: Caller, databaseId: string | undefined): Promise<StoredBackupRecord[]> {
    return this.#stored.list(caller, databaseId)
  }

  /** Makes a backup in object storage a backup of a database; for the operator. */
  adoptStored(caller: Caller, into: string, from: BackupName & { readonly name?: string }): Promise<BackupName> {
    return this.#jobs.run(into, 'backup', () => this.#stored.adopt(caller, from, into, from.name))
  }

  /** Starts an import of all keys of another server; resolves as soon as it is stored. */
  async importFromUrl(caller: Caller, databaseId: string, url: string): Promise<ImportRecord> {
    const begun = await this.#imports.fromUrl(caller, databaseId, url)
    // A failure is stored in the record of the import.
    this.#jobs.run(databaseId, 'import', () => begun.ended).catch(() => undefined)
    return begun.record
  }

  /** Imports an RDB file; resolves when the database serves its data. */
  async importFile(caller: Caller, databaseId: string, file: ReceivedFile): Promise<ImportRecord> {
    const begun = await this.#imports.fromFile(caller, databaseId, file)
    await this.#jobs.run(databaseId, 'import', () => begun.ended)
    return this.#imports.progress(caller, databaseId)
  }

  /** Ends the import into a database, if one is active. */
  endImport(databaseId: string): void {
    this.#imports.end(databaseId)
  }

  /** The last import into a database, if there was one. */
  listImports(caller: Caller, databaseId: string): Promise<ImportRecord[]> {
    return this.#imports.list(caller, databaseId)
  }

  /** Progress of the last import into a database. */
  importProgress(caller: Caller, databaseId: string): Promise<ImportRecord> {
    return this.#imports.progress(caller, databaseId)
  }

  async #begin(args: backups.BeginArgs): Promise<DatabaseRow> {
    const { store, lost, home } = this.#deps
    const outcome = await lost.watch(restores.jobOf(args.backup), store.run(backups.begin, { ...args, home }))
    if (outcome.kind !== 'begun') refuse(outcome, args.backup.database_id)
    await this.#jobs.run(args.backup.database_id, 'backup', () => this.#creation.create(args.backup))
    this.#uploads?.check()
    return outcome.database
  }

  #audit(caller: Caller, action: AuditEvent['action'], entity: string, details: AuditEvent['details']) {
    return auditRow(caller, { action, entity, details }, this.#deps.clock.now())
  }
}
