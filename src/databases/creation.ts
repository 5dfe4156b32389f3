import { auditRow } from '../accounts/index.js'
import type * as accounts from '../accounts/transactions/accounts.js'
import { isOutOfDescriptors, pause, sha256Hex, unreachable } from '../base/index.js'
import { IDEMPOTENCY_KEPT_MS } from '../contract/databases/databases.js'
import type { Platform, Region } from '../contract/databases/regions.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { ChangeDeps } from './deps.js'
import { engineSpecOf, regionOf } from './desired-engine.js'
import { newIdentity } from './identity.js'
import { beginCreation, type DatabaseRow, finishCreation, undoCreation } from './lifecycle.js'
import { type DesiredDatabase, validateCreation } from './rules.js'
import * as databases from './transactions/databases.js'
import { UnconfirmedWork } from './unconfirmed-work.js'

/** Delay before a failed rollback is retried. */
const ROLL_BACK_RETRY_MS = 5_000
/** Delay before a commit whose outcome is unknown is looked up. */
const FINISH_RETRY_MS = 1_000
/** Interval and number of checks of a creation on another node: together 30 s, longer than a start of engines takes. */
const LOOK_AGAIN_MS = 100
const MAX_WAITS = 300

/** A database whose data is on disk and that has no row. */
export interface AdoptedDatabase {
  readonly databaseId: string
  readonly name: string
  readonly platform: Platform
  readonly primaryRegion: Region
  readonly persistence: DatabaseRow['persistence']
  /** Where its data was found, for the audit log. */
  readonly from: string
}

/** Creates databases, all or nothing. */
export class Creation {
  readonly #deps: ChangeDeps
  readonly #active = new Map<string, Promise<DatabaseRow>>()
  /** Databases whose row may have been committed although its creation got an error. */
  readonly #lost = new UnconfirmedWork()
  #stopped = false

  constructor(deps: ChangeDeps) {
    this.#deps = deps
  }

  /**
   * Creates a database and resolves when it serves.
   * @param key the caller's `Idempotency-Key`: the same key and request get the same database.
   */
  async create(caller: Caller, desired: DesiredDatabase, key: string | undefined): Promise<DatabaseRow> {
    await this.#deps.placement.checkRegions([desired.primaryRegion, ...desired.readRegions])
    const args = this.#argsOf(caller, desired, key)
    const begun = beginCreation(this.#deps.store, args)
    const outcome = await this.#lost.watch(args.database.database_id, begun, this.#deps.clock.now())
    switch (outcome.kind) {
      case 'created':
        return this.#start(outcome.database, caller)
      case 'repeated':
        return this.#earlier(caller, outcome.databaseId)
      default:
        return this.#refuse(outcome, caller)
    }
  }

  #refuse(outcome: Exclude<databases.CreateOutcome, { kind: 'created' }>, caller: Caller): never {
    switch (outcome.kind) {
      case 'key_conflict':
        throw new HomeportError('idempotency_conflict', {})
      case 'key_gone':
        throw new HomeportError('idempotency_gone', {})
      case 'limit_reached':
        throw new HomeportError('database_limit', { limit: this.#limitOf(caller), accountType: caller.accountType })
      case 'account_gone':
        throw new HomeportError('unauthorized', { scheme: 'Basic' })
      case 'no_port':
        throw new HomeportError('no_free_port', this.#deps.settings.redisPorts)
      case 'no_slug':
        throw new Error('none of the random slugs was free')
      case 'repeated':
        throw new Error('a request without an idempotency key cannot repeat another')
      default:
        return unreachable(outcome)
    }
  }

  /**
   * Creates the row of a database whose data is on disk already. Once the row is committed, a later failure never
   * deletes the data.
   */
  async adopt(caller: Caller, { databaseId, from, ...adopted }: AdoptedDatabase): Promise<DatabaseRow> {
    const { plans, settings, clock, store, directory } = this.#deps
    const body = { database_name: adopted.name, primary_region: adopted.primaryRegion, platform: adopted.platform }
    const rules = { plans, accountType: caller.accountType, tlsByDefault: settings.redisTlsByDefault }
    const args = this.#argsOf(caller, validateCreation(body, rules), undefined)
    const event = { action: 'Adopt Files', entity: databaseId, details: { name: adopted.name, from } } as const
    const outcome = await beginCreation(store, {
      ...args,
      database: { ...args.database, database_id: databaseId, persistence: adopted.persistence },
      adopted: { audit: auditRow(caller, event, clock.now()) },
    })
    if (outcome.kind !== 'created') return this.#refuse(outcome, caller)
    directory.put(outcome.database)
    await this.#openPort(outcome.database, caller)
    await this.#deps.homes.announce([databaseId])
    return outcome.database
  }

  /**
   * Removes rows that may have been committed although the creation got an error: nobody creates their databases. May be
   * repeated.
   */
  async settleUnconfirmed(): Promise<void> {
    const { store, clock } = this.#deps
    for (const databaseId of this.#lost.recent(clock.now())) await undoCreation(store, databaseId)
  }

  /** Waits until all creations have settled. Failed rollbacks are not retried afterwards. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.allSettled(this.#active.values())
  }

  #argsOf(caller: Caller, desired: DesiredDatabase, key: string | undefined): databases.CreateArgs {
    const now = this.#deps.clock.now()
    const identity = newIdentity()
    return {
      database: {
        database_id: identity.databaseId,
        account_id: caller.accountId,
        name: desired.name,
        platform: desired.platform,
        primary_region: desired.primaryRegion,
        read_regions: JSON.stringify(desired.readRegions),
        plan: desired.plan,
        budget: desired.budget,
        eviction: desired.eviction ? 1 : 0,
        tls: desired.tls ? 1 : 0,
        persistence: desired.persistence ?? 'append-only',
        auto_upgrade: desired.autoUpgrade ? 1 : 0,
        production_pack: desired.productionPack ? 1 : 0,
        password: identity.password,
        rest_token: identity.restToken,
        read_only_rest_token: identity.readOnlyRestToken,
        created_at: now,
        home: this.#deps.settings.node ?? null,
      },
      ports: { ...this.#deps.settings.redisPorts, avoid: [] },
      slugs: identity.slugs,
      limit: this.#limitOf(caller),
      idempotency: key === undefined ? undefined : { key, requestHash: sha256Hex(JSON.stringify(desired)) },
      forgetBefore: now - IDEMPOTENCY_KEPT_MS,
    }
  }

  #limitOf(caller: Caller): number {
    const { freeAccountDatabases, paidAccountDatabases } = this.#deps.settings
    const own = this.#deps.databaseLimitOf?.(caller.accountId)
    if (own !== undefined) return own
    return caller.accountType === 'free' ? freeAccountDatabases : paidAccountDatabases
  }

  /** The database of an earlier request with the same key. Waits while it is still being created. */
  async #earlier(caller: Caller, databaseId: string): Promise<DatabaseRow> {
    const args = { accountId: caller.accountId, databaseId }
    for (let waits = 0; ; waits++) {
      const active = this.#active.get(databaseId)
      if (active) return active
      const row = await this.#deps.store.run(databases.get, args)
      if (!row)
        throw new HomeportError(waits === 0 ? 'idempotency_gone' : 'database_busy', { modifyingState: 'creating' })
      if (row.modifying_state !== 'creating') return row
      // Another node is creating the database, because two nodes got the same request at the same time; or the creation is
      // being rolled back.
      if (this.#stopped || waits >= MAX_WAITS) throw new HomeportError('database_busy', { modifyingState: 'creating' })
      await pause(this.#deps.clock, LOOK_AGAIN_MS)
    }
  }

  #start(row: DatabaseRow, caller: Caller): Promise<DatabaseRow> {
    const { sleep, engines } = this.#deps
    const databaseId = row.database_id
    engines.beginCreation(databaseId)
    const make = async (): Promise<DatabaseRow> => {
      const created = await this.#createOrRollBack(row, caller)
      await this.#deps.homes.announce([databaseId])
      return created
    }
    const work = sleep.during(databaseId, 'creation', make).finally(() => {
      this.#active.delete(databaseId)
      engines.endCreation(databaseId)
    })
    this.#active.set(databaseId, work)
    return work
  }

  async #createOrRollBack(row: DatabaseRow, caller: Caller): Promise<DatabaseRow> {
    try {
      if (!(await this.#deps.fleet.checkSpace())) throw new HomeportError('store_full', {})
      this.#deps.directory.put(row)
      this.#deps.sleep.reportStarted(row.database_id)
      const { fleet, plans, settings } = this.#deps
      await Promise.all([fleet.ensure(engineSpecOf(row, plans, regionOf(settings))), this.#openPort(row, caller)])
      await this.#deps.replicas()?.serving(row)
      const [audit, standby] = [this.#auditOf(row, caller), this.#standbyOf(row)]
      return await this.#finish(row, { audit, standby })
    } catch (error) {
      // Whether the database exists is unknown now. The next start reads it from the store.
      if (this.#stopped && isError(error, 'store_outcome_unknown')) throw error
      await this.#rollBack(row.database_id, caller)
      if (isOutOfDescriptors(error)) throw new HomeportError('descriptors_short', {}, { cause: error })
      throw error
    }
  }

  /** Once the commit may have happened, only the store can say whether the database exists: asks until it answers. */
  async #finish(row: DatabaseRow, args: Omit<databases.FinishedCreation, 'databaseId'>): Promise<DatabaseRow> {
    const { store, clock } = this.#deps
    const { account_id: accountId, database_id: databaseId } = row
    for (let unknown: unknown; ; await pause(clock, FINISH_RETRY_MS)) {
      try {
        const present = unknown === undefined ? row : await store.run(databases.get, { accountId, databaseId })
        if (present?.modifying_state !== 'creating') return present ?? row
        return await finishCreation(store, databaseId, args)
      } catch (error) {
        unknown ??= isError(error, 'store_outcome_unknown') ? error : undefined
        if (unknown === undefined) throw error
        if (this.#stopped) throw unknown
      }
    }
  }

  /** The standby that a new database of a cluster gets without being asked for. */
  #standbyOf({ home }: DatabaseRow): databases.FinishedCreation['standby'] {
    const { settings, clock } = this.#deps
    if (home === null || settings.standbys === undefined || settings.standbys === 'asked') return undefined
    return { home, mode: settings.standbys === 'auto' ? 'async' : 'replicated', at: clock.now() }
  }

  /** Opens the port. While another program holds the assigned port, moves to the next one. */
  async #openPort(row: DatabaseRow, { requestId }: Caller): Promise<void> {
    const taken: number[] = []
    for (let port = row.port; ; port = await this.#otherPort(row, taken)) {
      try {
        return await this.#deps.onServing(row.database_id)
      } catch (error) {
        if (!isError(error, 'port_taken')) throw error
        this.#deps.logger.warn('database_port_taken', { port, requestId })
        taken.push(port)
      }
    }
  }

  async #otherPort(row: DatabaseRow, taken: readonly number[]): Promise<number> {
    const { store, settings } = this.#deps
    const ports = { ...settings.redisPorts, avoid: taken }
    const port = await store.run(databases.movePort, { databaseId: row.database_id, ports })
    if (port === undefined) throw new HomeportError('no_free_port', settings.redisPorts)
    this.#deps.directory.put({ ...row, port })
    return port
  }

  /**
   * Removes everything of a database whose creation failed. A rollback that fails is retried, at the latest by the next
   * start. Never rejects.
   */
  async #rollBack(databaseId: string, caller: Caller): Promise<void> {
    const { directory, sleep } = this.#deps
    try {
      directory.remove(databaseId)
      sleep.forget(databaseId)
      await Promise.all([this.#deps.fleet.remove(databaseId), this.#deps.replicas()?.gone(databaseId)])
      await undoCreation(this.#deps.store, databaseId)
    } catch (error) {
      if (this.#stopped) return
      this.#deps.logger.error('database_creation_not_undone', { databaseId, error, requestId: caller.requestId })
      this.#deps.clock.after(ROLL_BACK_RETRY_MS, () => {
        if (!this.#stopped) void this.#rollBack(databaseId, caller)
      })
    }
  }

  #auditOf(row: DatabaseRow, caller: Caller): accounts.NewAuditRow {
    const { name, plan, primary_region } = row
    const details = { name, plan, primary_region }
    const event = { action: 'Create Database', entity: row.database_id, details } as const
    return auditRow(caller, event, this.#deps.clock.now())
  }
}
