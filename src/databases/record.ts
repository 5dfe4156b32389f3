import type { DatabaseRecord } from '../contract/databases/databases.js'
import type { PlanTable } from '../contract/databases/plans.js'
import { isPrimaryRegion, isReadRegion, type ReadRegion, type Region } from '../contract/databases/regions.js'
import type { Caller } from '../http/index.js'
import { allowedIpsOf, planOf, readRegionsOf, usersOf } from './desired-engine.js'
import { renderLoss } from './losses.js'
import { type Suspended, type SuspensionColumns, suspensionOf } from './suspended.js'
import type { DatabaseRow } from './transactions/database-row.js'
import type { SetAsideRow } from './transactions/recoveries.js'

/** Which credentials a record shows. */
export type ShownCredentials = 'all' | 'read-only' | 'none'

/** What a record needs besides the row. */
export interface RecordSettings {
  readonly plans: PlanTable
  readonly publicRedisHost: string
  readonly publicRestUrl: string
  /** Databases with TLS are reached at subdomains of this domain, all on `redisDomainPort`. */
  readonly redisDomain?: string | undefined
  readonly redisDomainPort: number
  /** Whether the engines of a database run or are starting. */
  readonly isAwake: (databaseId: string) => boolean
  /** Whether answers wait until a second node has what was written. Omitted: no. */
  readonly isReplicated?: (databaseId: string) => boolean
  /** Why a database is suspended, apart from its budget. */
  readonly suspended: Suspended
}

/**
 * The record of a database, as the management API answers it. Lists have thousands of records, so each is one object
 * literal, not a merge of smaller objects.
 * @throws Error when the row has an unknown region or plan, or an unreadable list.
 */
export function renderRecord(
  row: DatabaseRow,
  email: string,
  settings: RecordSettings,
  shown: ShownCredentials,
): DatabaseRecord {
  const record = facts(row, email, settings)
  const by = suspensionOf(row, settings.suspended)
  if (by !== undefined) record.suspended_by = by
  const problem = row.data_problem === null ? undefined : renderLoss(row)
  if (problem) record.data_problem = problem
  show(record, row, shown)
  return record
}

/** Adds what old homes of the database have set aside. */
export function withSetAside(record: DatabaseRecord, rows: readonly SetAsideRow[] = []): DatabaseRecord {
  if (rows.length === 0) return record
  const set_aside = rows.map(({ node, path, size_bytes: bytes, taken_at }) => {
    return { node, path, bytes, taken_at: Math.floor(taken_at / 1000) }
  })
  return { ...record, set_aside }
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one literal with a line for each field of the record
function facts(row: DatabaseRow, email: string, settings: RecordSettings): DatabaseRecord {
  const plan = planOf(row, settings.plans)
  const primaryRegion = primaryRegionOf(row)
  const readRegions = knownReadRegionsOf(row)
  const allowedIps = [...allowedIpsOf(row)]
  const { endpoint, port } = address(row, settings)
  return {
    database_id: row.database_id,
    database_name: row.name,
    region: 'global',
    endpoint,
    port,
    creation_time: Math.floor(row.created_at / 1000),
    state: stateOf(row, settings),
    tls: row.tls === 1,
    type: paymentType(row),
    budget: row.budget,
    primary_region: primaryRegion,
    primary_members: [primaryRegion],
    all_members: [primaryRegion, ...readRegions],
    read_regions: readRegions,
    replicas: 1 + readRegions.length,
    eviction: row.eviction === 1,
    db_eviction: row.eviction === 1,
    auto_upgrade: row.auto_upgrade === 1,
    consistent: settings.isReplicated?.(row.database_id) ?? false,
    modifying_state: row.modifying_state,
    db_type: row.persistence === 'append-only' ? 'pebble' : 'bolt',
    db_acl_enabled: usersOf(row).length > 0 ? 'true' : 'false',
    db_acl_default_user_status: 'true',
    last_plan_upgrade_time: Math.floor(row.last_upgrade_at / 1000),
    customer_id: email,
    user_email: email,
    daily_backup_enabled: row.next_daily_backup_at !== null,
    securityAddons: {
      ipWhitelisting: allowedIps.length > 0,
      vpcPeering: false,
      privateLink: false,
      tlsMutualAuth: row.client_authority !== null,
      encryptionAtRest: false,
    },
    database_type: planInWords(row),
    multizone: false,
    db_daily_bandwidth_limit: Number.MAX_SAFE_INTEGER,
    // As in the original, the integration is part of the production pack.
    prometheus_enabled: row.production_pack === 1 ? 'true' : 'false',
    prod_pack_enabled: row.production_pack === 1,
    allowed_ip_ranges: allowedIps,
    rest_url: settings.publicRestUrl,
    db_conn_idle_timeout: plan.db_conn_idle_timeout,
    db_lua_timeout: plan.db_lua_timeout,
    db_lua_credits_per_min: plan.db_lua_credits_per_min,
    db_store_max_idle: plan.db_store_max_idle,
    db_max_loads_per_sec: plan.db_max_loads_per_sec,
    db_max_clients: plan.db_max_clients,
    db_max_commands_per_second: plan.db_max_commands_per_second,
    db_request_limit: plan.db_request_limit,
    db_resource_size: plan.db_resource_size,
    db_max_request_size: plan.db_max_request_size,
    db_max_entry_size: plan.db_max_entry_size,
    db_disk_threshold: plan.db_disk_threshold,
    db_memory_threshold: plan.db_memory_threshold,
  }
}

/**
 * The region of the primary.
 * @throws Error when the row has an unknown one.
 */
export function primaryRegionOf({ database_id, primary_region }: DatabaseRow): Region {
  if (isPrimaryRegion(primary_region)) return primary_region
  throw new Error(`database ${database_id} has the unknown primary region ${primary_region}`)
}

/**
 * The regions of the replicas.
 * @throws Error when the row has an unknown one.
 */
export function knownReadRegionsOf(row: DatabaseRow): ReadRegion[] {
  const regions: ReadRegion[] = []
  for (const region of readRegionsOf(row)) {
    if (!isReadRegion(region)) throw new Error(`database ${row.database_id} has the unknown read region ${region}`)
    regions.push(region)
  }
  return regions
}

/** Suspension is stored; whether a database sleeps depends on this process. */
export function stateOf(
  row: SuspensionColumns,
  { isAwake, suspended }: Pick<RecordSettings, 'isAwake' | 'suspended'>,
): DatabaseRecord['state'] {
  if (suspensionOf(row, suspended) !== undefined) return 'suspended'
  return isAwake(row.database_id) ? 'active' : 'passive'
}

/** Without TLS there is no server name, so a plain-text database keeps its own port even when a domain is configured. */
function address(row: DatabaseRow, settings: RecordSettings): Pick<DatabaseRecord, 'endpoint' | 'port'> {
  const { redisDomain, redisDomainPort, publicRedisHost } = settings
  if (redisDomain === undefined || row.tls === 0) return { endpoint: publicRedisHost, port: row.port }
  return { endpoint: `${row.slug}.${redisDomain}`, port: redisDomainPort }
}

/** How a database is paid for. */
export function paymentType({ plan, production_pack }: DatabaseRow): DatabaseRecord['type'] {
  if (production_pack === 1) return 'pro'
  return plan === 'free' || plan === 'payg' ? plan : 'paid'
}

const PLAN_WORDS: Readonly<Record<string, string>> = { free: 'Free', payg: 'Pay as You Go' }

/** The plan in words, such as `Pay as You Go` or `Fixed 250MB` (reference redis 1.4). */
function planInWords({ plan }: DatabaseRow): string {
  return PLAN_WORDS[plan] ?? plan.toUpperCase().replace('FIXED_', 'Fixed ')
}

function show(record: DatabaseRecord, row: DatabaseRow, shown: ShownCredentials): void {
  if (shown === 'none') return
  if (shown === 'all') {
    record.password = row.password
    record.rest_token = row.rest_token
  }
  record.read_only_rest_token = row.read_only_rest_token
}

/** What a caller sees: a read-only one must not see credentials that allow writing. */
export function shownTo(
  { role, access }: Pick<Caller, 'role' | 'access'>,
  credentials: 'show' | 'hide',
): ShownCredentials {
  // The role finance sees costs, not data.
  if (credentials === 'hide' || role === 'finance') return 'none'
  return access === 'read' ? 'read-only' : 'all'
}
