import { type Static, type TSchema, Type } from 'typebox'
import { type BodyShape, endpoint } from '../endpoint.js'
import type { ErrorCode } from '../errors/errors.js'
import { DatabaseRecordSchema, MOST_BUDGET } from './databases.js'
import { PLAN_NAMES } from './plans.js'
import { READ_REGIONS } from './regions.js'

/** Most addresses and networks of one allow list. */
export const MOST_ALLOWED_IPS = 200

/**
 * What a change of plan may name besides the plans (reference redis 1.2): `pro` is the present plan with the production
 * pack, `paid` the smallest fixed plan that holds the data.
 */
export const PLAN_ALIASES = ['pro', 'paid'] as const

const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
const IdParams = Type.Object({ id: text('`database_id` of the database.') })
const OkSchema = Type.Literal('OK')
// Real clients send a body where none is needed: empty, {} or null.
const noFields = { kind: 'json', optional: true, schema: Type.Unknown() } as const
const busy: readonly ErrorCode[] = ['database_not_found', 'database_busy', 'store_unavailable', 'starting']

interface Change<Body extends BodyShape, Answer extends TSchema> {
  readonly id: string
  readonly method?: 'PATCH'
  /** What follows `/v2/redis/`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly body: Body
  readonly answer: Answer
  readonly errors?: readonly ErrorCode[]
}

/** Declares a change of the database that the path names. */
function change<const Body extends BodyShape, Answer extends TSchema>(declared: Change<Body, Answer>) {
  const { id, method = 'POST', path, summary, description, body, answer, errors = [] } = declared
  const answers: TSchema = answer
  return endpoint({
    id,
    method,
    summary,
    description,
    body,
    service: 'management',
    topic: 'Databases',
    auth: 'basic',
    access: 'write',
    path: `/v2/redis/${path}`,
    params: IdParams,
    success: { status: 200, description: answers === OkSchema ? 'The text "OK".' : 'The database.', body: answer },
    errors: [...busy, ...errors],
  })
}

/** Gives a database another name. */
export const renameDatabase = change({
  id: 'renameDatabase',
  path: 'rename/{id}',
  summary: 'Rename a database',
  description: 'Host, port and credentials stay as they are.',
  body: { kind: 'json', schema: Type.Object({ name: text('The new name; the rules of `database_name` hold.') }) },
  answer: DatabaseRecordSchema,
})

/** Gives a database new credentials. */
export const resetPassword = change({
  id: 'resetPassword',
  path: 'reset-password/{id}',
  summary: 'Reset the password',
  description:
    'Makes a new password and both tokens anew. The old ones are dead when the answer is sent, and every connection that was opened with them is closed.',
  body: noFields,
  answer: DatabaseRecordSchema,
})

/** Lets the port of a database speak TLS. */
export const enableTls = change({
  id: 'enableTls',
  path: 'enable-tls/{id}',
  summary: 'Enable TLS',
  description:
    'The Redis port speaks TLS from now on; connections in clear are closed. There is no way back, and doing it again changes nothing.',
  body: noFields,
  answer: DatabaseRecordSchema,
  errors: ['tls_not_configured'],
})

/** Longest text of the authority of a database's clients. */
export const MOST_CLIENT_CA_CHARACTERS = 65_536

/** Lets the port of a database ask clients for certificates. */
export const updateMutualTls = change({
  id: 'updateMutualTls',
  path: '{id}/mutual-tls',
  summary: 'Ask clients for certificates',
  description:
    'The TLS port serves only clients that show a certificate of the given authority; with `null` it asks for none. ' +
    'Every connection is closed. Passwords are asked for as before, and REST is not concerned.',
  body: {
    kind: 'json',
    schema: Type.Object({
      client_ca: Type.Union([Type.String({ maxLength: MOST_CLIENT_CA_CHARACTERS }), Type.Null()], {
        description: 'One or more certificates of authorities, PEM, or `null`.',
      }),
    }),
  },
  answer: DatabaseRecordSchema,
  errors: ['mutual_tls_needs_tls'],
})

const toggle = (id: string, verb: string, summary: string, description: string, errors: readonly ErrorCode[] = []) =>
  change({ id, path: `${verb}/{id}`, summary, description, body: noFields, answer: OkSchema, errors })

/** Lets a full database evict. */
export const enableEviction = toggle(
  'enableEviction',
  'enable-eviction',
  'Enable eviction',
  'At the size limit, least recently used keys make room. Doing it again changes nothing.',
)

/** Lets a full database refuse writes. */
export const disableEviction = toggle(
  'disableEviction',
  'disable-eviction',
  'Disable eviction',
  'At the size limit, writes are refused while reads and deletes go on. Doing it again changes nothing.',
)

/** Lets a database move to the next plan when it outgrows its own. */
export const enableAutoUpgrade = toggle(
  'enableAutoUpgrade',
  'enable-autoupgrade',
  'Enable auto upgrade',
  'A database that outgrows its fixed plan moves to the next one. 409 "already enabled" when it is.',
  ['already_set'],
)

/** Keeps a database on its plan. */
export const disableAutoUpgrade = toggle(
  'disableAutoUpgrade',
  'disable-autoupgrade',
  'Disable auto upgrade',
  'The database keeps its plan. 409 "already disabled" when it is.',
  ['already_set'],
)

/** Adds the production pack to a database. */
export const enableProductionPack = toggle(
  'enableProductionPack',
  'enable-prodpack',
  'Enable the production pack',
  'Not on plan `free`. Doing it again changes nothing.',
  ['production_pack_not_allowed'],
)

/** Takes the production pack from a database. */
export const disableProductionPack = toggle(
  'disableProductionPack',
  'disable-prodpack',
  'Disable the production pack',
  'Doing it again changes nothing.',
)

const planField = Type.Optional(
  Type.Enum([...PLAN_NAMES, ...PLAN_ALIASES], {
    description:
      'The new plan. `pro` is the present plan with the production pack, `paid` the smallest fixed plan that holds the data.',
  }),
)

const ChangePlanSchema = Type.Object({
  plan_name: planField,
  plan: planField,
  auto_upgrade: Type.Optional(yesNo('Also turns auto upgrade on or off.')),
  prod_pack_enabled: Type.Optional(yesNo('Also turns the production pack on or off.')),
  database_id: Type.Optional(text('If given, the database of the path.')),
})

/** The body of a change of plan. */
export type ChangePlanBody = Static<typeof ChangePlanSchema>

const changePlanAt = (id: string, path: string, summary: string) =>
  change({
    id,
    path,
    summary,
    description:
      'Name the plan in `plan_name` or `plan`. The engine gets its new limits while it runs and no data is dropped; connections are closed if the limits of a connection change. A plan that is smaller than the data in use is refused with both numbers.',
    body: { kind: 'json', schema: ChangePlanSchema },
    answer: OkSchema,
    errors: ['plan_not_allowed', 'plan_too_small', 'production_pack_not_allowed', 'engine_failed', 'store_full'],
  })

/** Changes the plan of a database. */
export const changePlan = changePlanAt('changePlan', '{id}/change-plan', 'Change the plan')

/** The same, as some clients spell it. */
export const changePlanByVerb = changePlanAt(
  'changePlanByVerb',
  'change-plan/{id}',
  'Change the plan, by its other path',
)

/** Changes the budget of a database. */
export const updateBudget = change({
  id: 'updateBudget',
  method: 'PATCH',
  path: 'update-budget/{id}',
  summary: 'Change the budget',
  description: 'Whole US dollars a month; 0 means no budget.',
  body: {
    kind: 'json',
    schema: Type.Object({
      budget: Type.Integer({ minimum: 0, maximum: MOST_BUDGET, description: 'US dollars a month; 0 means none.' }),
    }),
  },
  answer: OkSchema,
})

const UpdateRegionsSchema = Type.Object({
  read_regions: Type.Array(Type.Enum([...READ_REGIONS]), {
    description: 'All read regions that the database is to have; replaces the old list.',
  }),
})

/** Changes the read regions of a database. */
export const updateRegions = change({
  id: 'updateRegions',
  path: 'update-regions/{id}',
  summary: 'Change the read regions',
  description:
    'Answers when every region of the list replicates and the replicas of all others are gone. The primary goes on serving: no write is lost and no connection to it is closed.',
  body: { kind: 'json', schema: UpdateRegionsSchema },
  answer: OkSchema,
  errors: ['engine_failed', 'store_full'],
})

/** Changes who may connect to a database. */
export const updateAllowList = change({
  id: 'updateAllowList',
  path: 'update-allowlist/{id}',
  summary: 'Change the allow list',
  description: 'Addresses and networks that may use the database; an empty list lets everybody in.',
  body: {
    kind: 'json',
    schema: Type.Object({
      allowed_ips: Type.Array(Type.String(), {
        maxItems: MOST_ALLOWED_IPS,
        description: 'IPv4 and IPv6 addresses and networks such as `203.0.113.0/24`; replaces the old list.',
      }),
    }),
  },
  answer: OkSchema,
})

/** Gives a database to a team. */
export const moveToTeam = endpoint({
  id: 'moveToTeam',
  service: 'management',
  topic: 'Databases',
  method: 'POST',
  path: '/v2/redis/move-to-team',
  auth: 'basic',
  access: 'write',
  summary: 'Move a database to a team',
  description:
    'You have to be owner, admin or dev of that team, and of the team that has the database now its owner or an admin. Clients of the database notice nothing; your account does not have it any more.',
  body: {
    kind: 'json',
    schema: Type.Object({
      team_id: text('`team_id` of the team.'),
      database_id: text('`database_id` of the database.'),
    }),
  },
  success: { status: 200, description: 'The text "OK".', body: OkSchema },
  errors: [...busy, 'team_not_found', 'team_forbidden', 'database_limit'],
})
