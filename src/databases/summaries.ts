/** Lists and counts of databases from memory: ten thousand databases cost neither a store read nor an engine command. */
import {
  type DatabaseSummaries,
  type DatabaseSummary,
  type DatabaseTally,
  type DatabaseUsage,
  MAX_SUMMARIES,
  type SummariesQuery,
  type SummaryOrder,
} from '../contract/console/console.js'
import type { PlanTable } from '../contract/databases/plans.js'
import { planOf } from './desired-engine.js'
import type { DatabaseRow } from './lifecycle.js'
import { knownReadRegionsOf, paymentType, primaryRegionOf, stateOf } from './record.js'
import type { Suspended } from './suspended.js'
import { NANO } from './usage/cost.js'
import type { UsageLedger } from './usage/index.js'

/** A database in memory: its usage ledger, or only its row while it is being deleted. */
export type KnownDatabase = { readonly row: DatabaseRow } & Partial<
  Pick<UsageLedger, 'monthRequests' | 'monthCostNano' | 'usedBytes'>
>

/** All databases of an account, and what lists and counts of them need besides. */
export interface KnownDatabases {
  readonly known: readonly KnownDatabase[]
  readonly settings: SummarySettings
}

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

/** A page of databases, in the order of the query. Databases that are equal in it are ordered by id. */
export function summariesOf(
  known: readonly KnownDatabase[],
  query: SummariesQuery,
  settings: SummarySettings,
): DatabaseSummaries {
  const { search = '', count = MAX_SUMMARIES, cursor, sort = 'created', direction = 'asc' } = query
  const text = search.trim().toLowerCase()
  const sign = direction === 'asc' ? 1 : -1
  const found = known
    .filter(({ row }) => isMatch(row, text))
    .map((one) => placed(one, sort, settings))
    .filter(({ summary }) => isKept(summary, query))
    .sort((one, other) => sign * compare(one.place, other.place))
  const from = cursor === undefined ? undefined : placeAt(cursor, sort)
  const begin = from === undefined ? 0 : found.findIndex(({ place }) => sign * compare(place, from) > 0)
  const page = begin < 0 ? [] : found.slice(begin, begin + count)
  const last = page.at(-1)
  return {
    databases: page.map(({ summary }) => summary),
    matched: found.length,
    ...(last !== undefined && last !== found.at(-1) && { cursor: cursorOf(last.place) }),
  }
}

/** What the databases used this month, the most expensive first. */
export function usageOf({ known, settings: { nowMs } }: KnownDatabases): DatabaseUsage[] {
  const entries = known.map((one) => ({
    database_id: one.row.database_id,
    database_name: one.row.name,
    requests: one.monthRequests?.(nowMs) ?? 0,
    storage_bytes: one.usedBytes ?? 0,
    cost: (one.monthCostNano?.(nowMs) ?? 0) / NANO,
    budget: one.row.budget,
  }))
  return entries.sort((one, other) => other.cost - one.cost)
}

const isMatch = ({ name, database_id }: DatabaseRow, search: string): boolean =>
  name.toLowerCase().includes(search) || database_id === search

function isKept(one: DatabaseSummary, query: SummariesQuery): boolean {
  const { state, type, region } = query
  const isIn = (value: number, least = 0, most = Number.POSITIVE_INFINITY): boolean => value >= least && value <= most
  return (
    (state === undefined || one.state === state) &&
    (type === undefined || one.type === type) &&
    (region === undefined || one.primary_region === region || one.read_regions.some((read) => read === region)) &&
    isIn(one.storage_bytes, query.min_storage_bytes, query.max_storage_bytes) &&
    isIn(one.requests, query.min_requests, query.max_requests) &&
    isIn(one.creation_time, query.created_after) &&
    one.creation_time < (query.created_before ?? Number.POSITIVE_INFINITY)
  )
}

/** The sort key of a database in the list. All keys of a list have the same type. */
type Place = readonly [key: number | string, databaseId: string]

interface Placed {
  readonly place: Place
  readonly summary: DatabaseSummary
}

function placed(known: KnownDatabase, order: SummaryOrder, settings: SummarySettings): Placed {
  const summary = summaryOf(known, settings)
  return { summary, place: [keyOf(order, summary, known.row.created_at), summary.database_id] }
}

/** The order in which a reader looks for databases: active ones, those being changed, and the others. */
const STATES: Readonly<Record<DatabaseSummary['state'], number>> = { active: 0, passive: 2, suspended: 3 }
const CHANGING = 1
const PAYMENTS: Readonly<Record<DatabaseSummary['type'], number>> = { free: 0, payg: 1, paid: 2, pro: 3 }
/** Above every size of a plan, bytes: the kind of payment decides first, then the size. */
const LARGEST_PLAN = 2 ** 50

function keyOf(order: SummaryOrder, one: DatabaseSummary, createdAtMs: number): number | string {
  switch (order) {
    case 'created':
      return createdAtMs
    case 'name':
      return one.database_name.toLowerCase()
    case 'region':
      return one.primary_region
    case 'state':
      return one.modifying_state === '' ? STATES[one.state] : CHANGING
    case 'plan':
      return PAYMENTS[one.type] * LARGEST_PLAN + Math.min(one.db_disk_threshold, LARGEST_PLAN - 1)
    case 'size':
      return one.storage_bytes
    case 'requests':
      return one.requests
  }
}

const isText = (order: SummaryOrder): boolean => order === 'name' || order === 'region'

const cursorOf = ([key, databaseId]: Place): string =>
  `${typeof key === 'string' ? Buffer.from(key).toString('base64url') : key}/${databaseId}`

function placeAt(cursor: string, order: SummaryOrder): Place {
  const [key = '', databaseId = ''] = cursor.split('/')
  return [isText(order) ? Buffer.from(key, 'base64url').toString() : Number(key), databaseId]
}

function compare([key, id]: Place, [otherKey, otherId]: Place): number {
  if (key !== otherKey) return key < otherKey ? -1 : 1
  return id < otherId ? -1 : Number(id > otherId)
}

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
