/**
 * How a database is changed. Every change is one of these two:
 *
 * - `configure`: one transaction writes the desired state; then the data plane and the engines follow it. A crash before
 *   the commit changes nothing. If the crash comes after the commit, the engines start with the new row when the database
 *   next wakes. A sleeping database is not woken.
 * - `transform`, for changes that take a while or may fail:
 *
 *       (empty) ── begin ──▶ changing ── engines take the new shape ── finish ──▶ (empty), the new row
 *                                │ failure, or the next start after a crash
 *                                └── engines take the old shape ── abandon ──▶ (empty), the old row
 *
 *   `finish` writes the whole change in one transaction. The row has the old configuration until then, so a crash before
 *   `finish` undoes the whole change, and a crash after it loses nothing.
 *
 * While a `transform` is active, every other change is refused with `database_busy`. Concurrent `configure` calls for one
 * database run one after the other.
 */

import { auditRow } from '../../accounts/index.js'
import type * as accounts from '../../accounts/transactions/accounts.js'
import { TasksByKey, unreachable } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineSpec } from '../../fleet/index.js'
import type { Caller } from '../../http/index.js'
import { AfterLostCommits } from '../../store/index.js'
import type { ChangeDeps } from '../deps.js'
import { engineSpecOf, regionOf } from '../desired-engine.js'
import { abandonChange, type DatabaseRow, type DesiredChange, everyRow } from '../lifecycle.js'
import * as databases from '../transactions/databases.js'
import * as databasesChanges from '../transactions/databases-changes.js'
import { type SettlesUnconfirmed, UnconfirmedWork } from '../unconfirmed-work.js'

const store = databasesChanges

/** Delay before a failed revert is retried. */
const REVERT_RETRY_MS = 5_000

/** The caller whose request a log line names. */
type Requester = Pick<Caller, 'requestId'>

/** A database after a change; `same`: it had the desired state already, and nothing was written. */
export interface Changed {
  readonly kind: 'changed' | 'same'
  readonly row: DatabaseRow
}

/** Carries out changes; see the top of this file. */
export class Changer {
  readonly deps: ChangeDeps
  readonly #turns = new TasksByKey()
  readonly #transformations = new Set<Promise<unknown>>()
  /** Databases whose change may have begun in the store although its caller got an error. */
  readonly #lost = new UnconfirmedWork()
  readonly #afterLostCommits: AfterLostCommits
  #stopped = false

  constructor(deps: ChangeDeps, others: readonly SettlesUnconfirmed[]) {
    this.deps = deps
    const recover = async (): Promise<void> => {
      for (const one of others) await one.settleUnconfirmed()
      await this.#followStore()
    }
    this.#afterLostCommits = new AfterLostCommits({ ...deps, what: 'databases', recover })
    this.#afterLostCommits.start()
  }

  /** Runs work after all earlier work on the same database. */
  inTurn<Result>(databaseId: string, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(databaseId, work)
  }

  /** Waits until all active changes have settled. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#afterLostCommits.stop()
    await Promise.allSettled([...this.#transformations, this.#turns.idle()])
  }

  /** Makes a change that does not concern the engines. */
  configure(caller: Caller, databaseId: string, desired: DesiredChange): Promise<Changed> {
    return this.inTurn(databaseId, () => this.write(caller, databaseId, desired))
  }

  /** Makes a change that running engines take as well; resolves when they have taken it. */
  configureEngines(caller: Caller, databaseId: string, desired: DesiredChange): Promise<Changed> {
    return this.inTurn(databaseId, async () => {
      const changed = await this.write(caller, databaseId, desired)
      if (changed.kind === 'changed') await this.updateEngines(changed.row, caller)
      return changed
    })
  }

  /** As `configureEngines`, for a change that depends on the current row; `decide` throws to refuse. */
  reconfigureEngines(
    caller: Caller,
    databaseId: string,
    decide: (row: DatabaseRow) => DesiredChange,
  ): Promise<Changed> {
    return this.inTurn(databaseId, async () => {
      const row = await this.deps.store.run(databases.get, { accountId: caller.accountId, databaseId })
      if (!row) throw new HomeportError('database_not_found', { databaseId })
      const changed = await this.write(caller, databaseId, decide(row))
      if (changed.kind === 'changed') await this.updateEngines(changed.row, caller)
      return changed
    })
  }

  /** The transaction of `configure`. The caller must run it in a turn. */
  async write(caller: Caller, databaseId: string, desired: DesiredChange): Promise<Changed> {
    const audit = this.auditOf(caller, databaseId, desired)
    const home = this.deps.settings.node
    const args = { accountId: caller.accountId, databaseId, home, set: desired.set, audit }
    const outcome = await this.deps.store.run(store.configure, args)
    switch (outcome.kind) {
      case 'changed':
        await this.publish(outcome.database, caller)
        return { kind: 'changed', row: outcome.database }
      case 'same':
        // An earlier request has committed this change, and the answer to its commit was lost.
        if (this.#isBehind(outcome.database)) {
          await this.publish(outcome.database, caller)
          return { kind: 'changed', row: outcome.database }
        }
        return { kind: 'same', row: outcome.database }
      default:
        throw refusalOf(outcome, databaseId)
    }
  }

  /**
   * Publishes a changed row to the data plane, unless the database is being deleted; resolves when its port is open and no
   * other node answers reads by an earlier row. The change is committed already, so a port that does not open is logged and
   * does not fail the change.
   */
  async publish(row: DatabaseRow, caller?: Requester): Promise<void> {
    const { directory, onServing, logger } = this.deps
    const databaseId = row.database_id
    if (!directory.has(databaseId)) return
    directory.put(row)
    try {
      await onServing(databaseId)
    } catch (error) {
      logger.error('database_port_not_opened', { databaseId, error, requestId: caller?.requestId })
    }
    await this.deps.replicas()?.withdraw(databaseId)
  }

  /**
   * Lets running engines take a committed change. Sleeping engines take it when they wake. When running engines cannot
   * take it now, the fleet keeps trying.
   */
  async updateEngines(row: DatabaseRow, caller?: Requester): Promise<void> {
    const { fleet, logger, sleep } = this.deps
    if (!sleep.isAwake(row.database_id)) return
    try {
      await fleet.ensure(this.#specOf(row))
    } catch (error) {
      logger.warn('database_change_pending', { databaseId: row.database_id, error, requestId: caller?.requestId })
    }
  }

  /**
   * Makes a change that is committed only after the engines have taken it.
   * @param decide answers the desired change for the current row; throws to refuse.
   */
  async transform(
    caller: Caller,
    databaseId: string,
    modifyingState: databasesChanges.ChangingState,
    decide: (row: DatabaseRow) => Promise<DesiredChange>,
  ): Promise<Changed> {
    const args = { accountId: caller.accountId, databaseId, home: this.deps.settings.node, modifyingState }
    const begun = await this.inTurn(databaseId, () =>
      this.#lost.watch(databaseId, this.deps.store.run(store.begin, args), this.deps.clock.now()),
    )
    if (begun.kind !== 'begun') throw refusalOf(begun, databaseId)
    this.#lost.forget(databaseId)
    const make = (): Promise<Changed> => this.#transform(caller, begun.database, modifyingState, decide)
    const work = this.deps.sleep.during(databaseId, 'change', make)
    this.#transformations.add(work)
    return work.finally(() => this.#transformations.delete(work))
  }

  /**
   * Brings the data plane and the engines to the state of the store, and abandons changes that have begun in the store but
   * that nobody carries out.
   */
  async #followStore(): Promise<void> {
    const { homes, clock } = this.deps
    const lost = this.#lost.recent(clock.now())
    for (const row of await everyRow(this.deps.store)) {
      if (!homes.isHere(row)) continue
      if (lost.has(row.database_id)) await this.inTurn(row.database_id, () => abandonChange(this.deps.store, row))
      if (this.#isBehind(row)) await this.inTurn(row.database_id, () => this.#follow(row))
    }
  }

  async #follow({ account_id: accountId, database_id: databaseId }: DatabaseRow): Promise<void> {
    const row = await this.deps.store.run(databases.get, { accountId, databaseId })
    if (row?.modifying_state !== '' || !this.#isBehind(row)) return
    await this.publish(row)
    await this.updateEngines(row)
  }

  /** Whether clients are served by an earlier row than this one. */
  #isBehind(row: DatabaseRow): boolean {
    const served = this.deps.directory.rowOf(row.database_id)
    return served !== undefined && !store.isSame(served, store.servedBy(row))
  }

  /** The audit entry of a change. */
  auditOf(caller: Caller, databaseId: string, { action, details }: DesiredChange): accounts.NewAuditRow {
    return auditRow(caller, { action, entity: databaseId, details }, this.deps.clock.now())
  }

  async #transform(
    caller: Caller,
    before: DatabaseRow,
    modifyingState: databasesChanges.ChangingState,
    decide: (row: DatabaseRow) => Promise<DesiredChange>,
  ): Promise<Changed> {
    const databaseId = before.database_id
    const { fleet, sleep } = this.deps
    try {
      sleep.wake(databaseId)
      await fleet.endpoints(databaseId, undefined, 'while-loading')
      const desired = await decide(before)
      if (store.isSame(before, desired.set)) return { kind: 'same', row: await this.#abandon(before, modifyingState) }
      const next = { ...before, ...desired.set }
      await fleet.ensure(this.#specOf(next))
      if (modifyingState === 'updating_regions') await this.deps.replicas()?.serving(next)
      const args = { databaseId, modifyingState, set: desired.set, audit: this.auditOf(caller, databaseId, desired) }
      // Short changes are possible after this commit. The turn publishes their rows after this one.
      const row = await this.inTurn(databaseId, () => this.#finish(args, caller))
      return { kind: 'changed', row }
    } catch (error) {
      await this.#revert(before, modifyingState, caller)
      throw error
    }
  }

  async #finish(args: Parameters<typeof store.finish.body>[0], caller: Caller): Promise<DatabaseRow> {
    const row = await this.deps.store.run(store.finish, args)
    if (!row) throw new Error(`database ${args.databaseId} is no longer ${args.modifyingState}`)
    await this.publish(row, caller)
    return row
  }

  /**
   * Brings the engines back to the old shape. The fleet gets the old shape before the change is abandoned, so that it
   * cannot overwrite the next desired state; the engines may take it later. Never rejects.
   */
  async #revert(before: DatabaseRow, modifyingState: databasesChanges.ChangingState, caller: Caller): Promise<void> {
    const { fleet, logger, clock, sleep } = this.deps
    const { requestId } = caller
    const databaseId = before.database_id
    try {
      sleep.reportStarted(databaseId)
      this.deps.replicas()?.follow(before)
      const reverted = fleet.ensure(this.#specOf(before))
      reverted.catch((error: unknown) =>
        logger.warn('database_change_revert_pending', { databaseId, error, requestId }),
      )
      await this.#abandon(before, modifyingState)
      await this.inTurn(databaseId, () => this.#followCommit(before, caller))
    } catch (error) {
      if (this.#stopped) return
      logger.error('database_change_not_reverted', { databaseId, error, requestId })
      clock.after(REVERT_RETRY_MS, () => {
        if (!this.#stopped) void this.#revert(before, modifyingState, caller)
      })
    }
  }

  /**
   * When the store's connection breaks during a commit, `finish` fails although the commit may have succeeded. Then the
   * change counts, and the data plane and the engines follow the row.
   */
  async #followCommit(before: DatabaseRow, caller: Caller): Promise<void> {
    const args = { accountId: before.account_id, databaseId: before.database_id }
    const row = await this.deps.store.run(databases.get, args)
    const unchanged = { ...before, modifying_state: '' } as const
    if (row?.modifying_state !== '' || store.isSame(row, unchanged)) return
    await this.publish(row, caller)
    await this.updateEngines(row, caller)
  }

  #specOf(row: DatabaseRow): EngineSpec {
    return engineSpecOf(row, this.deps.plans, regionOf(this.deps.settings))
  }

  async #abandon(before: DatabaseRow, modifyingState: databasesChanges.ChangingState): Promise<DatabaseRow> {
    await this.deps.store.run(store.abandon, { databaseId: before.database_id, modifyingState })
    return { ...before, modifying_state: '' }
  }
}

/** The error for a refused change. */
export function refusalOf(refusal: databasesChanges.ChangeRefusal, databaseId: string): HomeportError {
  switch (refusal.kind) {
    case 'not_found':
      return new HomeportError('database_not_found', { databaseId })
    case 'busy':
      return new HomeportError('database_busy', { modifyingState: refusal.modifyingState })
    default:
      return unreachable(refusal)
  }
}
