import { type Static, Type } from 'typebox'
import { TEAM_ROLES } from '../accounts/accounts.js'
import { DatabaseRecordSchema, LONGEST_NAME } from '../databases/databases.js'
import { PLAN_NAMES, PlanSchema } from '../databases/plans.js'
import { endpoint } from '../endpoint.js'

/** The header that a browser has to send with everything that is not a GET, in proof that the console sent it. */
export const CONSOLE_HEADER = 'x-homeport-console'

/** How long a session lasts after its last use. */
export const SESSION_LASTS_MS = 12 * 60 * 60 * 1000

/** Counting stops here: a count of this size means "this many or more". */
export const MOST_COUNTED = 10_000

const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
const count = (description: string) => Type.Integer({ minimum: 0, description })

/** The caller that a session of the console stands for: exactly that of its API key. */
export const ConsoleSessionSchema = Type.Object({
  email: text('E-mail of who is signed in.'),
  account_id: text('The account or team that the API key acts for.'),
  account_type: Type.Enum(['free', 'paid'], { description: 'Type of the account.' }),
  role: Type.Optional(Type.Enum([...TEAM_ROLES], { description: 'With a key of a team: the role in it.' })),
  access: Type.Enum(['read', 'write'], { description: 'Whether changes are allowed or refused.' }),
})

/** The caller that a session of the console stands for. */
export type ConsoleSession = Static<typeof ConsoleSessionSchema>

const SignInSchema = Type.Object({
  email: Type.String({
    maxLength: 254,
    description: 'E-mail of the account, or of the member who holds a key of a team.',
  }),
  api_key: Type.String({ maxLength: 512, description: 'The API key.' }),
})

/** The body of a sign-in. */
export type SignInBody = Static<typeof SignInSchema>

/** Signs in to the console. */
export const createConsoleSession = endpoint({
  id: 'createConsoleSession',
  service: 'management',
  topic: 'Console',
  method: 'POST',
  path: '/v2/console/session',
  auth: 'none',
  access: 'write',
  summary: 'Sign in to the console',
  description: `Sets a cookie that stands for the API key at this listener, for the operations of the queue too. It ends ${SESSION_LASTS_MS / 3_600_000} hours after its last use, or with the key. With the cookie, everything but GET needs the header \`${CONSOLE_HEADER}: 1\`, as does the sign-in itself. Programs send the API key instead.`,
  body: { kind: 'json', schema: SignInSchema },
  success: { status: 200, description: 'Who is signed in.', body: ConsoleSessionSchema },
  errors: ['sign_in_refused', 'sign_in_limit', 'console_header_missing', 'store_full', 'store_unavailable'],
})

/** Tells who is signed in. */
export const getConsoleSession = endpoint({
  id: 'getConsoleSession',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/session',
  auth: 'basic',
  access: 'read',
  summary: 'Who is signed in',
  description: 'The account, role and rights of the session or of the API key that asks.',
  body: { kind: 'none' },
  success: { status: 200, description: 'Who asks.', body: ConsoleSessionSchema },
  errors: ['store_unavailable'],
})

/** Signs out of the console. */
export const endConsoleSession = endpoint({
  id: 'endConsoleSession',
  service: 'management',
  topic: 'Console',
  method: 'DELETE',
  path: '/v2/console/session',
  auth: 'basic',
  access: 'read',
  summary: 'Sign out of the console',
  description: 'Ends the session of the cookie, if there is one, and takes the cookie away.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The text "OK".', body: Type.Literal('OK') },
  errors: ['store_unavailable'],
})

const OfferedPlan = Type.Object({
  ...PlanSchema.properties,
  plan: Type.Enum([...PLAN_NAMES], { description: 'Name of the plan.' }),
})

/** A plan with its name, limits and prices. */
export type OfferedPlan = Static<typeof OfferedPlan>

/** What the console has to know of the server to offer the right things. */
export const ConsoleSettingsSchema = Type.Object({
  version: text('Version of Homeport.'),
  api_url: text('Where clients reach the management API.'),
  rest_url: text('Where clients reach the REST data plane.'),
  queue_url: text('Where clients reach the queue and workflow service.'),
  redis_host: text(
    'Host that Redis clients connect to; where databases have names of their own, the domain that these stand below.',
  ),
  tls_by_default: yesNo('Whether a database that is created without a word about TLS has it.'),
  engine_capabilities: Type.Array(Type.String(), {
    description: 'What the engine can do beyond the oldest supported version.',
  }),
  plans: Type.Array(OfferedPlan, { description: 'Every plan with its limits and prices.' }),
})

/** What the console has to know of the server. */
export type ConsoleSettings = Static<typeof ConsoleSettingsSchema>

/** Reads what this server offers. */
export const getConsoleSettings = endpoint({
  id: 'getConsoleSettings',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/settings',
  auth: 'basic',
  access: 'read',
  summary: 'Read what this server offers',
  description:
    'Public URLs, defaults, and every plan with its limits and prices. It stays the same while the server runs.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The settings.', body: ConsoleSettingsSchema },
  errors: [],
})

const CAPPED = `Counting stops at ${MOST_COUNTED}.`

const DatabaseTallySchema = Type.Object({
  active: count('Databases that serve.'),
  passive: count('Databases that sleep until the next request.'),
  suspended: count('Databases that refuse commands.'),
  modifying: count('Databases that are being changed, whatever else they do.'),
})

/** How many databases of an account do what. */
export type DatabaseTally = Static<typeof DatabaseTallySchema>

/** How the server and what the account has are doing. */
const ProblemSchema = Type.Object({
  kind: text('What it is about, one word for programs.'),
  subject: text('What it concerns: a database id, a table, a file.'),
  severity: Type.Enum(['warning', 'error'], { description: '`error`: data is lost or refused.' }),
  title: text('What is wrong and what was found.'),
  advice: text('What to do.'),
  since: Type.Integer({ description: 'When it was first seen, Unix seconds.' }),
  count: count('How often it was seen since the server started.'),
})

/** How everything is doing. */
export const OverviewSchema = Type.Object({
  version: text('Version of Homeport.'),
  started_at: Type.Integer({ description: 'When the server started, Unix seconds.' }),
  engine: Type.Object({
    kind: Type.Enum(['redis', 'valkey'], { description: 'Which program databases run.' }),
    version: text('Its version.'),
    problems: Type.Array(Type.String(), { description: 'Reasons not to use it, each with what to do.' }),
  }),
  store: Type.Object({
    kind: Type.Enum(['sqlite', 'postgres'], { description: 'What keeps durable state.' }),
    durability: text('What an acknowledged write survives.'),
  }),
  tls: Type.Object({
    by_default: yesNo('Whether new databases speak TLS.'),
    certificate_expires_at: Type.Optional(
      Type.Integer({
        description: 'When the certificate of the Redis ports ends, Unix seconds. Left out while none can be used.',
      }),
    ),
  }),
  problems: Type.Array(ProblemSchema, { description: 'What only a person can put right, the oldest first.' }),
  disk: Type.Object({
    free_bytes: count('Free space where the data directory is.'),
    total_bytes: count('Size of that file system.'),
  }),
  memory: Type.Object({ resident_bytes: count('Memory of the server itself, without the engines.') }),
  databases: DatabaseTallySchema,
  messages: Type.Object({
    waiting: count(`Messages that have not ended. ${CAPPED}`),
    dead: count(`Messages that could not be delivered. ${CAPPED}`),
  }),
  runs: Type.Object({
    unfinished: count(`Workflow runs that have not ended. ${CAPPED}`),
    dead: count(`Workflow runs that have failed and can be taken up again. ${CAPPED}`),
  }),
  bulk_actions: Type.Object({ unfinished: count('Bulk actions that have not ended.') }),
})

/** How the server and what the account has are doing. */
export type Overview = Static<typeof OverviewSchema>

/** Reads how everything is doing. */
export const getOverview = endpoint({
  id: 'getOverview',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/overview',
  auth: 'basic',
  access: 'read',
  summary: 'Read how everything is doing',
  description: 'The health of the server, and how much of what the account has runs, waits or has failed.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The overview.', body: OverviewSchema },
  errors: ['store_unavailable'],
})

/** What is known of the use of a database without asking the store. */
const USE = {
  requests: count('Requests of this month, as they are billed.'),
  storage_bytes: count('Size of the data set when it was last looked at.'),
}

const RECORD = DatabaseRecordSchema.properties

/** Short facts of a database, for lists. */
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

/** Short facts of a database, for lists. */
export type DatabaseSummary = Static<typeof DatabaseSummarySchema>

/** Most databases of a page of `listDatabaseSummaries`. */
export const MOST_SUMMARIES = 200

const SummariesQuery = Type.Object({
  search: Type.Optional(
    Type.String({
      maxLength: LONGEST_NAME,
      description: 'Only databases with this in their name, whatever the case, or with this identifier.',
    }),
  ),
  count: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MOST_SUMMARIES,
      description: `Most databases of a page. Default: ${MOST_SUMMARIES}.`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: '^\\d{1,16}/[\\w-]{1,64}$',
      description: 'Where the page begins: the `cursor` of the page before.',
    }),
  ),
})

/** Which databases are listed. */
export type SummariesQuery = Static<typeof SummariesQuery>

const DatabaseSummariesSchema = Type.Object({
  databases: Type.Array(DatabaseSummarySchema),
  matched: count('How many databases there are on all pages.'),
  cursor: Type.Optional(text('Where the next page begins; absent on the last page.')),
})

/** A page of short facts of databases. */
export type DatabaseSummaries = Static<typeof DatabaseSummariesSchema>

/** Lists databases in short. */
export const listDatabaseSummaries = endpoint({
  id: 'listDatabaseSummaries',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/databases',
  auth: 'basic',
  access: 'read',
  summary: 'List databases in short, page by page',
  description:
    'What a list shows of each database of the account, oldest first: as much of the records as that takes, and how much was used this month. However many databases there are, a page costs little.',
  query: SummariesQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'A page.', body: DatabaseSummariesSchema },
  errors: [],
})

const DatabaseUsageSchema = Type.Object({
  database_id: text('Identifier of the database.'),
  database_name: text('Its name.'),
  ...USE,
  cost: Type.Number({ description: 'Cost of this month so far, US dollars.' }),
  budget: count('Monthly budget in US dollars; 0 means none.'),
})

/** What one database has used this month. */
export type DatabaseUsage = Static<typeof DatabaseUsageSchema>

/** Reads what all databases of the account have used this month. */
export const getUsage = endpoint({
  id: 'getUsage',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/usage',
  auth: 'basic',
  access: 'read',
  summary: 'Read what all databases have used this month',
  description:
    'Requests, size and cost of every database of the account in the calendar month (UTC), the most expensive first. The statistics of a database have the details.',
  body: { kind: 'none' },
  success: { status: 200, description: 'One entry for each database.', body: Type.Array(DatabaseUsageSchema) },
  errors: [],
})

const RegionStatusSchema = Type.Object({
  region: text('Name of the region.'),
  role: Type.Enum(['primary', 'replica'], { description: 'The primary takes the writes, replicas serve reads.' }),
  state: Type.Enum(['serving', 'starting', 'stopping'], { description: 'What its engine does.' }),
  lag_bytes: Type.Optional(count('Of a region that serves: what the primary has written and this one has not.')),
  heard_seconds_ago: Type.Optional(count('Of a region that serves: how long ago it has heard of the primary.')),
})

/** What the engine of one region does. */
export type RegionStatus = Static<typeof RegionStatusSchema>

/** Reads what the engines of a database do in its regions. */
export const getRegionStatus = endpoint({
  id: 'getRegionStatus',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/regions/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Read what a database does in its regions',
  description:
    'The engines that run or are on their way up or down, the primary first, and how far replicas are behind; an empty list while the database sleeps. Asking wakes nothing.',
  params: Type.Object({ id: text('`database_id` of the database.') }),
  body: { kind: 'none' },
  success: { status: 200, description: 'One entry for each engine.', body: Type.Array(RegionStatusSchema) },
  errors: ['database_not_found'],
})
