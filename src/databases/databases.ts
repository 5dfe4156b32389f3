import { TargetGate } from '../base/index.js'
import type { AwakeRecord } from '../contract/databases/awake.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { DataReport, EngineEndpoint } from '../fleet/index.js'
import type { Caller } from '../http/index.js'
import { Backups } from './backups/index.js'
import { Changes } from './changes/changes.js'
import { Creation } from './creation.js'
import { Deletion } from './deletion.js'
import type { ChangeDeps, DatabasesDeps } from './deps.js'
import { DesiredEngines, engineSpecOf, planOf, regionOf, settingBoundsOf } from './desired-engine.js'
import { ServingDirectory, servingOf } from './directory.js'
import { Homes, type OtherNodes, settingsElsewhere } from './homes.js'
import type { Databases } from './interface.js'
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
import type { CreationRequest } from './older-spelling.js'
import { capacityHere } from './own-capacity.js'
import { Placement } from './placement.js'
import { Quarantine } from './quarantine/index.js'
import { type RecordSettings, renderRecord, shownTo, withSetAside } from './record.js'
import { Recovery } from './recovery.js'
import { validateCreation } from './rules.js'
import { renderAwake, Sleep } from './sleep/index.js'
import type { KnownDatabase, KnownDatabases, SummarySettings } from './summaries.js'
import { NOBODY_SUSPENDED, refusalOfSuspended, type Suspended, suspensionOf } from './suspended.js'
import * as databases from './transactions/databases.js'
import { systemCaller, Usage } from './usage/index.js'
import { Administration } from './users/index.js'
import { type WithOtherNodes, withOtherNodes } from './with-other-nodes.js'

/** Builds the databases of a store. */
export function createDatabases(deps: DatabasesDeps): Databases {
  return new StoredDatabases(deps)
}

class StoredDatabases implements Databases {
  readonly name = 'databases'
  readonly directory: ServingDirectory
  readonly backups: Backups
  readonly recovery: Recovery
  readonly homes: Homes
  readonly placement: Placement
  readonly others: WithOtherNodes
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
  readonly #suspended: Suspended
  readonly #recordSettings: RecordSettings

  constructor(deps: DatabasesDeps) {
    const { plans, settings, isAccountSuspended } = deps
    this.#deps = deps
    const serving = servingOf(plans, settings)
    const directory = new ServingDirectory(serving)
    this.directory = directory
    const suspended: Suspended = isAccountSuspended ? { isAccountSuspended } : NOBODY_SUSPENDED
    this.#suspended = suspended
    const only = regionOf(settings)
    const engines = new DesiredEngines({ plans, suspended, only, rowOf: (databaseId) => directory.rowOf(databaseId) })
    const sleep = new Sleep({ ...deps, engines, mostAwake: settings.awakeDatabases })
    this.homes = this.#homesOf()
    this.placement = this.#place()
    const changeDeps: ChangeDeps = {
      ...deps,
      directory,
      sleep,
      engines,
      placement: this.placement,
      homes: this.homes,
      replicas: () => this.others.replicas,
    }
    this.#engines = engines
    this.#sleep = sleep
    const isAwake = (databaseId: string): boolean => sleep.isAwake(databaseId)
    const isReplicated = (databaseId: string): boolean => this.others.standbys?.isReplicated(databaseId) ?? false
    this.#recordSettings = { plans, suspended, ...settings, isAwake, isReplicated }
    directory.onChange(() => sleep.recheck())
    this.#creation = new Creation(changeDeps)
    const { quarantineMs: keepMs, acceptUnknownData: accept } = settings
    this.quarantine = new Quarantine({ ...deps, keepMs, accept, creation: this.#creation })
    this.#losses = new Losses({ ...changeDeps, isAwake })
    this.backups = this.#newBackups(sleep, only)
    this.recovery = new Recovery({ ...changeDeps, homes: this.homes, backups: this.backups })
    this.#deletion = new Deletion({ ...changeDeps, backups: this.backups })
    this.changes = new Changes(changeDeps, [this.#creation, this.backups, this.#deletion])
    this.usage = this.#count(this.changes)
    this.changes.onBudgetChange((databaseId) => this.usage.settle(databaseId))
    this.administration = this.#administer()
    const { changes, usage, homes } = this
    this.others = withOtherNodes({ ...changeDeps, changes, usage, homes, only }, serving)
  }

  #newBackups(sleep: Sleep, only: string | undefined): Backups {
    const { settings } = this.#deps
    return new Backups({
      ...this.#deps,
      sleep,
      onReplaced: (databaseId) => this.#losses.replaced(databaseId),
      home: settings.node ?? '',
      only,
      mostManual: settings.manualBackups,
      withdraw: async (databaseId) => this.others.replicas?.withdraw(databaseId),
      targets: new TargetGate(settings.deliveryTargets),
    })
  }

  #count(changes: Changes): Usage {
    return new Usage({
      ...this.#deps,
      directory: this.directory,
      suspended: this.#suspended,
      flushMs: this.#deps.settings.usageFlushMs,
      sample: (databaseId) => this.#deps.fleet.sample(databaseId),
      inTurn: (databaseId, work) => changes.inTurn(databaseId, work),
      publish: (row) => changes.publish(row),
      changePlan: (caller, databaseId, plan) => changes.changePlan(caller, databaseId, { plan_name: plan }),
    })
  }

  #administer(): Administration {
    const { plans, emailOf, hasNewer = () => false, engineSettings = new Map() } = this.#deps
    return new Administration({
      row: (databaseId) => this.directory.rowOf(databaseId),
      change: (caller, databaseId, decide) => this.changes.reconfigure(caller, databaseId, decide),
      emailOf,
      factsOf: (row) => ({
        ...settingBoundsOf(row, plans),
        defaults: engineSettings,
        maxClients: planOf(row, plans).db_max_clients,
      }),
      hasNewer,
    })
  }

  /** Rolls back or completes what a crash interrupted, then serves every database. Wakes none. */
  async start(): Promise<void> {
    const { store, fleet, settings } = this.#deps
    const stored = await everyRow(store)
    await this.recovery.setAside(stored)
    const here = stored.filter((row) => this.homes.isHere(row))
    const onDisk = await fleet.collectOrphans(new Set(here.map((row) => row.database_id)))
    const before = await this.homes.adopt(stored, onDisk)
    const known = new Set(before.map((row) => row.database_id))
    // Data of a database that another node serves may be there after this node was given another name. It stays.
    const databaseIds = onDisk.filter((databaseId) => !known.has(databaseId))
    // First: a wrong store must be refused before any row of it decides what is deleted.
    this.quarantine.check({ databaseIds, backups: [], known: before.length })
    const blocked = await this.backups.recover()
    this.#engines.block(blocked)
    const rows = (await everyRow(store, settings.node ? [] : stored)).filter((row) => this.homes.isHere(row))
    await Promise.all(rows.map((row) => this.#recover(row)))
    // A restore that could not be completed still needs its files.
    const backups = blocked.size === 0 ? await this.backups.unknownFiles() : []
    await this.quarantine.start({ databaseIds, backups, known: rows.length })
    const kept = rows.filter((row) => recoveryOf(row) === 'serve')
    for (const row of kept) this.directory.put(row)
    this.#losses.load(kept)
    await this.homes.ports?.start()
    void this.#losses.inspectAll(kept)
    for (const one of Object.values(this.others)) await one?.start()
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.others).map((one) => one?.stop()))
    const ending = [this.#creation, this.#deletion, this.changes, this.backups, this.quarantine]
    await Promise.all(ending.map((job) => job.stop()))
    this.#sleep.stop()
    this.homes.ports?.stop()
    await this.#losses.stop()
  }

  async create(caller: Caller, body: CreationRequest, key?: string): Promise<DatabaseRecord> {
    const { plans, settings } = this.#deps
    const rules = { plans, accountType: caller.accountType, tlsByDefault: settings.redisTlsByDefault }
    const row = await this.#creation.create(caller, validateCreation(body, rules), key)
    // Another node has created it for the same request.
    const others = this.homes.isHere(row) ? undefined : await this.homes.others(caller.accountId)
    return this.#render(row, caller, 'show', others)
  }

  async get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord> {
    const row = await this.#deps.store.run(databases.get, { accountId: caller.accountId, databaseId })
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    return withSetAside(this.#render(row, caller, credentials), await this.others.setAside?.of(databaseId))
  }

  async list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]> {
    const { accountId } = caller
    const records: DatabaseRecord[] = []
    let after: databases.ListPlace | undefined
    let others: OtherNodes | undefined
    do {
      // Page by page, so that a long list blocks neither the store's thread nor the event loop.
      const rows = await this.#deps.store.run(databases.list, { accountId, after, limit: PAGE_ROWS })
      if (!others && rows.some((row) => !this.homes.isHere(row))) others = await this.homes.others(accountId)
      for (const row of rows) records.push(this.#render(row, caller, credentials, others))
      after = rows.length < PAGE_ROWS ? undefined : databases.placeOf(rows.at(-1))
    } while (after)
    return records
  }

  async known(accountId: string): Promise<KnownDatabases> {
    const [known, settings] = [this.#known(accountId), this.#summarySettings]
    const elsewhere = await this.homes.everyElsewhere(accountId)
    const isAwake = (id: string): boolean => this.isAwake(id) || elsewhere.isAwake(id)
    return { known: [...known, ...elsewhere.known], settings: { ...settings, isAwake } }
  }

  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord {
    return this.#render(row, caller, 'show')
  }

  async remove(caller: Caller, databaseId: string): Promise<void> {
    const row = await this.homes.rowElsewhere(caller.accountId, databaseId)
    if (row && !(await this.#deletion.takeLost(caller, row))) await this.homes.removeElsewhere(caller, row)
    await this.#deletion.remove(caller, databaseId)
  }

  idsOf(accountId: string): Promise<string[]> {
    return this.#deps.store.run(databases.idsOf, { accountId })
  }

  followAccounts(): void {
    // What is refused is decided when a row is put; the row itself does not change.
    for (const { row, isSuspended } of this.usage.ledgers) {
      if (isSuspended !== (suspensionOf(row, this.#suspended) !== undefined)) this.directory.put(row)
    }
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
    const row = this.directory.rowOf(databaseId)
    if (!row && this.others.moves) throw new HomeportError('database_moved', { databaseId })
    const refused = row && refusalOfSuspended(row, this.#suspended)
    if (refused) throw refused
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

  /** The served databases of an account and those being deleted. */
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
    // Before the change is abandoned: if this start crashes too, the next one must repeat it.
    if (row.modifying_state === 'updating_regions') {
      const { fleet, plans, settings } = this.#deps
      await fleet.deleteStrayMembers(engineSpecOf(row, plans, regionOf(settings)))
    }
    await abandonChange(this.#deps.store, row)
  }

  #render(row: DatabaseRow, caller: Caller, credentials: 'show' | 'hide', others?: OtherNodes): DatabaseRecord {
    const own = this.#recordSettings
    const settings = others && !this.homes.isHere(row) ? settingsElsewhere(row, own, others) : own
    return renderRecord(row, this.#deps.emailOf(row.account_id), settings, shownTo(caller, credentials))
  }

  #homesOf(): Homes {
    const { publicRedisHost, publicRestUrl, redisDomain, redisDomainPort, node, host } = this.#deps.settings
    return new Homes({
      ...this.#deps,
      cluster: this.#deps.cluster,
      node,
      host,
      addresses: { publicRedisHost, publicRestUrl, redisDomain, redisDomainPort },
      servesToken: (digest) => this.directory.hasToken(digest),
      served: (accountId) => this.#factsOf(accountId),
      remove: (accountId, databaseId) =>
        // The node that asked looks again, and asks again.
        this.#deletion.remove(systemCaller(accountId), databaseId).catch(() => undefined),
    })
  }

  #place(): Placement {
    const isAwake = (id: string): boolean => this.isAwake(id)
    const ownCapacity = () => capacityHere({ deps: this.#deps, ledgers: [...this.usage.ledgers], isAwake })
    const { store, plans, cluster, settings } = this.#deps
    return new Placement({ store, plans, cluster, node: settings.node, homes: this.homes, ownCapacity })
  }

  #factsOf(accountId: string) {
    const own = this.usage.ledgers.filter(({ row }) => row.account_id === accountId)
    const { nowMs } = this.usage
    return own.map((ledger) => {
      const { row, usedBytes } = ledger
      const use = { usedBytes, monthRequests: ledger.monthRequests(nowMs), monthCostNano: ledger.monthCostNano(nowMs) }
      return [row.database_id, { isAwake: this.isAwake(row.database_id), ...use }] as const
    })
  }
}
