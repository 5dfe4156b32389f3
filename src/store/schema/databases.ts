import type { Generated } from 'kysely'
import type { Flag } from './accounts.js'

/** A database as it should be. */
export interface DatabasesTable {
  database_id: string
  account_id: string
  name: string
  /** `adjective-noun-number`, unique. */
  slug: string
  /** TCP port, unique, for life. */
  port: number
  platform: string
  primary_region: string
  /** JSON array of regions in the order of the request. */
  read_regions: string
  plan: string
  /** US dollars a month; 0 means none. */
  budget: number
  eviction: Flag
  tls: Flag
  persistence: 'append-only' | 'snapshot'
  state: 'active' | 'suspended' | 'passive'
  modifying_state: '' | 'creating' | 'deleting' | 'updating_regions' | 'changing_plan' | 'backing_up' | 'restoring'
  /** Kept as they are: the record shows them, and engines are logged in to with them. */
  password: string
  rest_token: string
  read_only_rest_token: string
  created_at: number
  /** Whether a database that outgrows its plan moves to the next one. */
  auto_upgrade: Generated<Flag>
  production_pack: Generated<Flag>
  /** JSON array of addresses and networks that may connect; empty means all. */
  allowed_ips: Generated<string>
  /** JSON array of the users that the owner made; see the databases' `users/`. */
  acl_users: Generated<string>
  /** Which events of keys are published, in the engine's letters; empty means none. */
  keyspace_events: Generated<string>
  /** JSON object of the engine's settings that clients have changed; see the databases' `users/`. */
  engine_settings: Generated<string>
  /** PEM of the authority whose certificates clients of the TLS port have to show; NULL where none is asked for. */
  client_authority: Generated<string | null>
  /** Unix milliseconds of the last move to a larger plan; 0 means never. */
  last_upgrade_at: Generated<number>
  /** JSON of what is wrong with its data (`databases/losses.ts`); NULL: nothing that is known. */
  data_problem: Generated<string | null>
  /** When the next daily backup is due, Unix milliseconds; NULL where there are none. */
  next_daily_backup_at: number | null
}

/** Which creation an idempotency key stands for. */
export interface IdempotencyKeysTable {
  account_id: string
  key: string
  /** SHA-256 of the normalised request, hexadecimal. */
  request_hash: string
  /** The database that was made; it may be gone since. */
  database_id: string
  created_at: number
}

/** Tables of this room. */
export interface DatabaseTables {
  databases: DatabasesTable
  idempotency_keys: IdempotencyKeysTable
}
