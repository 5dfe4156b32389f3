import type { Generated } from 'kysely'
import type { Flag } from './accounts.js'

/** The desired state of a database. */
export interface DatabasesTable {
  database_id: string
  account_id: string
  name: string
  /** `adjective-noun-number`, unique. */
  slug: string
  /** TCP port, unique, never changes. */
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
  /** Plain text: the record shows them, and Homeport logs in to engines with them. */
  password: string
  rest_token: string
  read_only_rest_token: string
  created_at: number
  /** Whether the database moves to the next plan when it outgrows its plan. */
  auto_upgrade: Generated<Flag>
  production_pack: Generated<Flag>
  /** JSON array of addresses and networks that may connect; empty means all. */
  allowed_ips: Generated<string>
  /** JSON array of the owner's ACL users; see `databases/users/`. */
  acl_users: Generated<string>
  /** `notify-keyspace-events` of the engine; empty means none. */
  keyspace_events: Generated<string>
  /** JSON object of engine settings that clients have changed; see `databases/users/`. */
  engine_settings: Generated<string>
  /** PEM of the certificate authority for client certificates; NULL if clients need none. */
  client_authority: Generated<string | null>
  /** When the database last moved to a larger plan, Unix milliseconds; 0 means never. */
  last_upgrade_at: Generated<number>
  /** JSON of a data problem (`databases/losses.ts`); NULL for none. */
  data_problem: Generated<string | null>
  /** Whether its owner has suspended it. `state` shows only a suspension by the budget. */
  suspended_by_owner: Generated<Flag>
  /** When the next daily backup is due, Unix milliseconds; NULL where there are none. */
  next_daily_backup_at: number | null
  /** Name of the node that serves it; NULL: created by a server that was alone. */
  home: Generated<string | null>
}

/** The creation that used an idempotency key. */
export interface IdempotencyKeysTable {
  account_id: string
  key: string
  /** SHA-256 of the normalised request, hexadecimal. */
  request_hash: string
  /** The created database; it may have been deleted. */
  database_id: string
  created_at: number
}

/** How often the home of a database has changed. No row: never, epoch 1. */
export interface DatabaseEpochsTable {
  database_id: string
  epoch: number
}

/** A planned move of a database to another node; see `databases/moves/`. */
export interface DatabaseMovesTable {
  move_id: string
  database_id: string
  /** Nodes, by name. */
  source: string
  target: string
  /** Epoch of the database when the move was requested. */
  epoch: number
  state: 'asked' | 'copying' | 'switched' | 'aborted' | 'done' | 'failed'
  /** Why it failed. */
  problem: string | null
  asked_at: number
  ended_at: number | null
}

/** A copy of a database on another node; see `databases/standbys/`. */
export interface DatabaseStandbysTable {
  database_id: string
  /** 1 to 3. A database has one copy in each. */
  slot: number
  /** Name of the node; the home itself while there is no other node for the copy. */
  node: string
  /** `named`: the operator has named the node. `auto`: the home chooses it. */
  placement: 'named' | 'auto'
  /** `replicated`: the home answers once the copy has what the engine has done. */
  mode: 'async' | 'replicated'
  state: 'asked' | 'copying' | 'following' | 'behind'
  /** Epoch of the database when its home last stored the state. */
  epoch: number
  /** The copy has every write that was answered until this time, Unix milliseconds by the clock of the home. */
  complete_until: number | null
  /** Replication offsets at the last comparison. */
  home_offset: number | null
  standby_offset: number | null
  /** Why it is behind. */
  problem: string | null
  asked_at: number
  /** The incarnation of the home after whose death the copy reported the next two columns; NULL: it has not. */
  stand_life: number | null
  /** Replication id and offset of the copy; NULL: it cannot take over. */
  stand_replid: string | null
  stand_offset: number | null
}

/** Tables of the module databases. */
export interface DatabaseTables {
  databases: DatabasesTable
  idempotency_keys: IdempotencyKeysTable
  database_epochs: DatabaseEpochsTable
  database_moves: DatabaseMovesTable
  database_standbys: DatabaseStandbysTable
}
