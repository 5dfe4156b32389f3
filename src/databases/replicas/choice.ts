import { isError } from '../../contract/errors/errors.js'
import { dataBoundOf, planOf } from '../desired-engine.js'
import type { DatabaseRow } from '../life.js'
import * as standbys from '../transactions/standbys.js'
import type { ReplicasDeps } from './deps.js'

/**
 * A live node of a read region, chosen as for a new database. Undefined when there is none, or when it keeps the standby of
 * the database, whose files are elsewhere in its data directory under the same name.
 */
export async function nodeOfRegion(
  { placement, plans, node, store }: ReplicasDeps,
  row: DatabaseRow,
  region: string,
): Promise<string | undefined> {
  const standby = await store.run(standbys.nodeOf, { databaseId: row.database_id })
  const except = standby === undefined ? [node] : [node, standby]
  try {
    return await placement.homeFor({ region, memoryBytes: dataBoundOf(planOf(row, plans)), except, role: 'replica' })
  } catch (error) {
    if (isError(error, 'no_node_in_region') || isError(error, 'region_without_capacity')) return undefined
    throw error
  }
}
