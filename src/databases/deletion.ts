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
  readonly #parts: DeletionDeps
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #leaving = new Map<string, DatabaseRow>()

  constructor(parts: DeletionDeps) {
    this.#parts = parts
  }

  /** Deletes a database of the caller's account and resolves when nothing is left of it. May be repeated. */
  async remove(caller: Caller, databaseId: string): Promise<void> {
    const event = { action: 'Delete Database', entity: databaseId, details: {} } as const
    const audit = auditRow(caller, event, this.#parts.clock.now())
    await beginDelete(this.#parts.store, { accountId: caller.accountId, databaseId, audit })
    const underWay = this.#underWay.get(databaseId) ?? this.#track(databaseId)
    await underWay
  }

  /** What is being deleted, and what could not be deleted to the end. */
  get leaving(): readonly DatabaseRow[] {
    return [...this.#leaving.values()]
  }

  /** Waits until what is under way has ended, well or not. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  #track(databaseId: string): Promise<void> {
    const work = this.#end(databaseId).finally(() => this.#underWay.delete(databaseId))
    this.#underWay.set(databaseId, work)
    return work
  }

  async #end(databaseId: string): Promise<void> {
    const { directory, sleep, fleet, backups, store } = this.#parts
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
