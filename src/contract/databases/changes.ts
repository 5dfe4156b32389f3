import { type Static, type TSchema, Type } from 'typebox'
import { type BodyShape, endpoint, noFields, ok } from '../endpoint.js'
import type { ErrorCode } from '../errors/errors.js'
import { DatabaseRecordSchema, MAX_BUDGET } from './databases.js'
import { PLAN_NAMES } from './plans.js'
import { READ_REGIONS } from './regions.js'

/** Most addresses and networks of one allow list. */
export const MAX_ALLOWED_IPS = 200

/**
 * Aliases in a change of plan (reference redis 1.2): `pro` is the current plan with the production pack, `paid` the
 * smallest fixed plan that holds the data.
 */
export const PLAN_ALIASES = ['pro', 'paid'] as const

const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
const IdParams = Type.Object({ id: text('`database_id` of the database.') })
const busy: readonly ErrorCode[] = ['database_not_found', 'database_busy', 'store_unavailable', 'starting']

interface Change<Body extends BodyShape, Answer extends TSchema> {
  readonly id: string
  readonly method?: 'PATCH'
  /** The path after `/v2/redis/`. */
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
    success: { status: 200, description: answers === ok.body ? ok.description : 'The database.', body: answer },
    errors: [...busy, ...errors],
  })
}

/** Renames a database. */
export const renameDatabase = change({
  id: 'renameDatabase',
  path: 'rename/{id}',
  summary: 'Rename a database',
  description: 'Host, port and credentials do not change.',
  body: { kind: 'json', schema: Type.Object({ name: text('The new name, with the rules of `database_name`.') }) },
  answer: DatabaseRecordSchema,
})

/** Replaces the credentials of a database. */
export const resetPassword = change({
  id: 'resetPassword',
  path: 'reset-password/{id}',
  summary: 'Reset the password',
  description:
    'Creates a new password and new tokens. When the response is sent, the old ones are invalid and all connections that use them are closed.',
  body: noFields,
  answer: DatabaseRecordSchema,
})

/** Enables TLS on the port of a database. */
export const enableTls = change({
  id: 'enableTls',
  path: 'enable-tls/{id}',
  summary: 'Enable TLS',
  description:
    'The Redis port accepts TLS only; connections without TLS are closed. This cannot be undone. Repeating the request changes nothing.',
  body: noFields,
  answer: DatabaseRecordSchema,
  errors: ['tls_not_configured'],
})

/** Longest client CA text, characters. */
export const MAX_CLIENT_CA_CHARACTERS = 65_536

/** Requires client certificates on the port of a database. */
export const updateMutualTls = change({
  id: 'updateMutualTls',
  path: '{id}/mutual-tls',
  summary: 'Require client certificates',
  description:
    'The TLS port accepts only clients with a certificate of the given authority; `null` requires none. ' +
    'All connections are closed. Clients still need their password. REST is not affected.',
  body: {
    kind: 'json',
    schema: Type.Object({
      client_ca: Type.Union([Type.String({ maxLength: MAX_CLIENT_CA_CHARACTERS }), Type.Null()], {
        description: 'One or more CA certificates in PEM, or `null`.',
      }),
    }),
  },
  answer: DatabaseRecordSchema,
  errors: ['mutual_tls_needs_tls'],
})

const toggle = (id: string, verb: string, summary: string, description: string, errors: readonly ErrorCode[] = []) =>
  change({ id, path: `${verb}/{id}`, summary, description, body: noFields, answer: ok.body, errors })

/** Enables eviction. */
export const enableEviction = toggle(
  'enableEviction',
  'enable-eviction',
  'Enable eviction',
  'At the size limit, least recently used keys are evicted. Repeating the request changes nothing.',
)

/** Disables eviction. */
export const disableEviction = toggle(
  'disableEviction',
  'disable-eviction',
  'Disable eviction',
  'At the size limit, writes are refused; reads and deletes still work. Repeating the request changes nothing.',
)

/** Enables auto upgrade. */
export const enableAutoUpgrade = toggle(
  'enableAutoUpgrade',
  'enable-autoupgrade',
  'Enable auto upgrade',
  'A database that outgrows its fixed plan moves to the next plan. 409 when auto upgrade is already enabled.',
  ['already_set'],
)

/** Disables auto upgrade. */
export const disableAutoUpgrade = toggle(
  'disableAutoUpgrade',
  'disable-autoupgrade',
  'Disable auto upgrade',
  'The database keeps its plan. 409 when auto upgrade is already disabled.',
  ['already_set'],
)

/** Enables the production pack. */
export const enableProductionPack = toggle(
  'enableProductionPack',
  'enable-prodpack',
  'Enable the production pack',
  'Not available on plan `free`. Repeating the request changes nothing.',
  ['production_pack_not_allowed'],
)

/** Disables the production pack. */
export const disableProductionPack = toggle(
  'disableProductionPack',
  'disable-prodpack',
  'Disable the production pack',
  'Repeating the request changes nothing.',
)

/** Stops a database until its owner resumes it. */
export const suspendDatabase = toggle(
  'suspendDatabase',
  'suspend',
  'Suspend a database',
  'Refuses all data commands and stops the engines of the database. Data, backups and settings stay, and the size of the data is still charged. Repeating the request changes nothing.',
)

/** Ends the suspension of a database by its owner. */
export const resumeDatabase = toggle(
  'resumeDatabase',
  'resume',
  'Resume a database',
  'Ends the suspension by the owner. A database whose budget is spent stays suspended until the budget allows commands. Repeating the request changes nothing.',
  ['budget_still_spent'],
)

const planField = Type.Optional(
  Type.Enum([...PLAN_NAMES, ...PLAN_ALIASES], {
    description:
      'The new plan. `pro` is the current plan with the production pack, `paid` the smallest fixed plan that holds the data.',
  }),
)

const ChangePlanSchema = Type.Object({
  plan_name: planField,
  plan: planField,
  auto_upgrade: Type.Optional(yesNo('Also enables or disables auto upgrade.')),
  prod_pack_enabled: Type.Optional(yesNo('Also enables or disables the production pack.')),
  database_id: Type.Optional(text('Optional. Must be the database of the path.')),
})

/** The body of a change of plan. */
export type ChangePlanBody = Static<typeof ChangePlanSchema>

const changePlanAt = (id: string, path: string, summary: string) =>
  change({
    id,
    path,
    summary,
    description:
      'Send the plan in `plan_name` or `plan`. The new limits apply while the engine runs, and no data is dropped. Connections are closed if the limits of a connection change. A plan that is smaller than the data is refused; the error has both sizes.',
    body: { kind: 'json', schema: ChangePlanSchema },
    answer: ok.body,
    errors: ['plan_not_allowed', 'plan_too_small', 'production_pack_not_allowed', 'engine_failed', 'store_full'],
  })

/** Changes the plan of a database. */
export const changePlan = changePlanAt('changePlan', '{id}/change-plan', 'Change the plan')

/** Changes the plan of a database, by the path of some clients. */
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
  description: 'Whole US dollars per month; 0 means no budget.',
  body: {
    kind: 'json',
    schema: Type.Object({
      budget: Type.Integer({
        minimum: 0,
        maximum: MAX_BUDGET,
        description: 'US dollars per month; 0 means no budget.',
      }),
    }),
  },
  answer: ok.body,
})

const UpdateRegionsSchema = Type.Object({
  // Terraform's provider sends `null` for an empty list.
  read_regions: Type.Union([Type.Array(Type.Enum([...READ_REGIONS])), Type.Null()], {
    description: 'All read regions of the database; replaces the old list. `null` is an empty list.',
  }),
})

/** Changes the read regions of a database. */
export const updateRegions = change({
  id: 'updateRegions',
  path: 'update-regions/{id}',
  summary: 'Change the read regions',
  description:
    'Responds when all regions of the list replicate and all other replicas are removed. The primary keeps serving: no write is lost, and no connection to it is closed.',
  body: { kind: 'json', schema: UpdateRegionsSchema },
  answer: ok.body,
  errors: ['no_node_in_region', 'engine_failed', 'store_full'],
})

/** Changes the allow list of a database. */
export const updateAllowList = change({
  id: 'updateAllowList',
  path: 'update-allowlist/{id}',
  summary: 'Change the allow list',
  description: 'Addresses and networks that may use the database. An empty list allows all addresses.',
  body: {
    kind: 'json',
    schema: Type.Object({
      allowed_ips: Type.Union([Type.Array(Type.String(), { maxItems: MAX_ALLOWED_IPS }), Type.Null()], {
        description:
          'IPv4 and IPv6 addresses and networks such as `203.0.113.0/24`; replaces the old list. `null` is an empty list.',
      }),
    }),
  },
  answer: ok.body,
})

/** Moves a database to a team. */
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
    'You must be owner, admin or dev of that team. If the database belongs to another team now, you must be the owner of that other team. Clients of the database are not affected. The database no longer belongs to your account.',
  body: {
    kind: 'json',
    schema: Type.Object({
      team_id: text('`team_id` of the team.'),
      database_id: text('`database_id` of the database.'),
    }),
  },
  success: ok,
  errors: [...busy, 'team_not_found', 'team_forbidden', 'database_limit'],
})
