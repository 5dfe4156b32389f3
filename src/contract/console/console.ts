import { type Static, Type } from 'typebox'
import { DATABASE_STATES, DatabaseRecordSchema, MAX_NAME_LENGTH, PAYMENT_TYPES } from '../databases/databases.js'
import { PLAN_NAMES, PlanSchema } from '../databases/plans.js'
import { PRIMARY_REGIONS } from '../databases/regions.js'
import { endpoint } from '../endpoint.js'

/** Counts stop here: this value means "this many or more". */
export const MAX_COUNTED = 10_000

const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
const count = (description: string) => Type.Integer({ minimum: 0, description })

const OfferedPlan = Type.Object({
  ...PlanSchema.properties,
  plan: Type.Enum([...PLAN_NAMES], { description: 'Name of the plan.' }),
})

/** A plan with its name, limits and prices. */
export type OfferedPlan = Static<typeof OfferedPlan>

/** Settings of the server that the console needs. */
export const ConsoleSettingsSchema = Type.Object({
  version: text('Version of Homeport.'),
  api_url: text('Where clients reach the management API.'),
  rest_url: text('Where clients reach the REST data plane.'),
  queue_url: text('Where clients reach the queue and workflow service.'),
  redis_host: text('Host for Redis clients. If each database has its own host name, the domain of these names.'),
  tls_by_default: yesNo('Whether a database that is created without the field `tls` uses TLS.'),
  engine_capabilities: Type.Array(Type.String(), {
    description: 'Features of the engine beyond the oldest supported version.',
  }),
  regions: Type.Optional(
    Type.Array(Type.Enum([...PRIMARY_REGIONS]), {
      description: 'The regions that a node of this cluster serves. Absent: all regions are served.',
    }),
  ),
  plans: Type.Array(OfferedPlan, { description: 'All plans with their limits and prices.' }),
})

/** Settings of the server that the console needs. */
export type ConsoleSettings = Static<typeof ConsoleSettingsSchema>

/** Reads the settings of the server. */
export const getConsoleSettings = endpoint({
  id: 'getConsoleSettings',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/settings',
  auth: 'basic',
  access: 'read',
  summary: 'Read the settings of the server',
  description:
    'Public URLs, defaults, and all plans with their limits and prices. They do not change while the server runs, except the regions of a cluster.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The settings.', body: ConsoleSettingsSchema },
  errors: ['store_unavailable'],
})

const CAPPED = `Counting stops at ${MAX_COUNTED}.`

const DatabaseTallySchema = Type.Object({
  active: count('Databases that are awake.'),
  passive: count('Databases that are asleep until the next request.'),
  suspended: count('Databases that refuse commands.'),
  modifying: count('Databases with a change in progress, in any state.'),
})

/** Counts of databases by state. */
export type DatabaseTally = Static<typeof DatabaseTallySchema>

/** A problem that only a person can solve. */
const ProblemSchema = Type.Object({
  kind: text('Kind of the problem, one word for programs.'),
  subject: text('What is affected: a database id, a table, a file.'),
  severity: Type.Enum(['warning', 'error'], { description: '`error`: data is lost or refused.' }),
  title: text('What is wrong.'),
  advice: text('What to do.'),
  since: Type.Integer({ description: 'When it first occurred, Unix seconds.' }),
  count: count('How often it has occurred since the server started.'),
  node: Type.Optional(Type.String({ description: 'The node that reports it, if it is not the one that answers.' })),
})

/** The overview of the Home page. */
export const OverviewSchema = Type.Object({
  version: text('Version of Homeport.'),
  started_at: Type.Integer({ description: 'When the server started, Unix seconds.' }),
  engine: Type.Object({
    kind: Type.Enum(['redis', 'valkey'], { description: 'The program of the engines.' }),
    version: text('Its version.'),
    problems: Type.Array(Type.String(), { description: 'Known problems of this version, each with what to do.' }),
  }),
  store: Type.Object({
    kind: Type.Enum(['sqlite', 'postgres'], { description: 'Where durable state is stored.' }),
    durability: text('What an acknowledged write survives, in words.'),
  }),
  tls: Type.Object({
    by_default: yesNo('Whether new databases use TLS.'),
    certificate_expires_at: Type.Optional(
      Type.Integer({
        description:
          'When the certificate of the Redis ports expires, Unix seconds. Absent when there is no usable certificate.',
      }),
    ),
  }),
  problems: Type.Array(ProblemSchema, { description: 'Problems that only a person can solve, oldest first.' }),
  disk: Type.Object({
    free_bytes: count('Free space on the file system of the data directory.'),
    total_bytes: count('Size of that file system.'),
  }),
  memory: Type.Object({ resident_bytes: count('Memory of the server itself, without the engines.') }),
  databases: DatabaseTallySchema,
  messages: Type.Object({
    waiting: count(`Messages that have not ended. ${CAPPED}`),
    waiting_at_least: Type.Optional(
      Type.Literal(true, { description: 'Present when there are, or may be, more messages than `waiting`.' }),
    ),
    dead: count(`Messages that could not be delivered. ${CAPPED}`),
  }),
  runs: Type.Object({
    unfinished: count(`Workflow runs that have not ended. ${CAPPED}`),
    dead: count(`Workflow runs that have failed and can be resumed or restarted. ${CAPPED}`),
  }),
  bulk_actions: Type.Object({ unfinished: count('Bulk actions that have not ended.') }),
})

/** The overview of the server and the account. */
export type Overview = Static<typeof OverviewSchema>

/** Reads the overview. */
export const getOverview = endpoint({
  id: 'getOverview',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/overview',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'Read the overview',
  description: 'The health of the server, and counts of databases, messages, runs and bulk actions of the account.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The overview.', body: OverviewSchema },
  errors: ['store_unavailable'],
})

/** Usage of a database that the server has in memory. */
const USE = {
  requests: count('Billed requests of this month.'),
  storage_bytes: count('Size of the data when it was last measured.'),
}

const RECORD = DatabaseRecordSchema.properties

/** The summary of a database for lists. */
const DatabaseSummarySchema = Type.Object({
  database_id: RECORD.database_id,
  database_name: RECORD.database_name,
  state: RECORD.state,
  modifying_state: RECORD.modifying_state,
  type: RECORD.type,
  db_disk_threshold: RECORD.db_disk_threshold,
  primary_region: RECORD.primary_region,
  read_regions: RECORD.read_regions,
  creation_time: RECORD.creation_time,
  ...USE,
})

/** The summary of a database for lists. */
export type DatabaseSummary = Static<typeof DatabaseSummarySchema>

/** Most databases of a page of `listDatabaseSummaries`. */
export const MAX_SUMMARIES = 200

/** What summaries can be sorted by. */
export const SUMMARY_ORDERS = ['created', 'name', 'state', 'region', 'plan', 'size', 'requests'] as const

/** What summaries are sorted by. */
export type SummaryOrder = (typeof SUMMARY_ORDERS)[number]

const bound = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))

const SummaryFilters = {
  state: Type.Optional(Type.Enum([...DATABASE_STATES], { description: 'Only databases in this state.' })),
  type: Type.Optional(Type.Enum([...PAYMENT_TYPES], { description: 'Only databases with this kind of payment.' })),
  region: Type.Optional(
    Type.Enum([...PRIMARY_REGIONS], { description: 'Only databases with this primary or read region.' }),
  ),
  min_storage_bytes: bound('Only databases with at least this much data.'),
  max_storage_bytes: bound('Only databases with at most this much data.'),
  min_requests: bound('Only databases with at least this many billed requests this month.'),
  max_requests: bound('Only databases with at most this many billed requests this month.'),
  created_after: bound('Only databases created at this time or later, Unix seconds.'),
  created_before: bound('Only databases created before this time, Unix seconds.'),
}

const SummariesQuery = Type.Object({
  ...SummaryFilters,
  search: Type.Optional(
    Type.String({
      maxLength: MAX_NAME_LENGTH,
      description: 'Only databases whose name contains this text, ignoring case, or whose identifier is this text.',
    }),
  ),
  sort: Type.Optional(
    Type.Enum([...SUMMARY_ORDERS], {
      description:
        'What to sort by. `state` starts with active, then changing, asleep and suspended. Default: `created`.',
    }),
  ),
  direction: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Default: `asc`.' })),
  count: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_SUMMARIES,
      description: `Databases per page. Default: ${MAX_SUMMARIES}.`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: '^[\\w-]{0,1024}/[\\w-]{1,64}$',
      description: 'Where the page begins: the `cursor` of the previous page. Send the same order with it.',
    }),
  ),
})

/** The query of `listDatabaseSummaries`. */
export type SummariesQuery = Static<typeof SummariesQuery>

const DatabaseSummariesSchema = Type.Object({
  databases: Type.Array(DatabaseSummarySchema),
  matched: count('Number of databases on all pages.'),
  cursor: Type.Optional(text('Where the next page begins; absent on the last page.')),
})

/** A page of summaries of databases. */
export type DatabaseSummaries = Static<typeof DatabaseSummariesSchema>

/** Lists summaries of databases. */
export const listDatabaseSummaries = endpoint({
  id: 'listDatabaseSummaries',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/databases',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'List summaries of databases, page by page',
  description:
    'The main fields of each database of the account and its usage this month, read from memory. A database whose state, size or requests change between two pages may be on both of them or on neither.',
  query: SummariesQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'A page.', body: DatabaseSummariesSchema },
  errors: [],
})

const DatabaseUsageSchema = Type.Object({
  database_id: text('Identifier of the database.'),
  database_name: text('Name of the database.'),
  ...USE,
  cost: Type.Number({ description: 'Cost this month so far, US dollars.' }),
  budget: count('Monthly budget in US dollars; 0 means none.'),
})

/** Usage of one database this month. */
export type DatabaseUsage = Static<typeof DatabaseUsageSchema>

/** Reads the usage of all databases of the account this month. */
export const getUsage = endpoint({
  id: 'getUsage',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/usage',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'Read the usage of all databases this month',
  description:
    'Requests, size and cost of all databases of the account in this calendar month (UTC), most expensive first. The statistics of a database have the details.',
  body: { kind: 'none' },
  success: { status: 200, description: 'One entry for each database.', body: Type.Array(DatabaseUsageSchema) },
  errors: [],
})

const RegionStatusSchema = Type.Object({
  region: text('Name of the region.'),
  role: Type.Enum(['primary', 'replica'], { description: 'The primary accepts writes, replicas serve reads.' }),
  state: Type.Enum(['serving', 'starting', 'stopping'], { description: 'State of its engine.' }),
  lag_bytes: Type.Optional(
    count('For a serving region: bytes that the primary has written and this region has not yet received.'),
  ),
  heard_seconds_ago: Type.Optional(count('For a serving region: seconds since it last heard from the primary.')),
})

/** The state of the engine in one region. */
export type RegionStatus = Static<typeof RegionStatusSchema>

/** Reads the state of the engines of a database by region. */
export const getRegionStatus = endpoint({
  id: 'getRegionStatus',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/regions/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Read the state of a database by region',
  description:
    'The engines that run, start or stop, the primary first, and the replication lag. Empty while the database is asleep. This request does not wake it.',
  params: Type.Object({ id: text('`database_id` of the database.') }),
  body: { kind: 'none' },
  success: { status: 200, description: 'One entry for each engine.', body: Type.Array(RegionStatusSchema) },
  errors: ['database_not_found'],
})
