import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { auditRow } from '../../accounts/index.js'
import { type AgeWatch, type Clock, newId, type Timer, unreachable } from '../../base/index.js'
import type { Config } from '../../config/index.js'
import type { AdoptBody, QuarantineRecord } from '../../contract/databases/quarantine.js'
import { isPrimaryRegion, REGIONS, type Region } from '../../contract/databases/regions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { hasMoved, type QuarantineEntry, QuarantineFiles } from '../../fleet/index.js'
import type { Caller } from '../../http/index.js'
import { hasSqliteStore } from '../../store/index.js'
import { BackupFiles, type BackupName } from '../backups/files.js'
import type { Creation } from '../creation.js'
import type { DatabasesDeps } from '../deps.js'
import { newIdentity } from '../identity.js'
import { nameProblems } from '../rules.js'
import * as backupsTransactions from '../transactions/backups.js'
import * as databasesTransactions from '../transactions/databases.js'

/** Up to this many unknown databases and backups are moved without consent; with more, the store is likely the wrong one. */
const MAX_WITHOUT_CONSENT = 3
const PRUNE_EVERY_MS = 60 * 60_000
const BACKUP_ID = /^[A-Za-z0-9_-]{1,100}$/

/** What `Quarantine` is built from. */
export interface QuarantineDeps
  extends Pick<DatabasesDeps, 'dataDir' | 'store' | 'fleet' | 'logger' | 'problems' | 'isOperator'> {
  readonly clock: Clock
  /** Whether entries may be deleted for their age. */
  readonly ages: Pick<AgeWatch, 'mayDelete'>
  /** How long entries are kept. */
  readonly keepMs: number
  readonly accept: 'few' | 'quarantine'
  readonly creation: Pick<Creation, 'adopt'>
}

/** Files that a start has found and the store does not know. */
export interface UnknownData {
  readonly databaseIds: readonly string[]
  readonly backups: readonly BackupName[]
  /** How many databases the store knows. */
  readonly known: number
}

type What = Pick<QuarantineEntry, 'kind' | 'databaseId' | 'backupId'>

/** Files that the store does not know; see `index.ts`. */
export class Quarantine {
  readonly #deps: QuarantineDeps
  readonly #files: QuarantineFiles
  readonly #backups: BackupFiles
  #timer: Timer | undefined
  #isStopped = false
  #work: Promise<unknown> = Promise.resolve()

  constructor(deps: QuarantineDeps) {
    this.#deps = deps
    this.#files = new QuarantineFiles(deps.dataDir)
    this.#backups = new BackupFiles(deps.dataDir)
  }

  /**
   * Moves unknown files into quarantine, and reports everything that is there.
   * @throws HomeportError `unknown_data` when there is too much to move without consent; then nothing is moved.
   */
  async start(found: UnknownData): Promise<void> {
    this.check(found)
    for (const databaseId of found.databaseIds) {
      await this.#moveIn(this.#directoryOf(databaseId), { kind: 'database', databaseId })
    }
    for (const { database_id: databaseId, backup_id: backupId } of found.backups) {
      const path = this.#backups.path({ database_id: databaseId, backup_id: backupId })
      await this.#moveIn(path, { kind: 'backup', databaseId, backupId })
    }
    await this.#files.deleteUnfilled()
    await this.#prune()
    this.#pruneLater()
    for (const entry of await this.#files.list()) this.#report(entry)
  }

  /**
   * Moves the file of a backup that the store knows into quarantine, and reports it.
   * @param reason one sentence for people.
   * @returns the id of the entry. Rejects when the file cannot be moved; then it is where it was.
   */
  async keepBackup(backup: BackupName, reason: string): Promise<string> {
    const { database_id: databaseId, backup_id: backupId } = backup
    const what = { kind: 'backup', databaseId, backupId } as const
    const entry = await this.#take(this.#backups.path(backup), what, reason)
    this.#report(entry)
    return entry.id
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#work
  }

  /** The entries, oldest first. Only for the operator, because they may belong to any account. */
  async list(caller: Caller): Promise<QuarantineRecord[]> {
    this.#refuseOthers(caller)
    return (await this.#files.list()).map((entry) => this.#recordOf(entry))
  }

  /** Turns an entry into a database or a backup again. Calls run one after the other. */
  adopt(caller: Caller, id: string, body: AdoptBody): Promise<{ database_id: string; backup_id?: string }> {
    this.#refuseOthers(caller)
    const work = this.#work.then(() => this.#adopt(caller, id, body))
    this.#work = work.catch(() => undefined)
    return work
  }

  /** @throws HomeportError `unknown_data` when there is too much to move without consent. */
  check({ databaseIds, backups, known }: UnknownData): void {
    const { accept, dataDir } = this.#deps
    const isMost = databaseIds.length > known
    const areMany = databaseIds.length + backups.length > MAX_WITHOUT_CONSENT
    if (accept === 'quarantine' || !(isMost || areMany)) return
    throw new HomeportError('unknown_data', {
      directory: dataDir,
      databases: databaseIds.length,
      backups: backups.length,
      known,
    })
  }

  async #moveIn(path: string, what: What): Promise<void> {
    try {
      await this.#take(path, what, 'The store does not know it.')
    } catch (error) {
      const { kind, databaseId, backupId } = what
      this.#deps.logger.error('quarantine_failed', { error, what: kind, databaseId, backupId })
    }
  }

  async #take(path: string, what: What, reason: string): Promise<QuarantineEntry> {
    const { clock, logger } = this.#deps
    const entry = await this.#files.take(path, { ...what, reason, movedAt: clock.now() })
    logger.warn('quarantine_added', { quarantineId: entry.id, from: entry.from })
    return entry
  }

  /**
   * Reports an entry, unless nobody needs to act: the torn end of a log was never acknowledged, and the files of a moved
   * database are served elsewhere.
   */
  #report(entry: QuarantineEntry): void {
    if (entry.kind === 'tail' || hasMoved(entry)) return
    const until = new Date(entry.movedAt + this.#deps.keepMs).toISOString()
    this.#deps.problems.report({
      kind: 'quarantine',
      subject: entry.id,
      severity: 'warning',
      title: `Data of ${entry.from} is in quarantine: ${sentence(entry.reason)}`,
      advice:
        entry.kind === 'store-log'
          ? `Its changes were acknowledged to callers: compare with their data, or restore a copy of the store. It is deleted after ${until}.`
          : `Bring it back with \`homeport db adopt ${entry.id}\`; it is deleted after ${until}.`,
    })
  }

  async #prune(): Promise<void> {
    const { clock, keepMs, logger, problems, ages } = this.#deps
    if (!ages.mayDelete) return
    const gone = await this.#files.prune(clock.now() - keepMs)
    for (const id of gone) {
      logger.warn('quarantine_deleted', { quarantineId: id })
      problems.resolve('quarantine', id)
    }
  }

  #pruneLater(): void {
    const { clock, logger } = this.#deps
    if (this.#isStopped) return
    this.#timer = clock.after(PRUNE_EVERY_MS, () => {
      this.#work = this.#work
        .then(() => this.#prune())
        .catch((error: unknown) => logger.warn('quarantine_not_deleted', { error }))
        .finally(() => this.#pruneLater())
    })
  }

  async #adopt(caller: Caller, id: string, body: AdoptBody): Promise<{ database_id: string; backup_id?: string }> {
    const entry = await this.#files.find(id)
    if (!entry) throw new HomeportError('quarantine_not_found', { id })
    const adopted = await this.#restoreEntry(caller, entry, body)
    await this.#files.delete(id)
    this.#deps.problems.resolve('quarantine', id)
    return adopted
  }

  #restoreEntry(caller: Caller, entry: QuarantineEntry, body: AdoptBody) {
    switch (entry.kind) {
      case 'database':
        return this.#adoptDatabase(caller, entry, body)
      case 'backup':
        return this.#adoptBackup(caller, entry, body)
      case 'tail': {
        const reason = 'it is only the end of a log and has no complete command'
        throw new HomeportError('quarantine_unusable', { id: entry.id, reason })
      }
      case 'store-log': {
        const reason = 'it is a log of the store, which has continued without it'
        throw new HomeportError('quarantine_unusable', { id: entry.id, reason })
      }
      default:
        return unreachable(entry.kind)
    }
  }

  /** The data is in place before the row: after a crash in between, the next start quarantines it again. */
  async #adoptDatabase(caller: Caller, entry: QuarantineEntry, body: AdoptBody): Promise<{ database_id: string }> {
    const name = nameOf(body.name ?? `adopted ${entry.databaseId}`.slice(0, 60))
    const found = await findPrimary(this.#files.dataOf(entry.id))
    if (!found) {
      const reason = 'none of its directories holds the data of a primary in a region that Homeport knows'
      throw new HomeportError('quarantine_unusable', { id: entry.id, reason })
    }
    const isTaken = (await this.#rows()).has(entry.databaseId) || (await exists(this.#directoryOf(entry.databaseId)))
    const databaseId = isTaken ? newIdentity().databaseId : entry.databaseId
    const path = this.#directoryOf(databaseId)
    await this.#files.restore(entry.id, path)
    try {
      await this.#deps.creation.adopt(caller, {
        ...found,
        platform: REGIONS[found.primaryRegion].platform,
        databaseId,
        name,
        from: entry.from,
      })
    } catch (error) {
      if (!(await this.#rows()).has(databaseId)) await this.#files.undoRestore(entry.id, path)
      throw error
    }
    return { database_id: databaseId }
  }

  async #adoptBackup(caller: Caller, entry: QuarantineEntry, body: AdoptBody) {
    const { store, fleet, clock } = this.#deps
    const databaseId = body.database_id ?? entry.databaseId
    const name = nameOf(body.name ?? `adopted ${entry.backupId ?? ''}`.slice(0, 60))
    const database = await store.run(databasesTransactions.get, { accountId: caller.accountId, databaseId })
    if (!database) throw new HomeportError('database_not_found', { databaseId })
    const file = this.#files.dataOf(entry.id)
    const { keys, dataBytes } = await fleet.checkSnapshot(file)
    const now = clock.now()
    const backupId = await this.#freeBackupId(databaseId, entry.backupId, now)
    const backup = { database_id: databaseId, backup_id: backupId }
    const path = await this.#backups.prepare(backup)
    await this.#files.restore(entry.id, path)
    try {
      const facts = await this.#backups.facts(backup)
      const details = { backup_id: backupId, from: entry.from }
      const event = { action: 'Adopt Files', entity: databaseId, details } as const
      await store.run(backupsTransactions.adopt, {
        backup: { ...backup, name, kind: 'manual', created_at: entry.movedAt },
        result: { kind: 'completed', keyCount: keys, dataBytes, ...facts },
        at: now,
        audit: auditRow(caller, event, now),
      })
    } catch (error) {
      // The commit may have succeeded although it was answered with an error.
      const rows = await store.run(backupsTransactions.everyName, {})
      if (!rows.some((row) => row.backup_id === backupId)) await this.#files.undoRestore(entry.id, path)
      throw error
    }
    return backup
  }

  async #freeBackupId(databaseId: string, oldId: string | undefined, now: number): Promise<string> {
    if (oldId === undefined || !BACKUP_ID.test(oldId)) return newId('bak_', now)
    const isKnown = (await this.#deps.store.run(backupsTransactions.everyName, {})).some(
      (row) => row.backup_id === oldId,
    )
    const path = this.#backups.path({ database_id: databaseId, backup_id: oldId })
    return isKnown || (await exists(path)) ? newId('bak_', now) : oldId
  }

  async #rows(): Promise<ReadonlySet<string>> {
    return new Set(await this.#deps.store.run(databasesTransactions.ids, {}))
  }

  #directoryOf(databaseId: string): string {
    return join(this.#deps.dataDir, 'databases', databaseId)
  }

  #recordOf({ id, kind, databaseId, backupId, from, reason, movedAt }: QuarantineEntry): QuarantineRecord {
    return {
      id,
      kind,
      database_id: databaseId,
      from,
      reason,
      ...(backupId !== undefined && { backup_id: backupId }),
      moved_at: Math.floor(movedAt / 1000),
      deleted_at: Math.floor((movedAt + this.#deps.keepMs) / 1000),
    }
  }

  #refuseOthers({ accountId }: Caller): void {
    if (!this.#deps.isOperator(accountId)) throw new HomeportError('quarantine_for_operator', {})
  }
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

function nameOf(given: string): string {
  const name = given.trim()
  const problems = nameProblems(name, 'name')
  if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
  return name
}

/** Finds the primary's region in the directory of a database, and how its data is persisted. */
async function findPrimary(
  path: string,
): Promise<{ primaryRegion: Region; persistence: 'append-only' | 'snapshot' } | undefined> {
  const regions = (await readdir(path)).filter(isPrimaryRegion)
  const kinds = [
    ['appendonlydir', 'append-only'],
    ['dump.rdb', 'snapshot'],
  ] as const
  for (const [file, persistence] of kinds) {
    for (const primaryRegion of regions) {
      if (await exists(join(path, primaryRegion, file))) return { primaryRegion, persistence }
    }
  }
  return undefined
}

const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/**
 * Refuses a data directory that has databases but no store. Must run before the store is opened, which would create one.
 * @throws HomeportError `store_missing`, unless the operator has agreed to a new store.
 */
export async function refuseLostStore(config: Pick<Config, 'dataDir' | 'store' | 'acceptUnknownData'>): Promise<void> {
  if (config.store.kind !== 'sqlite' || config.acceptUnknownData === 'quarantine') return
  const databases = await readdir(join(config.dataDir, 'databases')).catch(() => [])
  if (databases.length === 0 || (await hasSqliteStore(config.dataDir))) return
  throw new HomeportError('store_missing', { directory: config.dataDir, databases: databases.length })
}
