import { auditRow } from '../accounts/index.js'
import type { Caller } from '../http/index.js'
import type { Backups } from './backups/index.js'
import type { ChangeDeps } from './deps.js'
import { beginDeletion, type DatabaseRow, finishDeletion } from './lifecycle.js'
import * as databases from './transactions/databases.js'
import * as lostHomes from './transactions/lost-homes.js'
import { UnconfirmedWork } from './unconfirmed-work.js'
import { SYSTEM } from './usage/index.js'

/** What `Deletion` is built from. */
interface DeletionDeps extends ChangeDeps {
  readonly backups: Pick<Backups, 'removeAll' | 'endImport'>
}

/** Deletes databases with all their files. */
export class Deletion {
  readonly #deps: DeletionDeps
  readonly #active = new Map<string, Promise<void>>()
  readonly #pending = new Map<string, DatabaseRow>()
  /** Databases that may be `deleting` although their deletion got an error. */
  readonly #lost = new UnconfirmedWork()

  constructor(deps: DeletionDeps) {
    this.#deps = deps
  }

  /** Deletes a database of the caller's account; resolves when nothing is left of it. May be repeated. */
  async remove(caller: Caller, databaseId: string): Promise<void> {
    // An import must not delay the deletion of an account, because deletions of other accounts wait behind it.
    if (caller.source === SYSTEM) this.#deps.backups.endImport(databaseId)
    const row = this.#deps.directory.rowOf(databaseId)
    const details = row === undefined ? {} : { name: row.name }
    const event = { action: 'Delete Database', entity: databaseId, details } as const
    const now = this.#deps.clock.now()
    const audit = auditRow(caller, event, now)
    const { store, settings } = this.#deps
    const begun = beginDeletion(store, { accountId: caller.accountId, databaseId, home: settings.node, audit })
    await this.#lost.watch(databaseId, begun, now)
    await this.#carryOut(databaseId)
  }

  /** Lets this node delete a database whose home the operator has given up. False: the home is not given up. */
  async takeLost(caller: Caller, { database_id: databaseId, name, home }: DatabaseRow): Promise<boolean> {
    const { store, settings, clock } = this.#deps
    if (settings.node === undefined || home === null || !(await store.run(lostHomes.isLost, { home }))) return false
    const event = { action: 'Delete Database', entity: databaseId, details: { name, lost_node: home } } as const
    const audit = auditRow(caller, event, clock.now())
    const { accountId } = caller
    return store.run(lostHomes.takeToDelete, { accountId, databaseId, node: settings.node, audit })
  }

  /** Completes deletions that have begun in the store. */
  async settleUnconfirmed(): Promise<void> {
    const { store, clock, directory } = this.#deps
    for (const databaseId of this.#lost.recent(clock.now())) {
      const served = directory.rowOf(databaseId)
      const row = served && (await store.run(databases.get, { accountId: served.account_id, databaseId }))
      if (row?.modifying_state === 'deleting') await this.#carryOut(databaseId)
    }
  }

  /** Databases whose deletion is active or has failed midway. */
  get pending(): readonly DatabaseRow[] {
    return [...this.#pending.values()]
  }

  /** Waits until all active deletions have settled. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#active.values())
  }

  #carryOut(databaseId: string): Promise<void> {
    return this.#active.get(databaseId) ?? this.#track(databaseId)
  }

  #track(databaseId: string): Promise<void> {
    const work = this.#delete(databaseId).finally(() => this.#active.delete(databaseId))
    this.#active.set(databaseId, work)
    return work
  }

  async #delete(databaseId: string): Promise<void> {
    const { directory, sleep, fleet, backups, store, homes, replicas } = this.#deps
    const row = directory.rowOf(databaseId)
    if (row) this.#pending.set(databaseId, { ...row, modifying_state: 'deleting' })
    directory.remove(databaseId)
    sleep.forget(databaseId)
    await Promise.all([fleet.remove(databaseId), homes.announce([databaseId]), replicas()?.gone(databaseId)])
    await backups.removeAll(databaseId)
    await finishDeletion(store, databaseId)
    this.#pending.delete(databaseId)
  }
}
