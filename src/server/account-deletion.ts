/**
 * Deletes accounts with everything they have. It needs several modules, so it is beside the composition root.
 *
 *   beginDelete (accounts) ── credentials are refused; the account and its teams are `deleting`
 *     └─ databases, with engines, files and backups
 *     └─ schedules and settings of the queue, messages (the dispatcher drops them), runs, bulk actions
 *     └─ a pause, and both once more: a request that was admitted before may have committed meanwhile
 *     └─ finishDelete ── refuses while anything is left; then the last rows go
 *
 * Every step may be repeated, and the state `deleting` is stored: after a crash the next start continues the deletion.
 */
import * as operator from '../accounts/transactions/operator.js'
import * as alertsHistory from '../alerts/transactions/alerts-history.js'
import { type Clock, pause, type Service, type Timer } from '../base/index.js'
import * as accountPurge from '../bulk/transactions/account-purge.js'
import { isError } from '../contract/errors/errors.js'
import { type Databases, systemCaller } from '../databases/index.js'
import type { Queue } from '../queue/index.js'
import type { Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'

/** What `AccountDeletion` is built from. */
export interface AccountDeletionDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'warn'>
  readonly databases: Pick<Databases, 'idsOf' | 'remove'>
  readonly queue: Pick<Queue, 'dropEverywhere' | 'forgetFlowKeys'>
  /** Reloads the accounts. */
  readonly reload: () => Promise<unknown>
}

/** Rows deleted in one transaction. */
const BATCH = 200
/** Time for requests that were admitted before the deletion to commit. */
const SETTLE_MS = 1_000
/** Delay before the next attempt to delete a busy database. */
const RETRY_MS = 500
/** Delay before a failed deletion continues. */
const AGAIN_MS = 60_000

/** Completes the deletion of accounts. */
export class AccountDeletion implements Service {
  readonly name = 'account deletion'
  readonly #deps: AccountDeletionDeps
  /** Active deletions by account and team. They run side by side, so a busy database delays only its own account. */
  readonly #active = new Map<string, Promise<void>>()
  #again: Timer | undefined
  #isStopped = false

  constructor(deps: AccountDeletionDeps) {
    this.#deps = deps
  }

  /** Continues deletions that a crash interrupted, without delaying the start. */
  async start(): Promise<void> {
    void this.complete().catch(() => undefined)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#again?.cancel()
    await Promise.allSettled(this.#active.values())
  }

  /**
   * Deletes everything of all accounts and teams that are `deleting`. When it rejects, the rest is tried again later.
   * @param only the account or team whose deletion is awaited. Default: all.
   */
  async complete(only?: string): Promise<void> {
    const deletions = await this.#deps.store.run(operator.deleting, {}).catch((error: unknown) => {
      this.#tryLater(error)
      throw error
    })
    const begun = deletions.map((ids) => ({ ids, ended: this.#begin(ids) }))
    const awaited = begun.filter(({ ids }) => only === undefined || ids.includes(only))
    await Promise.all(awaited.map(({ ended }) => ended))
  }

  /**
   * Deletes accounts in this order, after the active deletions of any of them. If one active deletion covers all of them,
   * returns that one.
   */
  #begin(ids: readonly string[]): Promise<void> {
    const active = [...new Set(ids.map((id) => this.#active.get(id)))]
    const [same] = active
    if (active.length === 1 && same) return same
    const work = Promise.allSettled(active)
      .then(() => this.#deleteAll(ids))
      .finally(() => {
        for (const id of ids) if (this.#active.get(id) === work) this.#active.delete(id)
      })
    for (const id of ids) this.#active.set(id, work)
    work.catch((error: unknown) => this.#tryLater(error))
    return work
  }

  #tryLater(error: unknown): void {
    if (this.#isStopped) return
    this.#deps.logger.warn('account_deletion_pending', { error })
    this.#again?.cancel()
    this.#again = this.#deps.clock.after(AGAIN_MS, () => void this.complete().catch(() => undefined))
  }

  async #deleteAll(ids: readonly string[]): Promise<void> {
    const { store, queue, clock, logger, reload } = this.#deps
    const left = new Set((await store.run(operator.deleting, {})).flat())
    const accountIds = ids.filter((id) => left.has(id))
    if (accountIds.length === 0) return
    const keys: accountPurge.FlowKeyName[] = []
    for (const accountId of accountIds) keys.push(...(await this.#purge(accountId)))
    await pause(clock, SETTLE_MS)
    for (const accountId of accountIds) {
      do keys.push(...(await this.#purge(accountId)))
      while (!(await store.run(operator.finishDelete, { accountId })))
      logger.info('account_deleted', { accountId })
    }
    await store.run(alertsHistory.sweepOrphans, {})
    await reload()
    // Last, because until now a message or a request in flight may have used one of the keys.
    await queue.forgetFlowKeys(keys)
  }

  /** @returns the flow-control keys that were deleted. */
  async #purge(accountId: string): Promise<readonly accountPurge.FlowKeyName[]> {
    await this.#deleteDatabases(accountId)
    const { store, queue } = this.#deps
    const keys = await store.run(accountPurge.settings, { accountId })
    const page = { accountId, limit: BATCH }
    for (;;) {
      this.#refuseStopped()
      const seqs = await store.run(accountPurge.messages, page)
      if (seqs.length === 0) break
      await queue.dropEverywhere({ seqs })
    }
    for (;;) {
      this.#refuseStopped()
      const seqs = await store.run(accountPurge.runs, page)
      if (seqs.length === 0) break
      await queue.dropEverywhere({ groupKeys: seqs })
    }
    return keys
  }

  async #deleteDatabases(accountId: string): Promise<void> {
    const { databases, clock } = this.#deps
    for (;;) {
      this.#refuseStopped()
      const ids = await databases.idsOf(accountId)
      if (ids.length === 0) return
      let isBusy = false
      for (const id of ids) {
        try {
          await databases.remove(systemCaller(accountId), id)
        } catch (error) {
          // An active creation or change ends by itself; then the database can be deleted.
          if (!isError(error, 'database_busy') && !isError(error, 'database_not_found')) throw error
          isBusy = true
        }
      }
      if (isBusy) await pause(clock, RETRY_MS)
    }
  }

  #refuseStopped(): void {
    if (this.#isStopped) throw new Error('the server stops; the next start completes the deletion')
  }
}
