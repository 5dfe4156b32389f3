import { auditRow } from '../../accounts/index.js'
import type { DatabaseStandby } from '../../contract/server/standbys.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import * as standbys from '../transactions/standbys.js'
import type { Standbys } from './standbys.js'

/** Who asks for standbys. */
export interface AskingForStandbys {
  readonly store: Pick<Store, 'run'>
  readonly caller: Caller
  /** Unix milliseconds. */
  readonly at: number
  /** The standbys of this node. */
  readonly standbys: Standbys | undefined
}

/** Asks a node to keep the standby of a database. */
export async function putStandby(asking: AskingForStandbys, databaseId: string, node: string): Promise<void> {
  const { store, caller, at } = asking
  const event = { action: 'Set Database Standby', entity: databaseId, details: { node } } as const
  await store.run(standbys.put, { databaseId, node, at, audit: auditRow(caller, event, at) })
  asking.standbys?.asked()
}

/** Ends the standby of a database at a node. */
export async function dropStandby(asking: AskingForStandbys, databaseId: string, node: string): Promise<void> {
  const { store, caller, at } = asking
  const event = { action: 'Remove Database Standby', entity: databaseId, details: { node } } as const
  await store.run(standbys.drop, { databaseId, node, at, audit: auditRow(caller, event, at) })
  asking.standbys?.asked()
}

/** All standbys. */
export async function listStandbys(store: Pick<Store, 'run'>): Promise<DatabaseStandby[]> {
  return (await store.run(standbys.list, {})).map((row) => ({
    ...{ database_id: row.database_id, database_name: row.name, home: row.home ?? '', standby: row.node },
    ...{ state: row.state, problem: row.problem ?? '' },
    complete_until: row.complete_until ?? 0,
    home_offset: row.home_offset ?? 0,
    standby_offset: row.standby_offset ?? 0,
  }))
}
