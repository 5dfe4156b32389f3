import { mapInSlices } from '../base/index.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { DatabasesDeps } from './deps.js'
import { type Homes, type OtherNodes, settingsElsewhere } from './homes.js'
import { type DatabaseRow, PAGE_ROWS } from './lifecycle.js'
import { type RecordSettings, renderRecord, shownTo, withSetAside } from './record.js'
import type { SetAsideFiles } from './set-aside.js'
import type { KnownDatabase, KnownDatabases } from './summaries.js'
import * as databases from './transactions/databases.js'
import type { Usage } from './usage/index.js'

/** What `Records` is built from. */
export interface RecordsDeps extends Pick<DatabasesDeps, 'store' | 'emailOf'> {
  /** For databases that this node serves. */
  readonly settings: RecordSettings
  readonly homes: Homes
  readonly usage: Pick<Usage, 'ledgers' | 'nowMs'>
  /** The databases that are being deleted. */
  readonly deleted: () => readonly DatabaseRow[]
  readonly isBeingCreated: (databaseId: string) => boolean
  readonly setAside: () => SetAsideFiles | undefined
}

/** Renders databases for callers, whichever node serves them. */
export class Records {
  readonly #deps: RecordsDeps

  constructor(deps: RecordsDeps) {
    this.#deps = deps
  }

  /** See `Databases.get`. */
  async get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord> {
    const { store, setAside } = this.#deps
    const row = await store.run(databases.get, { accountId: caller.accountId, databaseId })
    if (!row) throw new HomeportError('database_not_found', { databaseId })
    return withSetAside(this.render(row, caller, credentials), await setAside()?.of(databaseId))
  }

  /** See `Databases.list`. */
  async list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]> {
    const { store, homes } = this.#deps
    const { accountId } = caller
    const records: DatabaseRecord[] = []
    let after: databases.ListPlace | undefined
    let others: OtherNodes | undefined
    do {
      // Page by page, so that a long list blocks neither the store's thread nor the event loop.
      const rows = await store.run(databases.list, { accountId, after, limit: PAGE_ROWS })
      if (!others && rows.some((row) => !homes.isHere(row))) others = await homes.others(accountId)
      const rendered = await mapInSlices(rows, (row) => this.render(row, caller, credentials, others))
      records.push(...rendered)
      after = rows.length < PAGE_ROWS ? undefined : databases.placeOf(rows.at(-1))
    } while (after)
    return records
  }

  /**
   * The record of a database that a request has created: at this node, or at another node by an earlier request with the
   * same key.
   */
  async created(row: DatabaseRow, caller: Caller): Promise<DatabaseRecord> {
    const { homes } = this.#deps
    const others = homes.isHere(row) ? undefined : await homes.others(caller.accountId)
    return this.render(row, caller, 'show', others)
  }

  /** See `Databases.known`. */
  async known(accountId: string): Promise<KnownDatabases> {
    const { homes, usage, settings, isBeingCreated } = this.#deps
    const [here, { nowMs }] = [this.#knownHere(accountId), usage]
    const elsewhere = await homes.everyElsewhere(accountId)
    const isAwake = (id: string): boolean => settings.isAwake(id) || elsewhere.isAwake(id)
    return { known: [...here, ...elsewhere.known], settings: { ...settings, isAwake, isBeingCreated, nowMs } }
  }

  /** @param others what is known of other nodes, for a row that one of them may serve. */
  render(row: DatabaseRow, caller: Caller, credentials: 'show' | 'hide', others?: OtherNodes): DatabaseRecord {
    const { settings: own, homes, emailOf } = this.#deps
    const settings = others && !homes.isHere(row) ? settingsElsewhere(row, own, others) : own
    return renderRecord(row, emailOf(row.account_id), settings, shownTo(caller, credentials))
  }

  /** The served databases of an account and those being deleted. */
  #knownHere(accountId: string): KnownDatabase[] {
    const { usage, deleted } = this.#deps
    const known = [...usage.ledgers, ...deleted().map((row) => ({ row }))]
    return known.filter(({ row }) => row.account_id === accountId)
  }
}
