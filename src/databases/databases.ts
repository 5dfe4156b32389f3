import { type Service, TargetGate } from '../base/index.js'
import type { DatabaseSummaries, DatabaseTally, SummariesQuery } from '../contract/console/console.js'
import type { AwakeRecord } from '../contract/databases/awake.js'
import type { CreateDatabaseBody, DatabaseRecord } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { DataReport, EngineEndpoint } from '../fleet/index.js'
import type { Caller } from '../http/index.js'
import { Backups } from './backups/index.js'
import { Changes } from './changes/changes.js'
import { Creation } from './creation.js'
import { Deletion } from './deletion.js'
import type { ChangeDeps, DatabasesDeps } from './deps.js'
import { DesiredEngines, engineSpecOf, planOf, settingBoundsOf } from './desired-engine.js'
import { ServingDirectory } from './directory.js'
import {
  abandonChange,
  type DatabaseRow,
  everyRow,
  finishDeletion,
  PAGE_ROWS,
  recoveryOf,
  undoCreation,
} from './life.js'
import { Losses } from './losses.js'
import { Quarantine } from './quarantine/index.js'
import { type RecordSettings, renderRecord, type ShownCredentials } from './record.js'
import { validateCreation } from './rules.js'
import { renderAwake, Sleep } from './sleep/index.js'
import { type KnownDatabase, type SummarySettings, summariesOf, tallyOf } from './summaries.js'
import * as databases from './transactions/databases.js'
import { Usage } from './usage/index.js'
import { Administration } from './users/index.js'

/** The databases of all accounts. */
export interface Databases extends Service {
  /** What the data plane asks: who may log in, where, to what. Complete once `start` has resolved. */
  readonly directory: ServingDirectory
  /** Backups of the databases; to be started after the listeners, and so stopped before them. */
  readonly backups: Backups
  /** What the databases use; to be started after them and before the data plane, and so stopped after that. */
  readonly usage: Usage
  /** What the store does not know and stands in the data directory. */
  readonly quarantine: Quarantine

  /**
   * Makes a database; resolves when it accepts commands and every read region replicates. Rejects with nothing left.
   * @param key value of `Idempotency-Key`, if the caller sent one.
   */
  create(caller: Caller, body: CreateDatabaseBody, key?: string): Promise<DatabaseRecord>
  /** One database of the account; rejects with `database_not_found`. */
  get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord>
  /** All databases of the account, oldest first; whether one that comes or goes in the meantime is among them is open. */
  list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]>
  /** How many databases of an account do what. From memory, as `summaries`: many databases cost little. */
  tally(accountId: string): DatabaseTally
  /** A page of short facts of the databases of an account, oldest first. */
  summaries(accountId: string, query: SummariesQuery): DatabaseSummaries
  /** Everything that can be changed about a database that exists. */
  readonly changes: Changes
  /** Answers commands of the data plane about the databases themselves. */
  readonly administration: Administration
  /** The record of a database as this caller may see it. */
  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord
  /** Deletes a database of the account; resolves when nothing is left of it. */
  remove(caller: Caller, databaseId: string): Promise<void>

  /** What keeps a database of the account awake, or since when it sleeps. Wakes nothing. */
  whyAwake(caller: Caller, databaseId: string): Promise<AwakeRecord>
  /** Whether the engines of a database run or are about to. */
  isAwake(databaseId: string): boolean
  /** Whether those of any do. */
  readonly isAnyAwake: boolean

  /**
   * Where the engines of a database can be reached, for a request of a client: wakes it if it sleeps, and waits as long
   * as its engines get on. Rejects as `Fleet.endpoints`, and with `budget_exceeded` while the database is suspended.
   */
  endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly EngineEndpoint[]>

  /** Takes what the fleet has found of a database's data. */
  noteData(databaseId: string, report: DataReport): void
}

/** Builds the databases of a store. */
export function createDatabases(deps: DatabasesDeps): Databases {
  return new StoredDatabases(deps)
}

const NO_SETTINGS: ReadonlyMap<string, string> = new Map()

class StoredDatabases implements Databases {
  readonly name = 'databases'
  readonly directory: ServingDirectory
  readonly backups: Backups
  readonly changes: Changes
  readonly administration: Administration
  readonly usage: Usage
  readonly quarantine: Quarantine
  readonly #deps: DatabasesDeps
  readonly #creation: Creation
  readonly #deletion: Deletion
  readonly #engines: DesiredEngines
  readonly #sleep: Sleep
  readonly #losses: Losses
  readonly #recordSettings: RecordSettings

  constructor(deps: DatabasesDeps) {
    const { plans, settings } = deps
    this.#deps = deps
    this.directory = new ServingDirectory({
      plans,
      proxyTerminatesTls: settings.proxyTerminatesTls,
      domain: settings.redisDomain?.toLowerCase(),
    })
    const { directory } = this
    const engines = new DesiredEngines({ plans, rowOf: (databaseId) => directory.rowOf(databaseId) })
    const sleep = new Sleep({ ...deps, engines, mostAwake: settings.awakeDatabases })
    const changeDeps: ChangeDeps = { ...deps, directory, sleep, engines }
    this.#engines = engines
    this.#sleep = sleep
    this.#recordSettings = { plans, ...settings, isAwake: (databaseId) => sleep.isAwake(databaseId) }
    directory.onChange(() => sleep.recheck())
    this.#creation = new Creation(changeDeps)
    this.quarantine = new Quarantine({
      ...deps,
      keepMs: settings.quarantineMs,
      accept: settings.acceptUnknownData,
      creation: this.#creation,
    })
    this.#losses = new Losses({ ...changeDeps, isAwake: (databaseId) => sleep.isAwake(databaseId) })
    const onReplaced = (databaseId: string): void => this.#losses.replaced(databaseId)
    this.backups = new Backups({ ...deps, sleep, onReplaced, targets: new TargetGate(settings.deliveryTargets) })
    this.#deletion = new Deletion({ ...changeDeps, backups: this.backups })
    const changes = new Changes(changeDeps)
    this.usage = new Usage({
      ...deps,
      directory,
      flushMs: settings.usageFlushMs,
      sample: (databaseId) => deps.fleet.sample(databaseId),
      inTurn: (databaseId, work) => changes.inTurn(databaseId, work),
      publish: (row) => changes.publish(row),
      changePlan: (caller, databaseId, plan) => changes.changePlan(caller, databaseId, { plan_name: plan }),
    })
    changes.onBudgetChange((databaseId) => this.usage.settle(databaseId))
    this.changes = changes
    this.administration = this.#administer()
  }

  #administer(): Administration {
    const { plans, emailOf, hasNewer = () => false, engineSettings = NO_SETTINGS } = this.#deps
    return new Administration({
      row: (databaseId) => this.directory.rowOf(databaseId),
      change: (caller, databaseId, judge) => this.changes.reconfigure(caller, databaseId, judge),
      emailOf,
      factsOf: (row) => ({
        ...settingBoundsOf(row, plans),
        defaults: engineSettings,
        maxClients: planOf(row, plans).db_max_clients,
      }),
      hasNewer,
    })
  }

  /** Ends what a crash left half done, then serves every database. Nothing is woken. */
  async start(): Promise<void> {
    const before = await everyRow(this.#deps.store)
    const databaseIds = await this.#deps.fleet.collectOrphans(new Set(before.map((row) => row.database_id)))
    // A store that is not the right one is found out before anything is settled by what it says.
    this.quarantine.check({ databaseIds, backups: [], known: before.length })
    const blocked = await this.backups.recover()
    this.#engines.block(blocked)
    const rows = await everyRow(this.#deps.store)
    await Promise.all(rows.map((row) => this.#recover(row)))
    // While a restore is still to be ended, its files are needed.
    const backups = blocked.size === 0 ? await this.backups.unknownFiles() : []
    await this.quarantine.start({ databaseIds, backups, known: rows.length })
    const kept = rows.filter((row) => recoveryOf(row) === 'serve')
    for (const row of kept) this.directory.put(row)
    this.#losses.load(kept)
    void this.#losses.inspectAll(kept)
  }

  async stop(): Promise<void> {
    const ending = [this.#creation, this.#deletion, this.changes, this.backups, this.quarantine]
    await Promise.all(ending.map((part) => part.stop()))
    this.#sleep.stop()
    await this.#losses.stop()
  }

  async create(caller: Caller, body: CreateDatabaseBody, key?: string): Promise<DatabaseRecord> {
    const { plans, settings } = this.#deps
    const rules = { plans, accountType: caller.accountType, tlsByDefault: settings.redisTlsByDefault }
    const row = await this.#creation.create(caller, validateCreation(body, rules), key)
    return this.#render(row, caller, 'show')
  }

  async get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord> {
    const { accountId } = caller
    const row = await this.#deps.store.run(databases.get, { accountId, databaseId })
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    return this.#render(row, caller, credentials)
  }

  async list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]> {
    const { accountId } = caller
    const records: DatabaseRecord[] = []
    let after: databases.ListPlace | undefined
    do {
      // A page at a time: neither the thread of the store nor this one belongs to a long list alone.
      const rows = await this.#deps.store.run(databases.list, { accountId, after, limit: PAGE_ROWS })
      for (const row of rows) records.push(this.#render(row, caller, credentials))
      after = rows.length < PAGE_ROWS ? undefined : placeOf(rows.at(-1))
    } while (after)
    return records
  }

  tally(accountId: string): DatabaseTally {
    return tallyOf(this.#known(accountId), this.#summarySettings)
  }

  summaries(accountId: string, query: SummariesQuery): DatabaseSummaries {
    return summariesOf(this.#known(accountId), query, this.#summarySettings)
  }

  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord {
    return this.#render(row, caller, 'show')
  }

  async remove(caller: Caller, databaseId: string): Promise<void> {
    await this.#deletion.remove(caller, databaseId)
  }

  async whyAwake(caller: Caller, databaseId: string): Promise<AwakeRecord> {
    const { state } = await this.get(caller, databaseId, 'hide')
    return renderAwake(databaseId, state, await this.#sleep.why(databaseId))
  }

  isAwake(databaseId: string): boolean {
    return this.#sleep.isAwake(databaseId)
  }

  get isAnyAwake(): boolean {
    return this.#sleep.isAnyAwake
  }

  async endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly EngineEndpoint[]> {
    await this.backups.untilReplaced(databaseId, signal)
    await this.changes.untilReleased(databaseId)
    if (this.directory.rowOf(databaseId)?.state === 'suspended') throw new HomeportError('budget_exceeded', {})
    this.#sleep.wake(databaseId)
    return this.#deps.fleet.endpoints(databaseId, signal, 'while-loading')
  }

  noteData(databaseId: string, report: DataReport): void {
    this.#losses.note(databaseId, report)
  }

  get #summarySettings(): SummarySettings {
    const isBeingCreated = (databaseId: string): boolean => this.#engines.isBeingCreated(databaseId)
    return { ...this.#recordSettings, isBeingCreated, nowMs: this.usage.nowMs }
  }

  /** What is served, and what is on its way out. */
  #known(accountId: string): KnownDatabase[] {
    const known = [...this.usage.ledgers, ...this.#deletion.pending.map((row) => ({ row }))]
    return known.filter(({ row }) => row.account_id === accountId)
  }

  async #recover(row: DatabaseRow): Promise<void> {
    const recovery = recoveryOf(row)
    if (recovery !== 'serve') await this.#deps.fleet.remove(row.database_id)
    if (recovery === 'undo-creation') await undoCreation(this.#deps.store, row.database_id)
    if (recovery === 'finish-deletion') {
      await this.backups.removeAll(row.database_id)
      await finishDeletion(this.#deps.store, row.database_id)
    }
    if (recovery !== 'serve') return
    // Before the change counts as given up, so that a start that is cut off as well does it again.
    if (row.modifying_state === 'updating_regions')
      await this.#deps.fleet.dropStrays(engineSpecOf(row, this.#deps.plans))
    await abandonChange(this.#deps.store, row)
  }

  #render(row: DatabaseRow, caller: Caller, credentials: 'show' | 'hide'): DatabaseRecord {
    return renderRecord(row, this.#deps.emailOf(row.account_id), this.#recordSettings, shownTo(caller, credentials))
  }
}

const placeOf = (row: DatabaseRow | undefined): databases.ListPlace | undefined =>
  row && { created_at: row.created_at, database_id: row.database_id }

/** A caller that may only read must not learn credentials that allow writing. */
function shownTo(caller: Caller, credentials: 'show' | 'hide'): ShownCredentials {
  // Finance looks after what a team costs, not after its data.
  if (credentials === 'hide' || caller.role === 'finance') return 'none'
  return caller.access === 'read' ? 'read-only' : 'all'
}
