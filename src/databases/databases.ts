import { AgeWatch, TargetGate } from '../base/index.js'
import type { AwakeRecord } from '../contract/databases/awake.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { DataReport, EngineEndpoint } from '../fleet/index.js'
import type { Caller } from '../http/index.js'
import { Backups } from './backups/index.js'
import { Changes } from './changes/changes.js'
import { type ClusterFeatures, createClusterFeatures } from './cluster-features.js'
import { Creation } from './creation.js'
import { Deletion } from './deletion.js'
import type { ChangeDeps, DatabasesDeps } from './deps.js'
import { DesiredEngines, planOf, regionOf, settingBoundsOf } from './desired-engine.js'
import { ServingDirectory, servingOf } from './directory.js'
import { factsHere, Homes } from './homes.js'
import type { Databases } from './interface.js'
import type { DatabaseRow } from './lifecycle.js'
import { Losses } from './losses.js'
import type { CreationRequest } from './older-spelling.js'
import { capacityHere } from './own-capacity.js'
import { Placement } from './placement.js'
import { Quarantine } from './quarantine/index.js'
import { Records } from './records.js'
import { Recovery } from './recovery.js'
import { validateCreation } from './rules.js'
import { renderAwake, Sleep } from './sleep/index.js'
import { StartUp } from './start-up.js'
import type { KnownDatabases } from './summaries.js'
import { NOBODY_SUSPENDED, refusalOfSuspended, type Suspended, suspensionOf } from './suspended.js'
import * as databases from './transactions/databases.js'
import { systemCaller, Usage } from './usage/index.js'
import { Administration } from './users/index.js'

/** Builds the databases of a store. */
export function createDatabases(deps: DatabasesDeps): Databases {
  return new StoredDatabases(deps)
}

/**
 * Builds the classes of this module in the order of their dependencies, and passes each request to the class that handles
 * it.
 */
class StoredDatabases implements Databases {
  readonly name = 'databases'
  readonly directory: ServingDirectory
  readonly backups: Backups
  readonly recovery: Recovery
  readonly homes: Homes
  readonly placement: Placement
  readonly others: ClusterFeatures
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
  readonly #records: Records
  readonly #startUp: StartUp
  readonly #ages: AgeWatch

  constructor(deps: DatabasesDeps) {
    const { plans, settings, isAccountSuspended } = deps
    this.#deps = deps
    this.#ages = new AgeWatch(deps.clock, (byMs) => deps.logger.warn('backup_retention_waits', { byMs }))
    const serving = servingOf(plans, settings)
    const directory = new ServingDirectory(serving)
    this.directory = directory
    this.#suspended = isAccountSuspended ? { isAccountSuspended } : NOBODY_SUSPENDED
    const only = regionOf(settings)
    const rowOf = (databaseId: string) => directory.rowOf(databaseId)
    const engines = new DesiredEngines({ plans, suspended: this.#suspended, only, rowOf })
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
    directory.onChange(() => sleep.recheck())
    this.#creation = new Creation(changeDeps)
    const { quarantineMs: keepMs, acceptUnknownData: accept } = settings
    this.quarantine = new Quarantine({ ...deps, ages: this.#ages, keepMs, accept, creation: this.#creation })
    this.#losses = new Losses({ ...changeDeps, isAwake: (databaseId) => sleep.isAwake(databaseId) })
    this.backups = this.#newBackups(sleep, only)
    this.recovery = new Recovery({ ...changeDeps, homes: this.homes, backups: this.backups })
    this.#deletion = new Deletion({ ...changeDeps, backups: this.backups })
    this.changes = new Changes(changeDeps, [this.#creation, this.backups, this.#deletion])
    this.usage = this.#count(this.changes)
    this.changes.onBudgetChange((databaseId) => this.usage.settle(databaseId))
    this.administration = this.#administer()
    const { changes, usage, homes } = this
    this.others = createClusterFeatures({ ...changeDeps, changes, usage, homes, only }, serving)
    this.#records = this.#show()
    const { recovery, backups, quarantine } = this
    this.#startUp = new StartUp({ ...deps, homes, recovery, backups, quarantine, engines })
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
      served: (accountId) => factsHere(accountId, this.usage, (id) => this.isAwake(id)),
      remove: (accountId, databaseId) =>
        // The node that asked checks later, and repeats its request if necessary.
        this.#deletion.remove(systemCaller(accountId), databaseId).catch(() => undefined),
    })
  }

  #place(): Placement {
    const isAwake = (id: string): boolean => this.isAwake(id)
    const ownCapacity = () => capacityHere({ deps: this.#deps, ledgers: [...this.usage.ledgers], isAwake })
    const { store, plans, cluster, settings } = this.#deps
    return new Placement({ store, plans, cluster, node: settings.node, homes: this.homes, ownCapacity })
  }

  #show(): Records {
    const { plans, settings } = this.#deps
    const isAwake = (id: string): boolean => this.isAwake(id)
    const isReplicated = (id: string): boolean => this.others.standbys?.isReplicated(id) ?? false
    return new Records({
      ...this.#deps,
      settings: { plans, suspended: this.#suspended, ...settings, isAwake, isReplicated },
      homes: this.homes,
      usage: this.usage,
      deleted: () => this.#deletion.pending,
      isBeingCreated: (databaseId) => this.#engines.isBeingCreated(databaseId),
      setAside: () => this.others.setAside,
    })
  }

  #newBackups(sleep: Sleep, only: string | undefined): Backups {
    const { settings } = this.#deps
    return new Backups({
      ...this.#deps,
      sleep,
      quarantine: this.quarantine,
      ages: this.#ages,
      onReplaced: (databaseId) => {
        this.#losses.replaced(databaseId)
        this.usage.dataReplaced(databaseId)
      },
      home: settings.node ?? '',
      only,
      maxManual: settings.manualBackups,
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
    this.#ages.start()
    const kept = await this.#startUp.run()
    for (const row of kept) this.directory.put(row)
    this.#losses.load(kept)
    await this.homes.ports?.start()
    void this.#losses.inspectAll(kept)
    for (const one of Object.values(this.others)) await one?.start()
  }

  async stop(): Promise<void> {
    this.#ages.stop()
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
    return this.#records.created(row, caller)
  }

  get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord> {
    return this.#records.get(caller, databaseId, credentials)
  }

  list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]> {
    return this.#records.list(caller, credentials)
  }

  known(accountId: string): Promise<KnownDatabases> {
    return this.#records.known(accountId)
  }

  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord {
    return this.#records.render(row, caller, 'show')
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
    // `put` decides whether a database refuses its clients, so the unchanged row is put again.
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

  recordDataReport(databaseId: string, report: DataReport): void {
    this.#losses.note(databaseId, report)
  }
}
