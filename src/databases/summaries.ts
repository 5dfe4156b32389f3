/** Lists and counts of databases from memory: ten thousand databases cost neither a store read nor an engine command. */
import {
  type DatabaseSummaries,
  type DatabaseSummary,
  type DatabaseTally,
  MOST_SUMMARIES,
  type SummariesQuery,
} from '../contract/console/console.js'
import type { PlanTable } from '../contract/databases/plans.js'
import { planOf } from './desired-engine.js'
import type { DatabaseRow } from './life.js'
import { knownReadRegionsOf, paymentType, primaryRegionOf, stateOf } from './record.js'
import type { Suspended } from './suspended.js'
import type { UsageLedger } from './usage/index.js'

/** A database in memory: its usage ledger, or only its row while it is being deleted. */
export type KnownDatabase = { readonly row: DatabaseRow } & Partial<Pick<UsageLedger, 'monthRequests' | 'usedBytes'>>

/** What summaries need besides the rows. */
export interface SummarySettings {
  readonly plans: PlanTable
  /** Whether the engines of a database run or are starting. */
  readonly isAwake: (databaseId: string) => boolean
  /** Why a database is suspended, apart from its budget. */
  readonly suspended: Suspended
  /** Whether this process is creating the database. Its row in memory keeps saying `creating` after that. */
  readonly isBeingCreated: (databaseId: string) => boolean
  readonly nowMs: number
}

/** Counts databases by state. */
export function tallyOf(
  known: readonly KnownDatabase[],
  settings: Pick<SummarySettings, 'isAwake' | 'isBeingCreated' | 'suspended'>,
): DatabaseTally {
  const tally = { active: 0, passive: 0, suspended: 0, modifying: 0 }
  for (const { row } of known) {
    tally[stateOf(row, settings)]++
    if (modifyingStateOf(row, settings) !== '') tally.modifying++
  }
  return tally
}

function modifyingStateOf(
  { database_id, modifying_state }: DatabaseRow,
  { isBeingCreated }: Pick<SummarySettings, 'isBeingCreated'>,
): DatabaseRow['modifying_state'] {
  return modifying_state === 'creating' && !isBeingCreated(database_id) ? '' : modifying_state
}

/** A page of databases, oldest first. */
export function summariesOf(
  known: readonly KnownDatabase[],
  { search = '', count = MOST_SUMMARIES, cursor }: SummariesQuery,
  settings: SummarySettings,
): DatabaseSummaries {
  const found = known.filter(({ row }) => isMatch(row, search.trim().toLowerCase())).sort(byAge)
  const begin = cursor === undefined ? 0 : found.findIndex(({ row }) => compare(placeOf(row), placeAt(cursor)) > 0)
  const page = begin < 0 ? [] : found.slice(begin, begin + count)
  const last = page.at(-1)
  return {
    databases: page.map((one) => summaryOf(one, settings)),
    matched: found.length,
    ...(last !== undefined && last !== found.at(-1) && { cursor: placeOf(last.row).join('/') }),
  }
}

const isMatch = ({ name, database_id }: DatabaseRow, search: string): boolean =>
  name.toLowerCase().includes(search) || database_id === search

/** The sort key of a database in the list. */
type Place = readonly [createdAt: number, databaseId: string]

const placeOf = ({ created_at, database_id }: DatabaseRow): Place => [created_at, database_id]

function placeAt(cursor: string): Place {
  const [createdAt, databaseId = ''] = cursor.split('/')
  return [Number(createdAt), databaseId]
}

function compare([at, id]: Place, [otherAt, otherId]: Place): number {
  if (at !== otherAt) return at - otherAt
  return id < otherId ? -1 : Number(id > otherId)
}

const byAge = (one: KnownDatabase, other: KnownDatabase): number => compare(placeOf(one.row), placeOf(other.row))

function summaryOf(known: KnownDatabase, settings: SummarySettings): DatabaseSummary {
  const { row } = known
  return {
    database_id: row.database_id,
    database_name: row.name,
    state: stateOf(row, settings),
    modifying_state: modifyingStateOf(row, settings),
    type: paymentType(row),
    db_disk_threshold: planOf(row, settings.plans).db_disk_threshold,
    primary_region: primaryRegionOf(row),
    read_regions: knownReadRegionsOf(row),
    creation_time: Math.floor(row.created_at / 1000),
    requests: known.monthRequests?.(settings.nowMs) ?? 0,
    storage_bytes: known.usedBytes ?? 0,
  }
}
