import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok } from '../endpoint.js'
import { PLAN_NAMES, RESOURCE_SIZES } from './plans.js'
import { PLATFORMS, PRIMARY_REGIONS, READ_REGIONS } from './regions.js'

/** The states of a database. */
export const DATABASE_STATES = ['active', 'suspended', 'passive'] as const

/** Who or what has suspended a database. */
export const SUSPENDERS = ['owner', 'operator', 'budget'] as const

/** The change in progress; empty when there is none. */
export const MODIFYING_STATES = [
  '',
  'creating',
  'deleting',
  'updating_regions',
  'changing_plan',
  'backing_up',
  'restoring',
] as const

/** Payment plans as the record names them. */
export const PAYMENT_TYPES = ['free', 'payg', 'pro', 'paid'] as const

/** Storage engines as the record names them. */
export const STORAGE_TYPES = ['bolt', 'badger', 'pebble'] as const

/** Largest monthly budget, US dollars. */
export const MAX_BUDGET = 1_000_000

/** Longest name of a database, characters. */
export const MAX_NAME_LENGTH = 128

/** Longest `Idempotency-Key`, characters. */
export const MAX_IDEMPOTENCY_KEY_LENGTH = 255

/** How long an `Idempotency-Key` is remembered. */
export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000

const integer = (description: string) => Type.Integer({ description })
const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
const oneOf = <const Word extends string>(words: readonly Word[], description: string) =>
  Type.Enum([...words], { description })
const listOrNull = <const Word extends string>(words: readonly Word[], description: string) =>
  Type.Union([Type.Array(Type.Enum([...words])), Type.Null()], { description })
const flagText = (description: string) => Type.Enum(['true', 'false'], { description })

const SecurityAddons = Type.Object(
  {
    ipWhitelisting: Type.Boolean(),
    vpcPeering: Type.Boolean(),
    privateLink: Type.Boolean(),
    tlsMutualAuth: Type.Boolean(),
    encryptionAtRest: Type.Boolean(),
  },
  { description: 'Which security add-ons are on.' },
)

const DataProblem = Type.Object(
  {
    kind: oneOf(
      ['missing', 'unreadable', 'cut'],
      '`missing`, `unreadable`: the database is not served. `cut`: the end of its log is missing, and the rest is served.',
    ),
    text: text('The problem in words.'),
    since: integer('When the problem was found, Unix seconds.'),
    last_whole: Type.Optional(integer('When the data was last seen complete, Unix seconds.')),
    quarantine: Type.Optional(text('The quarantine entry with the end that was cut off.')),
  },
  {
    description:
      'Present when data of the database is missing or damaged on the disk. A restore, the return of the missing files, or accept-loss end the problem. Only Homeport has this field.',
  },
)

const SetAsideFiles = Type.Object({
  node: text('The node that keeps the files.'),
  path: text('Their directory, relative to the data directory of the node. Delete it when you do not need the files.'),
  bytes: integer('Size of the files.'),
  taken_at: integer('When the database was taken over, Unix seconds.'),
})

/** A database as the management API shows it (interface 2.1). */
export const DatabaseRecordSchema = Type.Object({
  database_id: text('Identifier of the database.'),
  database_name: text('Name of the database; names need not be unique.'),
  region: Type.Literal('global', { description: 'Always `global`.' }),
  port: integer('Port for Redis clients.'),
  creation_time: integer('When the database was created, Unix seconds.'),
  state: oneOf(
    DATABASE_STATES,
    '`active` serves; `passive` is asleep until the next request; `suspended` refuses commands.',
  ),
  endpoint: text('Host name for Redis clients, without port.'),
  tls: yesNo('Whether the Redis port speaks TLS.'),
  db_max_clients: integer('Most client connections at a time.'),
  db_max_request_size: integer('Largest request, bytes.'),
  db_disk_threshold: integer('Largest size on disk, bytes.'),
  db_max_entry_size: integer('Largest value of one key, bytes.'),
  db_memory_threshold: integer('Largest size in memory, bytes.'),
  db_max_commands_per_second: integer('Commands per second; commands beyond this rate wait.'),
  db_request_limit: integer('Commands per calendar month; 9007199254740991 means no limit.'),
  type: oneOf(PAYMENT_TYPES, 'Payment plan.'),
  budget: integer('Monthly budget in US dollars; 0 means none.'),
  primary_region: oneOf(PRIMARY_REGIONS, 'Region that accepts writes.'),
  primary_members: Type.Array(oneOf(PRIMARY_REGIONS, ''), { description: 'Primary regions of the cluster.' }),
  all_members: Type.Array(oneOf(PRIMARY_REGIONS, ''), { description: 'All regions: primary, then read regions.' }),
  eviction: yesNo('Whether least recently used keys are evicted at the size limit.'),
  auto_upgrade: yesNo('Whether a database that outgrows its plan moves to the next plan.'),
  consistent: yesNo(
    'Whether replies to writes wait until the copies on other nodes have them (mode `replicated` of standbys).',
  ),
  modifying_state: oneOf(MODIFYING_STATES, 'The change in progress; empty when there is none.'),
  db_resource_size: oneOf(RESOURCE_SIZES, 'Resource tier.'),
  db_type: oneOf(STORAGE_TYPES, 'Persistence: `pebble` means an append-only log, `bolt` snapshots.'),
  db_conn_idle_timeout: integer('Idle connections are closed after this time, nanoseconds.'),
  db_lua_timeout: integer('Longest run of one script, nanoseconds.'),
  db_lua_credits_per_min: integer('Script time per minute, nanoseconds.'),
  db_store_max_idle: integer('A database without requests falls asleep after this time, nanoseconds.'),
  db_max_loads_per_sec: integer('Entries read from disk per second.'),
  db_acl_enabled: flagText('Whether the database has ACL users of its own; a text, not a boolean.'),
  db_acl_default_user_status: flagText('Whether the user `default` may log in; a text, not a boolean.'),
  db_eviction: yesNo('The same as `eviction`.'),
  last_plan_upgrade_time: integer('Unix seconds of the last plan upgrade; 0 when there was none.'),
  replicas: integer('Number of members: the primary and every read region.'),
  customer_id: text('Owner: the e-mail of the account.'),
  daily_backup_enabled: yesNo('Whether a backup is created every day.'),
  read_regions: Type.Array(oneOf(READ_REGIONS, ''), { description: 'Regions with a read replica.' }),
  securityAddons: SecurityAddons,
  database_type: text('The plan in words.'),
  multizone: yesNo('Always `false`: kept for older clients.'),
  db_daily_bandwidth_limit: integer('Always 9007199254740991, no limit: kept for older clients.'),
  prometheus_enabled: flagText(
    'Whether `GET /metrics/databases/{id}` serves this database, which needs the production pack. A text, not a boolean.',
  ),
  prod_pack_enabled: yesNo('Whether the production pack is on.'),
  user_email: text('E-mail of the owner.'),
  allowed_ip_ranges: Type.Array(Type.String(), { description: 'Addresses that may connect; empty means all.' }),
  rest_url: text('URL of the REST data plane for this database.'),
  data_problem: Type.Optional(DataProblem),
  set_aside: Type.Optional(
    Type.Array(SetAsideFiles, {
      description:
        'Present when another node has taken the database over and its old home has noticed that. The old home keeps its files, which may have acknowledged writes that no copy has. Only Homeport has this field.',
    }),
  ),
  suspended_by: Type.Optional(
    oneOf(
      SUSPENDERS,
      'Present only while the database is suspended: by its owner, the operator of the server, or its budget. Only Homeport has this field.',
    ),
  ),
  password: Type.Optional(text('Password of the Redis user `default`. Absent with `credentials=hide`.')),
  rest_token: Type.Optional(text('REST token for reading and writing. Absent with `credentials=hide`.')),
  read_only_rest_token: Type.Optional(
    text('REST token and password of the Redis user `default_ro`, for reading. Absent with `credentials=hide`.'),
  ),
})

/** A database as the management API shows it. */
export type DatabaseRecord = Static<typeof DatabaseRecordSchema>

/** The body of a creation (interface 4.1). Other fields are ignored. */
export const CreateDatabaseSchema = Type.Object({
  database_name: text(`Name: 1 to ${MAX_NAME_LENGTH} characters after trimming, no control characters.`),
  platform: oneOf(PLATFORMS, 'Platform of the primary region.'),
  primary_region: oneOf(PRIMARY_REGIONS, 'Region that accepts writes.'),
  read_regions: Type.Optional(
    listOrNull(
      READ_REGIONS,
      'Regions with a read replica: not the primary region, no region twice, no gcp region, at most one region on plan free.',
    ),
  ),
  plan: Type.Optional(oneOf(PLAN_NAMES, 'Default: `payg`, or `free` for an account of type free.')),
  budget: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MAX_BUDGET, description: 'Whole US dollars per month; 0 means no budget.' }),
  ),
  eviction: Type.Optional(yesNo('Evict least recently used keys at the size limit. Default: false.')),
  tls: Type.Optional(yesNo('Speak TLS on the Redis port. Default: the setting of the server.')),
  db_type: Type.Optional(
    oneOf(
      ['pebble', 'bolt'],
      'Persistence: `pebble` (the default) logs every write, `bolt` only takes snapshots. Only Homeport has this field.',
    ),
  ),
})

/** The body of a creation. */
export type CreateDatabaseBody = Static<typeof CreateDatabaseSchema>

const IdParams = Type.Object({ id: text('`database_id` of the database.') })
const CredentialsQuery = Type.Object({
  credentials: Type.Optional(
    oneOf(['hide', 'show'], '`hide` leaves out password, rest_token and read_only_rest_token.'),
  ),
})

/** Creates a database. */
export const createDatabase = endpoint({
  id: 'createDatabase',
  service: 'management',
  topic: 'Databases',
  method: 'POST',
  path: '/v2/redis/database',
  auth: 'basic',
  access: 'write',
  summary: 'Create a database',
  description:
    'Responds when the database accepts commands and all read regions replicate. If a step fails, everything is rolled back. With the header Idempotency-Key (up to 255 characters, remembered for 24 hours), a repeated request returns the database that the first one created. A body with `region: "global"` may use the spelling of older clients: `name` for `database_name`, no `platform`, and the fields `auto_upgrade` and `prod_pack_enabled`.',
  headers: Type.Object({
    'Idempotency-Key': Type.Optional(
      Type.String({ maxLength: 255, description: 'Repeated requests with the same key create one database.' }),
    ),
  }),
  body: { kind: 'json', schema: CreateDatabaseSchema },
  // `databases/older-spelling.ts` translates the body of older clients before it is checked.
  checkedBy: 'handler',
  success: { status: 200, description: 'The new database with its credentials.', body: DatabaseRecordSchema },
  errors: [
    'invalid_json',
    'no_node_in_region',
    'region_without_capacity',
    'plan_not_allowed',
    'production_pack_not_allowed',
    'idempotency_conflict',
    'idempotency_gone',
    'tls_not_configured',
    'body_too_large',
    'database_limit',
    'no_free_port',
    'descriptors_short',
    'engine_failed',
    'store_full',
    'store_unavailable',
    'starting',
  ],
})

/** Reads one database. */
export const getDatabase = endpoint({
  id: 'getDatabase',
  service: 'management',
  topic: 'Databases',
  method: 'GET',
  path: '/v2/redis/database/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Get a database',
  description: 'A read-only API key sees the read-only token, but neither the password nor the token for writing.',
  params: IdParams,
  query: CredentialsQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'The database.', body: DatabaseRecordSchema },
  errors: ['database_not_found', 'store_unavailable'],
})

/** Lists the databases of the account. */
export const listDatabases = endpoint({
  id: 'listDatabases',
  service: 'management',
  topic: 'Databases',
  method: 'GET',
  path: '/v2/redis/databases',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'List all databases',
  description: 'All databases of the account, oldest first.',
  query: CredentialsQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'The databases.', body: Type.Array(DatabaseRecordSchema) },
  errors: ['store_unavailable'],
})

/** Deletes a database. */
export const deleteDatabase = endpoint({
  id: 'deleteDatabase',
  service: 'management',
  topic: 'Databases',
  method: 'DELETE',
  path: '/v2/redis/database/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Delete a database',
  description:
    'Closes its connections, stops its engines, deletes its files and frees its port, then responds. This cannot be undone. Repeating the request is safe, also while it runs and after it has failed.',
  params: IdParams,
  body: noFields,
  success: ok,
  errors: ['database_not_found', 'database_busy', 'store_unavailable', 'starting'],
})
