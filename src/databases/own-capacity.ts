import { usableMemoryBytes } from '../base/index.js'
import type { DatabasesDeps } from './deps.js'
import { dataBoundOf, planOf } from './desired-engine.js'
import type { Capacity } from './placement.js'
import type { UsageLedger } from './usage/ledger.js'

/** What the capacity of this node is computed from. */
export interface CapacityFacts {
  readonly deps: Pick<DatabasesDeps, 'fleet' | 'plans' | 'settings'>
  /** Ledgers of the databases that this node serves. */
  readonly ledgers: readonly Pick<UsageLedger, 'row' | 'usedBytes'>[]
  readonly isAwake: (databaseId: string) => boolean
}

/** The capacity of this node for another database. */
export async function capacityHere({ deps, ledgers, isAwake }: CapacityFacts): Promise<Capacity> {
  const { fleet, plans, settings } = deps
  const awake = ledgers.filter(({ row }) => isAwake(row.database_id))
  return {
    region: settings.region,
    hasSpace: await fleet.checkSpace(),
    awake: awake.length,
    mostAwake: settings.awakeDatabases,
    databases: ledgers.length,
    promisedBytes: awake.reduce((sum, { row }) => sum + dataBoundOf(planOf(row, plans)), 0),
    engineBytes: awake.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
    memoryBytes: usableMemoryBytes(),
    availableBytes: process.availableMemory(),
    keepsReplicas: true,
  }
}
