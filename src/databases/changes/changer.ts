/**
 * How a database is changed. There are two ways, and every change takes one of them:
 *
 * - `configure`: one transaction writes what the database should be; then the data plane and the engines are told. A
 *   crash before the commit has changed nothing, one after it is mended by the next waking, which follows the row. A
 *   database that sleeps is not woken for it.
 * - `transform`, for what takes a while or may fail:
 *
 *       (empty) ── begin ──▶ changing ── engines take the new shape ── finish ──▶ (empty), the new row
 *                                │ failure, or the next start after a crash
 *                                └── engines take the old shape ── abandon ──▶ (empty), the old row
 *
 *   `finish` writes the whole change in one transaction. Until then the row tells the old configuration, so that a
 *   crash at any moment leaves the change wholly undone, and after it wholly done.
 *
 * While a database is changing, every other change is refused with `database_busy`. Two short changes at once are made
 * one after the other.
 */

import { auditRow } from '../../accounts/index.js'
import type * as accounts from '../../accounts/transactions/accounts.js'
import { unreachable } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import type { ChangeDeps } from '../deps.js'
import { engineSpecOf } from '../desired-engine.js'
import type { DatabaseRow, DesiredChange } from '../life.js'
import * as databases from '../transactions/databases.js'
import * as databasesChanges from '../transactions/databases-changes.js'
import { Turns } from './turns.js'

const store = databasesChanges

/** How long to wait before giving a change up is tried again. */
const ABANDON_AGAIN_MS = 5_000

/** A database after a change; `same` when it was as desired already and nothing was written. */
export interface Changed {
  readonly kind: 'changed' | 'same'
  readonly row: DatabaseRow
}

/** Makes changes; see the top of this file. */
export class Changer {
  readonly deps: ChangeDeps
  readonly #turns = new Turns()
  readonly #transformations = new Set<Promise<unknown>>()
  #stopped = false

  constructor(deps: ChangeDeps) {
    this.deps = deps
  }

  /** Work on one database in its turn. */
  inTurn<Result>(databaseId: string, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(databaseId, work)
  }

  /** Waits until what is under way has ended, well or not. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.allSettled([...this.#transformations, this.#turns.idle()])
  }

  /** Writes a change that the store and the data plane alone can make. */
  configure(caller: Caller, databaseId: string, desired: DesiredChange): Promise<Changed> {
    return this.inTurn(databaseId, () => this.write(caller, databaseId, desired))
  }

  /** Writes a change that running engines have to learn of; resolves when they have. */
  configureEngines(caller: Caller, databaseId: string, desired: DesiredChange): Promise<Changed> {
    return this.inTurn(databaseId, async () => {
      const changed = await this.write(caller, databaseId, desired)
      if (changed.kind === 'changed') await this.updateEngines(changed.row)
      return changed
    })
  }

  /** The same for a change that follows from the present row; `decide` throws to refuse. */
  reconfigureEngines(
    caller: Caller,
    databaseId: string,
    decide: (row: DatabaseRow) => DesiredChange,
  ): Promise<Changed> {
    return this.inTurn(databaseId, async () => {
      const row = await this.deps.store.run(databases.get, { accountId: caller.accountId, databaseId })
      if (!row) throw new HomeportError('database_not_found', { databaseId })
      const changed = await this.write(caller, databaseId, decide(row))
      if (changed.kind === 'changed') await this.updateEngines(changed.row)
      return changed
    })
  }

  /** The transaction of `configure`, in the turn of the caller. */
  async write(caller: Caller, databaseId: string, desired: DesiredChange): Promise<Changed> {
    const audit = this.auditOf(caller, databaseId, desired)
    const args = { accountId: caller.accountId, databaseId, set: desired.set, audit }
    const outcome = await this.deps.store.run(store.configure, args)
    switch (outcome.kind) {
      case 'changed':
        await this.publish(outcome.database)
        return { kind: 'changed', row: outcome.database }
      case 'same':
        return { kind: 'same', row: outcome.database }
      default:
        throw refusalOf(outcome, databaseId)
    }
  }

  /**
   * Serves a database as it has become, unless it is being deleted; resolves when clients can connect to it so. The
   * change is made already: a port that does not open again is reported, and no reason to refuse the change.
   */
  async publish(row: DatabaseRow): Promise<void> {
    const { directory, onServing, logger } = this.deps
    const databaseId = row.database_id
    if (!directory.has(databaseId)) return
    directory.put(row)
    try {
      await onServing(databaseId)
    } catch (error) {
      logger.error({ databaseId, error }, 'the port of a database that was changed does not open')
    }
  }

  /**
   * The change is made already: engines that sleep take it when they wake, and when they cannot take it now, the fleet
   * goes on trying.
   */
  async updateEngines(row: DatabaseRow): Promise<void> {
    const { fleet, plans, logger, sleep } = this.deps
    if (!sleep.isAwake(row.database_id)) return
    try {
      await fleet.ensure(engineSpecOf(row, plans))
    } catch (error) {
      logger.warn({ databaseId: row.database_id, error }, 'the engines of a database do not take a change yet')
    }
  }

  /**
   * Makes a change in which the engines take part before it counts.
   * @param decide decides by the present row what it is to be; throws to refuse.
   */
  async transform(
    caller: Caller,
    databaseId: string,
    modifyingState: databasesChanges.ChangingState,
    decide: (row: DatabaseRow) => Promise<DesiredChange>,
  ): Promise<Changed> {
    const args = { accountId: caller.accountId, databaseId, modifyingState }
    const begun = await this.inTurn(databaseId, () => this.deps.store.run(store.begin, args))
    if (begun.kind !== 'begun') throw refusalOf(begun, databaseId)
    const make = (): Promise<Changed> => this.#transform(caller, begun.database, modifyingState, decide)
    const work = this.deps.sleep.during(databaseId, 'change', make)
    this.#transformations.add(work)
    return work.finally(() => this.#transformations.delete(work))
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
    const { fleet, plans, sleep } = this.deps
    try {
      sleep.wake(databaseId)
      await fleet.endpoints(databaseId, undefined, 'while-loading')
      const desired = await decide(before)
      if (store.isSame(before, desired.set)) return { kind: 'same', row: await this.#abandon(before, modifyingState) }
      await fleet.ensure(engineSpecOf({ ...before, ...desired.set }, plans))
      const audit = this.auditOf(caller, databaseId, desired)
      const row = await this.deps.store.run(store.finish, { databaseId, modifyingState, set: desired.set, audit })
      if (!row) throw new Error(`database ${databaseId} is not ${modifyingState} any more`)
      await this.publish(row)
      return { kind: 'changed', row }
    } catch (error) {
      await this.#revert(before, modifyingState)
      throw error
    }
  }

  /**
   * Brings the engines back to the old shape. They are told before the change is given up, so that whatever is desired
   * next comes later; they need not have taken it yet.
   * Never rejects.
   */
  async #revert(before: DatabaseRow, modifyingState: databasesChanges.ChangingState): Promise<void> {
    const { fleet, plans, logger, clock, sleep } = this.deps
    const databaseId = before.database_id
    try {
      sleep.noteStarted(databaseId)
      const retaken = fleet.ensure(engineSpecOf(before, plans))
      retaken.catch((error: unknown) => logger.warn({ databaseId, error }, 'engines do not take their old shape yet'))
      await this.#abandon(before, modifyingState)
      await this.inTurn(databaseId, () => this.#followCommit(before))
    } catch (error) {
      if (this.#stopped) return
      logger.error({ databaseId, error }, 'a change that failed is not given up yet')
      clock.after(ABANDON_AGAIN_MS, () => {
        if (!this.#stopped) void this.#revert(before, modifyingState)
      })
    }
  }

  /**
   * A store that goes away in the middle of a commit may have kept it although `finish` failed. Then the change counts,
   * and the data plane and the engines follow the row.
   */
  async #followCommit(before: DatabaseRow): Promise<void> {
    const args = { accountId: before.account_id, databaseId: before.database_id }
    const row = await this.deps.store.run(databases.get, args)
    const unchanged = { ...before, modifying_state: '' }
    if (row?.modifying_state !== '' || store.isSame(row, unchanged)) return
    await this.publish(row)
    await this.updateEngines(row)
  }

  async #abandon(before: DatabaseRow, modifyingState: databasesChanges.ChangingState): Promise<DatabaseRow> {
    await this.deps.store.run(store.abandon, { databaseId: before.database_id, modifyingState })
    return { ...before, modifying_state: '' }
  }
}

/** Why a change was not made, as an error. */
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
