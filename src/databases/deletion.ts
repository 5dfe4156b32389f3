import { auditRow } from '../accounts/index.js'
import type { Caller } from '../http/index.js'
import type { Backups } from './backups/index.js'
import type { ServingDirectory } from './directory.js'
import { beginDelete, endDelete } from './life.js'
import type { DatabasesOptions } from './parts.js'

/** Deletes databases, down to the last file. */
export class Deletion {
  readonly #parts: DatabasesOptions
  readonly #directory: ServingDirectory
  readonly #backups: Pick<Backups, 'removeAll'>
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(parts: DatabasesOptions, directory: ServingDirectory, backups: Pick<Backups, 'removeAll'>) {
    this.#parts = parts
    this.#directory = directory
    this.#backups = backups
  }

  /** Deletes a database of the caller's account and resolves when nothing is left of it. May be repeated. */
  async remove(caller: Caller, databaseId: string): Promise<void> {
    const event = { action: 'Delete Database', entity: databaseId, details: {} }
    const audit = auditRow(caller, event, this.#parts.clock.now())
    await beginDelete(this.#parts.store, { accountId: caller.accountId, databaseId, audit })
    const underWay = this.#underWay.get(databaseId) ?? this.#track(databaseId)
    await underWay
  }

  /** Waits for what is under way, whatever comes of it. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  #track(databaseId: string): Promise<void> {
    const work = this.#end(databaseId).finally(() => this.#underWay.delete(databaseId))
    this.#underWay.set(databaseId, work)
    return work
  }

  async #end(databaseId: string): Promise<void> {
    this.#directory.remove(databaseId)
    await this.#parts.fleet.remove(databaseId)
    await this.#backups.removeAll(databaseId)
    await endDelete(this.#parts.store, databaseId)
  }
}
