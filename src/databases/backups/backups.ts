import type { Readable } from 'node:stream'
import { type AuditEvent, auditRow } from '../../accounts/index.js'
import { FewAtOnce, newId, type Service, type Timer, unreachable } from '../../base/index.js'
import type { BackupRecord, ImportRecord } from '../../contract/databases/backups.js'
import type { StoredBackupRecord } from '../../contract/databases/stored-backups.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import { type DatabaseRow, everyRow } from '../life.js'
import { nameProblems } from '../rules.js'
import type { Task } from '../sleep/index.js'
import * as backupObjects from '../transactions/backup-objects.js'
import * as backups from '../transactions/backups.js'
import * as backupsDaily from '../transactions/backups-daily.js'
import * as restores from '../transactions/restores.js'
import { type BackupPlace, refuse, renderBackup } from './answers.js'
import { BackupCreation } from './creation.js'
import { DailyBackups, firstDailyAt } from './daily.js'
import type { BackupDeps } from './deps.js'
import { BackupFiles, type BackupName, verifiedFile } from './files.js'
import { Imports, type ReceivedFile } from './imports.js'
import { LossAcceptance } from './loss-acceptance.js'
import { LostJobs } from './lost-jobs.js'
import { Restores } from './restores.js'
import { objectsOf } from './stored/objects.js'
import { StoredBackups } from './stored/stored.js'
import { Uploads } from './stored/uploads.js'

type BackupRow = backups.BackupRow

/** The open file of a backup. */
export interface BackupDownload {
  readonly row: Pick<BackupRow, 'name' | 'size_bytes' | 'sha256'>
  readonly stream: Readable
}

/**
 * Backups and restores of an account at the same time. Each loads its data a second time, in an engine of its own: those of
 * hundreds of databases would take the memory of all.
 */
const MOST_AT_ONCE = 4
/** How long `stop` waits for active work. The next start settles what takes longer. */
const STOP_GRACE_MS = 5_000

/** Backups of databases; see `index.ts`. */
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
  readonly #stop: AbortController
  readonly #active = new Set<Promise<unknown>>()
  readonly #turns = new FewAtOnce(MOST_AT_ONCE)
  readonly #callers = new Set<(error: Error) => void>()
  #stopping: Promise<void> | undefined

  constructor(options: Omit<BackupDeps, 'files' | 'stopping' | 'lost'> & { readonly dataDir: string }) {
    const { dataDir, ...rest } = options
    this.#stop = new AbortController()
    const lost = new LostJobs(rest)
    this.#deps = { ...rest, files: new BackupFiles(dataDir), stopping: this.#stop.signal, lost }
    this.#creation = new BackupCreation(this.#deps)
    this.#restores = new Restores(this.#deps, this.#creation)
    this.#lossAcceptance = new LossAcceptance(this.#deps, this.#restores)
    this.#imports = new Imports(this.#deps, this.#creation, this.#restores)
    const objectDeps = objectsOf(this.#deps)
    this.#stored = new StoredBackups({ ...this.#deps, objects: objectDeps?.objects, creation: this.#creation })
    this.#uploads = objectDeps && new Uploads({ ...this.#deps, ...objectDeps })
    const keep = objectDeps ? ('all' as const) : ('stored' as const)
    this.#daily = new DailyBackups({ ...this.#deps, keep, create: (backup) => this.#begin({ backup }) })
  }

  /**
   * Undoes or completes what a crash interrupted. Must run before any engine starts.
   * @returns the databases whose data is not in place: their engines must not start.
   */
  async recover(): Promise<ReadonlySet<string>> {
    const { store, clock, logger, home } = this.#deps
    const replacing = await store.run(restores.recover, { at: clock.now(), home })
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

  /** Settles what nobody carries out: the answer to the commit was lost. */
  async settleLost(): Promise<void> {
    await this.#deps.lost.settleLost()
    await this.#lossAcceptance.settleLost()
  }

  /** Files that look like backups and have no row. Must not be called while a restore is active. */
  async unknownFiles(): Promise<readonly BackupName[]> {
    const { store, files } = this.#deps
    return files.sweep(await store.run(backups.everyName, {}))
  }

  /** Starts the schedule. Call it after `recover`. */
  async start(): Promise<void> {
    this.#daily.start()
    this.#uploads?.start()
  }

  /**
   * Starts no more work, and waits up to 5 s for active work. Then its callers get an error, and the next start settles
   * the work. Stop it before the listeners, which wait for their callers.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopOnce()
    return this.#stopping
  }

  /** Resolves when the data of a database is not being replaced; rejects with the reason of an aborted signal. */
  untilReplaced(databaseId: string, signal?: AbortSignal): Promise<void> {
    return this.#restores.untilReplaced(databaseId, signal)
  }

  /** The backups of a database of the account, newest first. */
  async list(caller: Caller, databaseId: string): Promise<BackupRecord[]> {
    const { accountId } = caller
    const rows = await this.#deps.store.run(backups.list, { accountId, databaseId })
    if (!rows) throw new HomeportError('database_not_found', { databaseId })
    const placeOf = await this.#places(databaseId)
    const email = this.#deps.emailOf(accountId)
    return Promise.all(rows.map(async (row) => renderBackup(row, email, await placeOf(row))))
  }

  /** Creates a backup; resolves when it is completed, rejects when it has failed. */
  async create(caller: Caller, databaseId: string, givenName: string): Promise<void> {
    const name = givenName.trim()
    const problems = nameProblems(name, 'name')
    if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
    await this.#inTurn(caller, () => this.#createManual(caller, databaseId, name))
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
    await this.#begin({ backup, accountId: caller.accountId, audit, most: this.#deps.mostManual })
  }

  /** Puts a snapshot of a database at a path that does not exist, and wakes it for that. It is no backup of its own. */
  snapshot(databaseId: string, file: string): Promise<void> {
    const { sleep, fleet } = this.#deps
    return this.#track(databaseId, 'backup', async () => {
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
    await this.#creation.removeFile({ database_id: databaseId, backup_id: backupId })
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
    return this.#inTurn(caller, () => this.#restore(caller, databaseId, backupId))
  }

  async #restore(caller: Caller, databaseId: string, backupId: string): Promise<void> {
    const at = this.#deps.clock.now()
    const { accountId } = caller
    const audit = this.#audit(caller, 'Restore Backup', databaseId, { backup_id: backupId })
    const { store, lost, home } = this.#deps
    const begun = store.run(restores.begin, { accountId, databaseId, backupId, home, at, audit })
    const outcome = await lost.watch({ databaseId, backupId, startedAt: at }, begun)
    switch (outcome.kind) {
      case 'begun':
        return this.#track(databaseId, 'restore', () =>
          this.#restores.run(outcome.database, async () => {
            await this.#stored.fetch(outcome.backup)
            return outcome.backup
          }),
        )
      case 'no_backup':
        throw new HomeportError('backup_not_found', { backupId })
      case 'not_ready':
        throw new HomeportError('backup_not_ready', { state: outcome.state })
      case 'not_found':
      case 'busy':
      case 'plan':
      case 'too_many':
        return refuse(outcome, databaseId)
      default:
        return unreachable(outcome)
    }
  }

  /**
   * A completed backup of a database, by its id; without one, the newest whose file this node has or can get.
   * @throws HomeportError `backup_not_found`, `backup_not_ready`
   */
  async newestUsable({ account_id, database_id }: DatabaseRow, backupId: string | undefined): Promise<BackupRow> {
    const { store, files } = this.#deps
    const rows = (await store.run(backups.list, { accountId: account_id, databaseId: database_id })) ?? []
    const objects = await store.run(backupObjects.ofDatabase, { databaseId: database_id })
    const stored = new Set(objects.filter(({ state }) => state === 'stored').map((one) => one.backup_id))
    for (const row of rows) {
      if (row.backup_id === backupId && row.state !== 'completed') {
        throw new HomeportError('backup_not_ready', { state: row.state })
      }
      const isWanted = row.state === 'completed' && (backupId === undefined || row.backup_id === backupId)
      if (isWanted && (stored.has(row.backup_id) || (await files.has(row)))) return row
    }
    throw new HomeportError('backup_not_found', { backupId: backupId ?? 'in object storage' })
  }

  /** Gets, loads once and stages a backup for a database that this node does not serve yet. */
  async stageElsewhere(database: DatabaseRow, backup: BackupRow): Promise<void> {
    const { files, fleet } = this.#deps
    await this.#stored.fetch(backup)
    if ((await files.facts(backup)).sha256 !== backup.sha256) {
      throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
    }
    await fleet.checkSnapshot(files.path(backup))
    await files.stage(backup, database.database_id)
  }

  /** Puts the staged data of a database in place that this node has taken over. */
  completeRecovery(row: DatabaseRow): Promise<void> {
    return this.#restores.recover(row)
  }

  /** Accepts the loss of missing or damaged data; resolves when the database serves without it. */
  async acceptLoss(caller: Caller, databaseId: string): Promise<void> {
    const work = await this.#lossAcceptance.begin(caller, databaseId)
    if (work) await this.#track(databaseId, 'restore', work)
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
    return this.#track(into, 'backup', () => this.#stored.adopt(caller, from, into, from.name))
  }

  /** Starts an import of all keys of another server; resolves as soon as it is stored. */
  async importFromUrl(caller: Caller, databaseId: string, url: string): Promise<ImportRecord> {
    const begun = await this.#imports.fromUrl(caller, databaseId, url)
    // A failure is stored in the record of the import.
    this.#track(databaseId, 'import', () => begun.ended).catch(() => undefined)
    return begun.record
  }

  /** Imports an RDB file; resolves when the database serves its data. */
  async importFile(caller: Caller, databaseId: string, file: ReceivedFile): Promise<ImportRecord> {
    const begun = await this.#imports.fromFile(caller, databaseId, file)
    await this.#track(databaseId, 'import', () => begun.ended)
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

  /** Where the backups of a database are; nothing on a server that has no object storage and never had. */
  async #places(databaseId: string): Promise<(row: BackupRow) => Promise<BackupPlace | undefined>> {
    const { store, files } = this.#deps
    const rows = await store.run(backupObjects.ofDatabase, { databaseId })
    const byId = new Map(rows.map((row) => [row.backup_id, row]))
    if (!this.#uploads && byId.size === 0) return async () => undefined
    return async (row) => ({ isOnDisk: await files.has(row), object: byId.get(row.backup_id) ?? this.#planned(row) })
  }

  #planned(row: BackupRow): BackupPlace['object'] {
    const goes = row.state === 'completed' && (row.kind === 'manual' || row.kind === 'daily')
    return goes && this.#uploads ? { ...this.#uploads.planned(row), changed_at: row.created_at } : undefined
  }

  /** While a caller waits for a turn, their rights may be withdrawn, and the server may stop. */
  #inTurn<Result>(caller: Caller, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(caller.accountId, async () => {
      if (this.#stop.signal.aborted) throw new HomeportError('starting', {})
      if (this.#deps.isStillMember?.(caller) === false) throw new HomeportError('unauthorized', { scheme: 'Basic' })
      return work()
    })
  }

  async #begin(args: backups.BeginArgs): Promise<DatabaseRow> {
    const { store, lost, home } = this.#deps
    const outcome = await lost.watch(restores.jobOf(args.backup), store.run(backups.begin, { ...args, home }))
    if (outcome.kind !== 'begun') refuse(outcome, args.backup.database_id)
    await this.#track(args.backup.database_id, 'backup', () => this.#creation.create(args.backup))
    this.#uploads?.check()
    return outcome.database
  }

  async #stopOnce(): Promise<void> {
    this.#stop.abort()
    let timer: Timer | undefined
    const graceOver = new Promise<void>((resolve) => {
      timer = this.#deps.clock.after(STOP_GRACE_MS, resolve)
    })
    await Promise.race([Promise.allSettled([this.#daily.stop(), this.#uploads?.stop(), ...this.#active]), graceOver])
    timer?.cancel()
    for (const reject of this.#callers) reject(new HomeportError('starting', {}))
  }

  /** Runs work that continues when its caller disconnects. The database stays awake meanwhile. */
  #track<Result>(databaseId: string, task: Task, begin: () => Promise<Result>): Promise<Result> {
    const work = this.#deps.sleep.during(databaseId, task, begin)
    const ended = work.finally(() => this.#active.delete(work))
    this.#active.add(work)
    return new Promise<Result>((resolve, reject) => {
      this.#callers.add(reject)
      ended.then(resolve, reject).finally(() => this.#callers.delete(reject))
    })
  }

  #audit(caller: Caller, action: AuditEvent['action'], entity: string, details: AuditEvent['details']) {
    return auditRow(caller, { action, entity, details }, this.#deps.clock.now())
  }
}
