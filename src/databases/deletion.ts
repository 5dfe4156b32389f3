import { auditRow } from '../accounts/index.js'
import type { Caller } from '../http/index.js'
import type { Backups } from './backups/index.js'
import type { ChangeDeps } from './deps.js'
import { beginDelete, type DatabaseRow, endDelete } from './life.js'

/** What deletions need of the databases around them. */
interface DeletionDeps extends ChangeDeps {
  readonly backups: Pick<Backups, 'removeAll'>
}

/** Deletes databases, down to the last file. */
export class Deletion {
  readonly #deps: DeletionDeps
  readonly #active = new Map<string, Promise<void>>()
  readonly #leaving = new Map<string, DatabaseRow>()

  constructor(deps: DeletionDeps) {
    this.#deps = deps
  }

  /** Deletes a database of the caller's account and resolves when nothing is left of it. May be repeated. */
  async remove(caller: Caller, databaseId: string): Promise<void> {
    const event = { action: 'Delete Database', entity: databaseId, details: {} } as const
    const audit = auditRow(caller, event, this.#deps.clock.now())
    await beginDelete(this.#deps.store, { accountId: caller.accountId, databaseId, audit })
    const active = this.#active.get(databaseId) ?? this.#track(databaseId)
    await active
  }

  /** What is being deleted, and what could not be deleted to the end. */
  get leaving(): readonly DatabaseRow[] {
    return [...this.#leaving.values()]
  }

  /** Waits until what is under way has ended, well or not. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#active.values())
  }

  #track(databaseId: string): Promise<void> {
    const work = this.#end(databaseId).finally(() => this.#active.delete(databaseId))
    this.#active.set(databaseId, work)
    return work
  }

  async #end(databaseId: string): Promise<void> {
    const { directory, sleep, fleet, backups, store } = this.#deps
    const row = directory.rowOf(databaseId)
    if (row) this.#leaving.set(databaseId, { ...row, modifying_state: 'deleting' })
    directory.remove(databaseId)
    sleep.forget(databaseId)
    await fleet.remove(databaseId)
    await backups.removeAll(databaseId)
    await endDelete(store, databaseId)
    this.#leaving.delete(databaseId)
  }
}
