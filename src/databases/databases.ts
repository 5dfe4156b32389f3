import type { Service } from '../base/index.js'
import type { CreateDatabaseBody, DatabaseRecord } from '../contract/databases.js'
import { HomeportError } from '../contract/errors.js'
import type { EngineEndpoint } from '../fleet/index.js'
import type { Caller } from '../http/index.js'
import { operations } from '../store/index.js'
import { Backups } from './backups/index.js'
import { BringUp } from './bring-up.js'
import { Changes } from './changes/changes.js'
import { Creation } from './creation.js'
import { Deletion } from './deletion.js'
import { ServingDirectory } from './directory.js'
import { engineSpecOf } from './engine-wish.js'
import { type DatabaseRow, endDelete, fateOf, giveUpChange, undo } from './life.js'
import type { DatabasesOptions } from './parts.js'
import { renderRecord, type ShownCredentials } from './record.js'
import { judgeCreation } from './rules.js'

/** Engines that are brought up side by side after a start. */
const BRING_UP_AT_A_TIME = 8

/** The databases of all accounts. */
export interface Databases extends Service {
  /** What the data plane asks: who may log in, where, to what. Complete once `start` has resolved. */
  readonly directory: ServingDirectory
  /** Backups of the databases; to be started after the listeners, and so stopped before them. */
  readonly backups: Backups

  /**
   * Makes a database; resolves when it accepts commands and every read region replicates. Rejects with nothing left.
   * @param key value of `Idempotency-Key`, if the caller sent one.
   */
  create(caller: Caller, body: CreateDatabaseBody, key?: string): Promise<DatabaseRecord>
  /** One database of the account; rejects with `database_not_found`. */
  get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord>
  /** All databases of the account, oldest first. */
  list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]>
  /** Everything that can be changed about a database that exists. */
  readonly changes: Changes
  /** The record of a database as this caller may see it. */
  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord
  /** Deletes a database of the account; resolves when nothing is left of it. */
  remove(caller: Caller, databaseId: string): Promise<void>

  /**
   * Where the engines of a database can be reached, as `Fleet.endpoints`; a database that is still to be brought up
   * after a start is brought up now.
   */
  endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly EngineEndpoint[]>
}

/** Builds the databases of a store. */
export function createDatabases(parts: DatabasesOptions): Databases {
  return new StoredDatabases(parts)
}

class StoredDatabases implements Databases {
  readonly name = 'databases'
  readonly directory: ServingDirectory
  readonly backups: Backups
  readonly changes: Changes
  readonly #parts: DatabasesOptions
  readonly #creation: Creation
  readonly #deletion: Deletion
  readonly #rows = new Map<string, DatabaseRow>()
  readonly #bringUp = new BringUp((databaseId) => this.#bringBack(databaseId), BRING_UP_AT_A_TIME)

  constructor(parts: DatabasesOptions) {
    const { plans, settings } = parts
    this.#parts = parts
    this.directory = new ServingDirectory({ plans, proxyTerminatesTls: settings.proxyTerminatesTls })
    this.#creation = new Creation(parts, this.directory)
    this.backups = new Backups({ ...parts, wake: (databaseId) => this.endpoints(databaseId) })
    this.#deletion = new Deletion(parts, this.directory, this.backups)
    const bringUp = (databaseId: string): void => this.#bringUp.hurry(databaseId)
    this.changes = new Changes({ ...parts, directory: this.directory, bringUp })
  }

  /** Ends what a crash left half done, then serves every database; their engines come up while others are served. */
  async start(): Promise<void> {
    const broken = await this.backups.recover()
    const rows = await this.#parts.store.run(operations.databases.load, {})
    const kept = rows.filter((row) => fateOf(row) === 'bring-back')
    await this.#parts.fleet.collectOrphans(new Set(kept.map((row) => row.database_id)))
    await Promise.all(rows.map((row) => this.#settleFate(row)))
    for (const row of kept) {
      this.#rows.set(row.database_id, row)
      this.directory.put(row)
    }
    this.#bringUp.add(kept.map((row) => row.database_id).filter((databaseId) => !broken.has(databaseId)))
  }

  async stop(): Promise<void> {
    this.#bringUp.stop()
    await Promise.all([this.#creation.stop(), this.#deletion.stop(), this.changes.stop(), this.backups.stop()])
  }

  async create(caller: Caller, body: CreateDatabaseBody, key?: string): Promise<DatabaseRecord> {
    const { plans, settings } = this.#parts
    const rules = { plans, accountType: caller.accountType, tlsByDefault: settings.redisTlsByDefault }
    const row = await this.#creation.create(caller, judgeCreation(body, rules), key)
    return this.#render(row, caller, 'show')
  }

  async get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord> {
    const { accountId } = caller
    const row = await this.#parts.store.run(operations.databases.get, { accountId, databaseId })
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    return this.#render(row, caller, credentials)
  }

  async list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]> {
    const rows = await this.#parts.store.run(operations.databases.list, { accountId: caller.accountId })
    return rows.map((row) => this.#render(row, caller, credentials))
  }

  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord {
    return this.#render(row, caller, 'show')
  }

  async remove(caller: Caller, databaseId: string): Promise<void> {
    await this.#deletion.remove(caller, databaseId)
  }

  async endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly EngineEndpoint[]> {
    await this.backups.untilReplaced(databaseId, signal)
    this.#bringUp.hurry(databaseId)
    await this.changes.passed(databaseId)
    return this.#parts.fleet.endpoints(databaseId, signal)
  }

  async #settleFate(row: DatabaseRow): Promise<void> {
    const fate = fateOf(row)
    if (fate === 'undo') await undo(this.#parts.store, row.database_id)
    if (fate === 'end') await endDelete(this.#parts.store, row.database_id)
    if (fate === 'bring-back') await giveUpChange(this.#parts.store, row)
  }

  /** The fleet goes on trying by itself when this fails. */
  async #bringBack(databaseId: string): Promise<void> {
    const row = this.#rows.get(databaseId)
    this.#rows.delete(databaseId)
    if (!row || !this.directory.has(databaseId)) return
    try {
      await this.#parts.fleet.ensure(engineSpecOf(row, this.#parts.plans))
    } catch (error) {
      this.#parts.logger.error({ databaseId, err: error }, 'a database does not come up')
    }
  }

  #render(row: DatabaseRow, caller: Caller, credentials: 'show' | 'hide'): DatabaseRecord {
    const { plans, settings, emailOf } = this.#parts
    return renderRecord(row, emailOf(row.account_id), { plans, ...settings }, shownTo(caller, credentials))
  }
}

/** Who may only read must not learn what opens writing. */
function shownTo(caller: Caller, credentials: 'show' | 'hide'): ShownCredentials {
  // Finance looks after what a team costs, not after its data.
  if (credentials === 'hide' || caller.role === 'finance') return 'none'
  return caller.access === 'read' ? 'read-only' : 'all'
}
