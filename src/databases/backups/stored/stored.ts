import { stat } from 'node:fs/promises'
import { auditRow } from '../../../accounts/index.js'
import { newId } from '../../../base/index.js'
import type { StoredBackupRecord } from '../../../contract/databases/stored-backups.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import type { Caller } from '../../../http/index.js'
import type { DatabasesDeps } from '../../deps.js'
import { nameProblems } from '../../rules.js'
import * as objects from '../../transactions/backup-objects.js'
import * as backups from '../../transactions/backups.js'
import { jobOf } from '../../transactions/restores.js'
import { refuse } from '../answers.js'
import type { BackupCreation } from '../creation.js'
import type { BackupDeps } from '../deps.js'
import type { BackupName } from '../files.js'
import type { BackupObjects, ObjectFacts } from './objects.js'

/** Maximum objects that are read for one list. */
const MAX_LISTED = 1_000
const SIDE_BY_SIDE = 8

/** What `StoredBackups` is built from. */
export interface StoredDeps extends BackupDeps, Pick<DatabasesDeps, 'isOperator'> {
  /** Absent: the server has no object storage. */
  readonly objects: BackupObjects | undefined
  readonly creation: BackupCreation
}

/** Brings backups back from object storage. */
export class StoredBackups {
  readonly #deps: StoredDeps
  /** Active downloads by path: no file is downloaded twice at a time. */
  readonly #fetching = new Map<string, Promise<void>>()

  constructor(deps: StoredDeps) {
    this.#deps = deps
  }

  /** Downloads the file of a completed backup, unless it is on this disk. */
  async fetch(backup: backups.BackupRow): Promise<void> {
    const path = this.#deps.files.path(backup)
    if (await exists(path)) return
    const active = this.#fetching.get(path) ?? this.#download(backup, path)
    this.#fetching.set(path, active)
    await active.finally(() => this.#fetching.delete(path))
  }

  /** The backups in object storage, known here or not. Only for the operator: they may belong to any account. */
  async list(caller: Caller, databaseId: string | undefined): Promise<StoredBackupRecord[]> {
    const there = this.#forOperator(caller)
    const found: BackupName[] = []
    const sizes = new Map<BackupName, number>()
    for await (const { sizeBytes, ...name } of there.list(databaseId)) {
      if (found.length === MAX_LISTED) break
      found.push(name)
      sizes.set(name, sizeBytes)
    }
    const records: StoredBackupRecord[] = []
    for (let at = 0; at < found.length; at += SIDE_BY_SIDE) {
      const batch = found.slice(at, at + SIDE_BY_SIDE)
      records.push(...(await Promise.all(batch.map((name) => describe(there, name, sizes.get(name) ?? 0)))))
    }
    return records.sort((a, b) => b.creation_time - a.creation_time)
  }

  /**
   * Makes an object a backup of a database of the caller: downloads it, and loads it in an engine of its own.
   * @returns the new backup.
   */
  async adopt(caller: Caller, from: BackupName, into: string, givenName: string | undefined): Promise<BackupName> {
    const there = this.#forOperator(caller)
    const { store, files, clock, stopping, creation, lost, home } = this.#deps
    const name = (givenName ?? `from storage ${from.backup_id}`).trim()
    const problems = nameProblems(name, 'name')
    if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
    const now = clock.now()
    const backup: backups.NewBackup = {
      backup_id: newId('bak_', now),
      database_id: into,
      name,
      kind: 'manual',
      created_at: now,
    }
    const details = { ...from, into: backup.backup_id }
    const audit = auditRow(caller, { action: 'Adopt Files', entity: into, details }, now)
    const begun = store.run(backups.begin, { backup, accountId: caller.accountId, audit, home })
    const outcome = await lost.watch(jobOf(backup), begun)
    if (outcome.kind !== 'begun') refuse(outcome, into)
    await creation.settle(backup, async () => {
      await there.download(from, await files.prepare(backup), undefined, stopping)
      return creation.figures(backup)
    })
    return { database_id: into, backup_id: backup.backup_id }
  }

  async #download(backup: backups.BackupRow, path: string): Promise<void> {
    const { store, files, fleet, objects: there, stopping } = this.#deps
    const row = await store.run(objects.find, { backupId: backup.backup_id })
    // Without an object, the caller finds later that the file is missing.
    if (row?.state !== 'stored') return
    if (!there) {
      const reason = `it is at ${row.object}, and the option backups of this server is not set`
      throw new HomeportError('snapshot_unusable', { reason })
    }
    // An engine that finds the disk full could not write its log.
    if (!(await fleet.checkSpace(backup.size_bytes))) throw new HomeportError('store_full', {})
    await files.prepare(backup)
    await there.download(backup, path, backup.sha256, stopping)
  }

  #forOperator({ accountId }: Caller): BackupObjects {
    if (!this.#deps.isOperator(accountId)) throw new HomeportError('quarantine_for_operator', {})
    if (this.#deps.objects) return this.#deps.objects
    const problem = 'This server keeps no backups in object storage: set the option backups (docs/backups.md).'
    throw new HomeportError('invalid_request', { problem })
  }
}

async function describe(there: BackupObjects, name: BackupName, objectBytes: number): Promise<StoredBackupRecord> {
  const base = { ...name, object_size: objectBytes }
  try {
    return { ...base, ...rendered(await there.facts(name)) }
  } catch (error) {
    if (!(error instanceof HomeportError)) throw error
    return {
      ...base,
      database_name: '',
      name: '',
      creation_time: 0,
      backup_size: 0,
      key_count: 0,
      problem: error.message,
    }
  }
}

const rendered = ({ database_name, name, created_at, size_bytes, key_count }: ObjectFacts) => ({
  database_name,
  name,
  creation_time: Math.floor(created_at / 1000),
  backup_size: size_bytes,
  key_count,
})

const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined
