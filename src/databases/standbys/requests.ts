import { auditRow } from '../../accounts/index.js'
import type { DatabaseStandby } from '../../contract/server/standbys.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import * as sets from '../transactions/standby-sets.js'
import * as standbys from '../transactions/standbys.js'
import type { Standbys } from './standbys.js'

/** Who asks for standbys. */
export interface StandbyRequestContext {
  readonly store: Pick<Store, 'run'>
  readonly caller: Caller
  /** Unix milliseconds. */
  readonly at: number
  /** The standbys of this node. */
  readonly standbys: Standbys | undefined
}

/** What is asked for the standbys of a database. */
export interface StandbyRequest {
  /** Undefined: as it is, or `async`. */
  readonly mode?: DatabaseStandby['mode']
  /** How many standbys it has to have. Undefined: as many as it has, or one. */
  readonly copies?: number
}

/** Asks a node to keep a standby of a database. */
export async function putStandby(
  context: StandbyRequestContext,
  databaseId: string,
  { node, ...asked }: StandbyRequest & { node: string },
): Promise<void> {
  await context.store.run(sets.put, { node, ...argsOf(context, databaseId, asked, node) })
  context.standbys?.notifyNodes()
}

/** Makes the home of a database choose the nodes of its standbys. */
export async function placeStandby(
  context: StandbyRequestContext,
  databaseId: string,
  asked: StandbyRequest,
): Promise<void> {
  await context.store.run(sets.putAuto, argsOf(context, databaseId, asked, 'auto'))
  context.standbys?.notifyNodes()
}

function argsOf(
  { caller, at }: StandbyRequestContext,
  databaseId: string,
  { mode, copies }: StandbyRequest,
  node: string,
): sets.StandbySetArgs {
  const details = { node, ...(mode && { mode }), ...(copies !== undefined && { copies }) }
  const event = { action: 'Set Database Standby', entity: databaseId, details } as const
  return { databaseId, mode, copies, at, audit: auditRow(caller, event, at) }
}

/** Like `placeStandby`, for every database without a standby. Resolves to how many there were. */
export async function placeStandbys(context: StandbyRequestContext): Promise<{ added: number }> {
  const { store, caller, at } = context
  const event = { action: 'Set Database Standby', entity: 'all', details: { node: 'auto' } } as const
  const added = await store.run(sets.putAutoAll, { at, audit: auditRow(caller, event, at) })
  context.standbys?.notifyNodes()
  return { added }
}

/** Ends the standbys of a database; with a node, only one at that node. */
export async function dropStandby(context: StandbyRequestContext, databaseId: string, node?: string): Promise<void> {
  const { store, caller, at } = context
  const event = { action: 'Remove Database Standby', entity: databaseId, details: node ? { node } : {} } as const
  await store.run(sets.drop, { databaseId, node, audit: auditRow(caller, event, at) })
  context.standbys?.notifyNodes()
}

/** All standbys. */
export async function listStandbys(store: Pick<Store, 'run'>): Promise<DatabaseStandby[]> {
  return (await store.run(standbys.list, {})).map(render)
}

function render(row: standbys.PlacedStandby): DatabaseStandby {
  const isPlaced = row.node !== row.home
  return {
    database_id: row.database_id,
    database_name: row.name,
    home: row.home ?? '',
    slot: row.slot,
    standby: isPlaced ? row.node : '',
    placement: row.placement,
    mode: row.mode,
    state: row.state,
    problem: isPlaced ? (row.problem ?? '') : 'no other node of its region takes part',
    complete_until: row.complete_until ?? 0,
    home_offset: row.home_offset ?? 0,
    standby_offset: row.standby_offset ?? 0,
  }
}
