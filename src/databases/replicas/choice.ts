import { isError } from '../../contract/errors/errors.js'
import { dataBoundOf, planOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as standbys from '../transactions/standbys.js'
import type { ReplicasDeps } from './deps.js'

/** The node to look for. */
export interface NodeCriteria {
  readonly row: DatabaseRow
  readonly region: string
  /** Nodes that are not to be chosen, by name. */
  readonly except: readonly string[]
}

/**
 * A live node of a read region, chosen as for a new database. Undefined when there is none. A node that keeps a standby of
 * the database is not chosen: the files of both copies would be in one directory.
 */
export async function nodeOfRegion(
  { placement, plans, node, store }: ReplicasDeps,
  { row, region, except: others }: NodeCriteria,
): Promise<string | undefined> {
  const copies = await store.run(standbys.nodesOf, { databaseId: row.database_id })
  const except = [node, ...others, ...copies]
  try {
    return await placement.homeFor({ region, memoryBytes: dataBoundOf(planOf(row, plans)), except, role: 'replica' })
  } catch (error) {
    if (isError(error, 'no_node_in_region') || isError(error, 'region_without_capacity')) return undefined
    throw error
  }
}
