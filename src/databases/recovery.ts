import { auditRow } from '../accounts/index.js'
import { isObject } from '../base/index.js'
import type { RecoveryRecord } from '../contract/databases/recovery.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { Backups } from './backups/index.js'
import type { ChangeDeps } from './deps.js'
import { engineSpecOf } from './desired-engine.js'
import type { Homes } from './homes.js'
import type { DatabaseRow } from './lifecycle.js'
import { setAside } from './set-aside.js'
import * as databases from './transactions/databases.js'
import * as recoveries from './transactions/recoveries.js'

/** To all nodes: a database has another home. */
export const TAKEN = 'databases.taken'

/** What `Recovery` is built from. */
export interface RecoveryDeps extends ChangeDeps {
  readonly homes: Homes
  readonly backups: Backups
}

/**
 * Recreates a database whose node is gone on this node, from a backup in object storage. Only on request, because writes
 * after the backup are lost.
 *
 * ```
 *   backup downloaded, decrypted, loaded once, staged ──commit──▶ home: this node; restoring ──▶ data in place, served
 *        │ any failure                                    │ a crash
 *        ▼                                                ▼
 *   nothing has changed                               the next start of this node completes it
 * ```
 *
 * The old node cannot serve the database after the commit: while the old node runs, a recovery is refused. When it starts
 * again, the row names another home, and the old node sets its files aside and never deletes them.
 */
export class Recovery {
  readonly #deps: RecoveryDeps
  readonly #active = new Map<string, Promise<RecoveryRecord>>()

  constructor(deps: RecoveryDeps) {
    this.#deps = deps
    deps.cluster?.handle(TAKEN, (payload) => this.#stopServing(isObject(payload) ? String(payload.databaseId) : ''))
  }

  /**
   * Resolves when the database serves the data of the backup; without an id, of the newest backup that this node can get.
   */
  recover(caller: Caller, databaseId: string, backupId: string | undefined): Promise<RecoveryRecord> {
    if (this.#active.has(databaseId)) {
      return Promise.reject(new HomeportError('database_busy', { modifyingState: 'restoring' }))
    }
    const work = this.#recover(caller, databaseId, backupId).finally(() => this.#active.delete(databaseId))
    this.#active.set(databaseId, work)
    return work
  }

  /** Sets aside the files of databases that other nodes have taken over from this one. Call it before any engine starts. */
  async setAside(rows: readonly DatabaseRow[]): Promise<void> {
    const { settings, homes } = this.#deps
    if (settings.node === undefined) return
    const elsewhere = new Set(rows.filter((row) => !homes.isHere(row)).map((row) => row.database_id))
    await setAside({ ...this.#deps, node: settings.node }, (databaseId) => elsewhere.has(databaseId))
  }

  async #recover(caller: Caller, databaseId: string, backupId: string | undefined): Promise<RecoveryRecord> {
    const { store, homes, backups, clock, settings, cluster } = this.#deps
    const row = await store.run(databases.get, { accountId: caller.accountId, databaseId })
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    const from = row.home ?? ''
    if (!homes.isHere(row) && cluster?.peers.some(({ name }) => name === from)) {
      throw new HomeportError('database_home_runs', { databaseId, node: from })
    }
    const backup = await backups.recovered.find(row, backupId)
    const to = settings.node ?? ''
    const facts = {
      database_id: databaseId,
      backup_id: backup.backup_id,
      from_node: from,
      node: to,
      data_time: Math.floor(backup.created_at / 1000),
      age_seconds: Math.max(0, Math.floor((clock.now() - backup.created_at) / 1000)),
    }
    if (homes.isHere(row)) {
      if (this.#isTaken(row)) await this.#finish(databaseId)
      else await backups.restore(caller, databaseId, backup.backup_id)
      return facts
    }
    if (row.home === null) throw new HomeportError('database_without_home', { databaseId })
    await this.#prepare(row, backup)
    const at = clock.now()
    const { backup_id } = backup
    const details = { backup_id, from_node: from, node: to, data_time: new Date(backup.created_at).toISOString() }
    const audit = auditRow(caller, { action: 'Restore Backup', entity: databaseId, details }, at)
    const taken = { database_id: databaseId, from_node: from, to_node: to, backup_id, taken_at: at }
    if (!(await store.run(recoveries.begin, { taken, audit }))) {
      throw new HomeportError('database_busy', { modifyingState: row.modifying_state })
    }
    await this.#finish(databaseId)
    return facts
  }

  /**
   * Whether an earlier request has given the database to this node, and has failed afterwards, or lost the answer to the
   * commit.
   */
  #isTaken({ database_id: databaseId, modifying_state: modifyingState }: DatabaseRow): boolean {
    return modifyingState === 'restoring' && !this.#deps.directory.has(databaseId)
  }

  /** Carries out the steps after the commit. May be repeated. */
  async #finish(databaseId: string): Promise<void> {
    const { cluster, homes } = this.#deps
    // A node that has just come back may have read the row before the commit.
    await cluster?.notify(TAKEN, { databaseId })
    // A node on the same machine may listen on the port.
    await homes.announce([databaseId])
    await this.#serve(databaseId)
  }

  async #prepare(row: DatabaseRow, backup: Awaited<ReturnType<Backups['recovered']['find']>>): Promise<void> {
    const { fleet, plans, backups } = this.#deps
    const spec = engineSpecOf(row, plans)
    const { data_bytes: dataBytes } = backup
    if (dataBytes > spec.maxMemoryBytes) {
      throw new HomeportError('backup_too_large', { dataBytes, limitBytes: spec.maxMemoryBytes })
    }
    await backups.recovered.stage(row, backup)
    // This node may have been its home before.
    await fleet.quarantineData(spec, `The database was recovered from ${backup.backup_id}.`)
  }

  async #serve(databaseId: string): Promise<void> {
    const { store, backups, directory, onServing } = this.#deps
    const taken = await store.run(databases.find, { databaseId })
    if (!taken) throw new HomeportError('database_not_found', { databaseId })
    await backups.recovered.putInPlace(taken)
    const row = await store.run(databases.find, { databaseId })
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    directory.put(row)
    await onServing(databaseId)
  }

  /**
   * Called when another node has taken a database over. Stops serving it here, and forgets which nodes serve which tokens.
   */
  async #stopServing(databaseId: string): Promise<void> {
    const { store, homes, directory, sleep, fleet } = this.#deps
    homes.locator?.forget()
    const row = await store.run(databases.find, { databaseId })
    if (!row || homes.isHere(row) || !directory.rowOf(databaseId)) return
    directory.remove(databaseId)
    sleep.forget(databaseId)
    await fleet.suspend(databaseId)
  }
}
