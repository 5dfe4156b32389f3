import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { PLAN_NAMES, RESOURCE_SIZES } from './plans.js'
import { PLATFORMS, PRIMARY_REGIONS, READ_REGIONS } from './regions.js'

/** What a database does for its clients. */
export const DATABASE_STATES = ['active', 'suspended', 'passive'] as const

/** What is being changed about a database; empty when nothing is. */
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
export const MOST_BUDGET = 1_000_000

/** Longest name of a database, characters. */
export const LONGEST_NAME = 128

/** Longest `Idempotency-Key`, characters. */
export const LONGEST_IDEMPOTENCY_KEY = 255

/** How long an `Idempotency-Key` is remembered. */
export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000

const integer = (description: string) => Type.Integer({ description })
const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
const oneOf = <const Word extends string>(words: readonly Word[], description: string) =>
  Type.Enum([...words], { description })
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
      '`missing`, `unreadable`: the database does not serve. `cut`: the end of its log is missing, and it serves the rest.',
    ),
    text: text('What is missing.'),
    since: integer('When it was found, Unix seconds.'),
    last_whole: Type.Optional(integer('When the data was last seen whole, Unix seconds.')),
    quarantine: Type.Optional(text('The entry of the quarantine that keeps what was cut off.')),
  },
  {
    description:
      'Only there when data of the database is missing or damaged on the disk. It goes with a restore, when the files come back, or with accept-loss. Of Homeport alone.',
  },
)

/** A database as the management API shows it (interface 2.1). */
export const DatabaseRecordSchema = Type.Object({
  database_id: text('Identifier of the database.'),
  database_name: text('Name of the database; names need not be unique.'),
  region: Type.Literal('global', { description: 'Always `global`.' }),
  port: integer('Port that Redis clients connect to.'),
  creation_time: integer('When the database was created, Unix seconds.'),
  state: oneOf(
    DATABASE_STATES,
    '`active` serves, or is woken by the next request; `passive` sleeps until then; `suspended` refuses commands.',
  ),
  endpoint: text('Host name that Redis clients connect to, without port.'),
  tls: yesNo('Whether the Redis port speaks TLS.'),
  db_max_clients: integer('Most client connections at a time.'),
  db_max_request_size: integer('Largest request, bytes.'),
  db_disk_threshold: integer('Largest size on disk, bytes.'),
  db_max_entry_size: integer('Largest value of one key, bytes.'),
  db_memory_threshold: integer('Largest size in memory, bytes.'),
  db_max_commands_per_second: integer('Commands beyond this rate wait.'),
  db_request_limit: integer('Commands in a calendar month; 9007199254740991 means no limit.'),
  type: oneOf(PAYMENT_TYPES, 'Payment plan.'),
  budget: integer('Monthly budget in US dollars; 0 means none.'),
  primary_region: oneOf(PRIMARY_REGIONS, 'Region that takes the writes.'),
  primary_members: Type.Array(oneOf(PRIMARY_REGIONS, ''), { description: 'Primary regions of the cluster.' }),
  all_members: Type.Array(oneOf(PRIMARY_REGIONS, ''), { description: 'All regions: primary, then read regions.' }),
  eviction: yesNo('Whether least recently used keys make room when the size limit is reached.'),
  auto_upgrade: yesNo('Whether a database that outgrows its plan moves to the next one.'),
  consistent: yesNo('Whether reads in read regions are strongly consistent.'),
  modifying_state: oneOf(MODIFYING_STATES, 'What is being changed; empty when nothing is.'),
  db_resource_size: oneOf(RESOURCE_SIZES, 'Resource tier.'),
  db_type: oneOf(STORAGE_TYPES, 'Persistence: `pebble` is an append-only log, `bolt` snapshots.'),
  db_conn_idle_timeout: integer('An idle connection is closed after this time, nanoseconds.'),
  db_lua_timeout: integer('Longest run of one script, nanoseconds.'),
  db_lua_credits_per_min: integer('Script time in a minute, nanoseconds.'),
  db_store_max_idle: integer('A database without requests sleeps after this time, nanoseconds.'),
  db_max_loads_per_sec: integer('Entries read from disk in a second.'),
  db_acl_enabled: flagText('Whether further users can be made; a text, not a boolean.'),
  db_acl_default_user_status: flagText('Whether the user `default` may log in; a text, not a boolean.'),
  db_eviction: yesNo('The same as `eviction`.'),
  last_plan_upgrade_time: integer('Unix seconds of the last plan upgrade; 0 when there was none.'),
  replicas: integer('Number of members: the primary and every read region.'),
  customer_id: text('Owner: the e-mail of the account.'),
  daily_backup_enabled: yesNo('Whether a backup is made every day.'),
  read_regions: Type.Array(oneOf(READ_REGIONS, ''), { description: 'Regions with a read replica.' }),
  securityAddons: SecurityAddons,
  prometheus_enabled: flagText('Whether the metrics integration is on; a text, not a boolean.'),
  prod_pack_enabled: yesNo('Whether the production pack is on.'),
  user_email: text('E-mail of the owner.'),
  allowed_ip_ranges: Type.Array(Type.String(), { description: 'Addresses that may connect; empty means all.' }),
  rest_url: text('URL of the REST data plane for this database.'),
  data_problem: Type.Optional(DataProblem),
  password: Type.Optional(text('Password of the Redis user `default`. Left out with `credentials=hide`.')),
  rest_token: Type.Optional(text('REST token for reading and writing. Left out with `credentials=hide`.')),
  read_only_rest_token: Type.Optional(
    text('REST token and password of the Redis user `default_ro`, for reading. Left out with `credentials=hide`.'),
  ),
})

/** A database as the management API shows it. */
export type DatabaseRecord = Static<typeof DatabaseRecordSchema>

/** The body of a creation (interface 4.1). Fields that do not stand here are ignored. */
export const CreateDatabaseSchema = Type.Object({
  database_name: text(`Name: 1 to ${LONGEST_NAME} characters after trimming, no control characters.`),
  platform: oneOf(PLATFORMS, 'Platform that has the primary region.'),
  primary_region: oneOf(PRIMARY_REGIONS, 'Region that takes the writes.'),
  read_regions: Type.Optional(
    Type.Array(oneOf(READ_REGIONS, ''), {
      description: 'Regions with a read replica; not the primary region, none twice, none on gcp, one on plan free.',
    }),
  ),
  plan: Type.Optional(oneOf(PLAN_NAMES, 'Default: `payg`, or `free` for an account of type free.')),
  budget: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MOST_BUDGET, description: 'Whole US dollars a month; 0 means no budget.' }),
  ),
  eviction: Type.Optional(yesNo('Evict least recently used keys at the size limit. Default: false.')),
  tls: Type.Optional(yesNo('Speak TLS on the Redis port. Default: the setting of the server.')),
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
    'Answers when the database accepts commands and every read region replicates. If anything fails on the way, nothing is left behind. With the header Idempotency-Key (up to 255 characters, remembered for 24 hours) a repeated request answers the database that the first one made.',
  body: { kind: 'json', schema: CreateDatabaseSchema },
  success: { status: 200, description: 'The new database with its credentials.', body: DatabaseRecordSchema },
  errors: [
    'invalid_json',
    'plan_not_allowed',
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
    'Ends its connections and processes, deletes its files and frees its port, then answers. There is no way back. Repeating the request while it works, or after it failed half way, is safe.',
  params: IdParams,
  // Real clients send a body here: empty, {} or null.
  body: { kind: 'json', optional: true, schema: Type.Unknown() },
  success: { status: 200, description: 'The text "OK".', body: Type.Literal('OK') },
  errors: ['database_not_found', 'database_busy', 'store_unavailable', 'starting'],
})
