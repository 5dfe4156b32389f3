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

/** What is asked for a standby. */
export interface StandbyRequest {
  /** Undefined: as it is, or `async`. */
  readonly mode?: DatabaseStandby['mode']
}

/** Asks a node to keep the standby of a database. */
export async function putStandby(
  asking: AskingForStandbys,
  databaseId: string,
  { node, mode }: StandbyRequest & { node: string },
): Promise<void> {
  const { store, caller, at } = asking
  const event = {
    action: 'Set Database Standby',
    entity: databaseId,
    details: { node, ...(mode && { mode }) },
  } as const
  await store.run(standbys.put, { databaseId, node, mode, at, audit: auditRow(caller, event, at) })
  asking.standbys?.asked()
}

/** Has the home of a database choose the node of its standby. */
export async function placeStandby(
  asking: AskingForStandbys,
  databaseId: string,
  { mode }: StandbyRequest,
): Promise<void> {
  const { store, caller, at } = asking
  const details = { node: 'auto', ...(mode && { mode }) }
  const event = { action: 'Set Database Standby', entity: databaseId, details } as const
  await store.run(standbys.putAuto, { databaseId, mode, at, audit: auditRow(caller, event, at) })
  asking.standbys?.asked()
}

/** The same for every database without a standby. Answers how many there were. */
export async function placeStandbys(asking: AskingForStandbys): Promise<{ added: number }> {
  const { store, caller, at } = asking
  const event = { action: 'Set Database Standby', entity: 'all', details: { node: 'auto' } } as const
  const added = await store.run(standbys.putAutoAll, { at, audit: auditRow(caller, event, at) })
  asking.standbys?.asked()
  return { added }
}

/** Ends the standby of a database; with a node, only one at that node. */
export async function dropStandby(asking: AskingForStandbys, databaseId: string, node?: string): Promise<void> {
  const { store, caller, at } = asking
  const event = { action: 'Remove Database Standby', entity: databaseId, details: node ? { node } : {} } as const
  await store.run(standbys.drop, { databaseId, node, at, audit: auditRow(caller, event, at) })
  asking.standbys?.asked()
}

/** All standbys. */
export async function listStandbys(store: Pick<Store, 'run'>): Promise<DatabaseStandby[]> {
  return (await store.run(standbys.list, {})).map(render)
}

function render(row: standbys.PlacedStandby): DatabaseStandby {
  const isPlaced = row.node !== row.home
  return {
    ...{ database_id: row.database_id, database_name: row.name, home: row.home ?? '' },
    ...{ standby: isPlaced ? row.node : '', placement: row.placement, mode: row.mode, state: row.state },
    problem: isPlaced ? (row.problem ?? '') : 'no other node of its region takes part',
    complete_until: row.complete_until ?? 0,
    home_offset: row.home_offset ?? 0,
    standby_offset: row.standby_offset ?? 0,
  }
}
