import { Compile } from 'typebox/compile'
import { type DatabaseRecord, DatabaseRecordSchema } from '../contract/databases.js'
import type { PlanTable } from '../contract/plans.js'
import type { operations } from '../store/index.js'
import { allowedIpsOf, planOf, readRegionsOf, usersOf } from './engine-wish.js'

type DatabaseRow = operations.databases.DatabaseRow

/** Which credentials a record shows: all of them, those for reading only, or none. */
export type ShownCredentials = 'all' | 'read-only' | 'none'

/** What a record tells besides what is stored. */
export interface RecordSettings {
  readonly plans: PlanTable
  readonly publicRedisHost: string
  readonly publicRestUrl: string
  /** Databases with TLS are reached under names below this domain, all on `redisDomainPort`. */
  readonly redisDomain?: string | undefined
  readonly redisDomainPort: number
  /** Whether the engines of a database run or are about to. */
  readonly isAwake: (databaseId: string) => boolean
}

/** The record of a database as the management API answers it. */
export function renderRecord(
  row: DatabaseRow,
  email: string,
  settings: RecordSettings,
  shown: ShownCredentials,
): DatabaseRecord {
  const record = { ...facts(row, email, settings), ...limits(row, settings), ...credentials(row, shown) }
  // Regions come out of the store as texts; a wrong one there is a defect that must not reach clients.
  if (!checker.Check(record)) throw new Error(`the record of database ${row.database_id} breaks its own schema`)
  return record
}

const checker = Compile(DatabaseRecordSchema)

function facts(row: DatabaseRow, email: string, settings: RecordSettings): object {
  const readRegions = readRegionsOf(row)
  const allowedIps = allowedIpsOf(row)
  return {
    database_id: row.database_id,
    database_name: row.name,
    region: 'global',
    ...address(row, settings),
    creation_time: Math.floor(row.created_at / 1000),
    state: stateOf(row, settings),
    tls: row.tls === 1,
    type: paymentType(row),
    budget: row.budget,
    primary_region: row.primary_region,
    primary_members: [row.primary_region],
    all_members: [row.primary_region, ...readRegions],
    read_regions: readRegions,
    replicas: 1 + readRegions.length,
    eviction: row.eviction === 1,
    db_eviction: row.eviction === 1,
    auto_upgrade: row.auto_upgrade === 1,
    consistent: false,
    modifying_state: row.modifying_state,
    db_type: row.persistence === 'append-only' ? 'pebble' : 'bolt',
    db_acl_enabled: usersOf(row).length > 0 ? 'true' : 'false',
    db_acl_default_user_status: 'true',
    last_plan_upgrade_time: Math.floor(row.last_upgrade_at / 1000),
    customer_id: email,
    user_email: email,
    daily_backup_enabled: row.next_daily_backup_at !== null,
    securityAddons: {
      ...NO_ADDONS,
      ipWhitelisting: allowedIps.length > 0,
      tlsMutualAuth: row.client_authority !== null,
    },
    prometheus_enabled: 'false',
    prod_pack_enabled: row.production_pack === 1,
    allowed_ip_ranges: allowedIps,
    rest_url: settings.publicRestUrl,
  }
}

/** Suspended is written down; that a database sleeps is true of this very moment, and of no process that is gone. */
function stateOf(row: DatabaseRow, { isAwake }: RecordSettings): DatabaseRecord['state'] {
  if (row.state === 'suspended') return row.state
  return isAwake(row.database_id) ? 'active' : 'passive'
}

/** In domain mode a database in clear keeps the port of its own: without TLS nobody can say which one is meant. */
function address(row: DatabaseRow, settings: RecordSettings): Pick<DatabaseRecord, 'endpoint' | 'port'> {
  const { redisDomain, redisDomainPort, publicRedisHost } = settings
  if (redisDomain === undefined || row.tls === 0) return { endpoint: publicRedisHost, port: row.port }
  return { endpoint: `${row.slug}.${redisDomain}`, port: redisDomainPort }
}

const NO_ADDONS = {
  ipWhitelisting: false,
  vpcPeering: false,
  privateLink: false,
  tlsMutualAuth: false,
  encryptionAtRest: false,
}

function limits(row: DatabaseRow, settings: RecordSettings): object {
  const {
    max_read_regions,
    max_bandwidth_per_month,
    price_per_month,
    price_per_100k_commands,
    price_per_gb_month,
    ...shown
  } = planOf(row, settings.plans)
  return shown
}

function paymentType({ plan, production_pack }: DatabaseRow): DatabaseRecord['type'] {
  if (production_pack === 1) return 'pro'
  return plan === 'free' || plan === 'payg' ? plan : 'paid'
}

function credentials(row: DatabaseRow, shown: ShownCredentials): object {
  if (shown === 'none') return {}
  const forReading = { read_only_rest_token: row.read_only_rest_token }
  return shown === 'read-only' ? forReading : { password: row.password, rest_token: row.rest_token, ...forReading }
}
