import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok, PATTERN_IN_WORDS } from '../endpoint.js'

/** Roles in a team. `owner` is the account that created the team; no other member can get this role. */
export const TEAM_ROLES = ['owner', 'admin', 'dev', 'finance'] as const

/** The role of a member. */
export type TeamRole = (typeof TEAM_ROLES)[number]

/** Roles that can be given to a member. */
export const ASSIGNABLE_ROLES = ['admin', 'dev', 'finance'] as const

/** Most teams that one person may own (reference redis 1.10). */
export const MAX_OWNED_TEAMS = 5

/** Most members of a team: every node has the members of all teams in memory, and reads them at each change. */
export const MAX_MEMBERS = 1_000

/** Most API keys of an account or team (reference redis 1.1). */
export const MAX_API_KEYS = 37

/** Longest name of a team or key, characters. */
export const MAX_LABEL_LENGTH = 64

const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
/**
 * At least one visible character, no control characters, and no lone surrogate, which the store would change. Each
 * character can match in one way only, so that matching takes linear time.
 */
const VISIBLE = '^(?:(?!\\p{Cc})\\s)*[^\\s\\p{Cc}\\p{Cs}][^\\p{Cc}\\p{Cs}]*$'
/** An e-mail. A colon would end the user name of HTTP Basic. */
export const EMAIL = '^[^\\s\\p{Cc}\\p{Cs}@:]+@[^\\s\\p{Cc}\\p{Cs}@:]+$'
/** A name that a person gives: of a team, a key or a token. */
export const label = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: MAX_LABEL_LENGTH,
    pattern: VISIBLE,
    [PATTERN_IN_WORDS]: 'must have at least one visible character, no control characters and no lone surrogates',
    description,
  })
const email = (description: string) =>
  Type.String({
    minLength: 3,
    maxLength: 254,
    pattern: EMAIL,
    [PATTERN_IN_WORDS]: 'must be an e-mail address such as ada@example.com',
    description,
    examples: ['ada@example.com'],
  })

/** A team (reference redis 1.10). */
export const TeamSchema = Type.Object({
  team_id: text('Identifier of the team.'),
  team_name: text('Name of the team.'),
  copy_cc: yesNo('The value that was sent when the team was created. It has no effect: Homeport takes no payments.'),
})

/** A member of a team (reference redis 1.10). */
export const TeamMemberSchema = Type.Object({
  team_id: text('Identifier of the team.'),
  team_name: text('Name of the team.'),
  member_email: text('E-mail of the member.'),
  member_role: Type.Enum([...TEAM_ROLES], { description: 'Role of the member.' }),
  copy_cc: yesNo('`copy_cc` of the team.'),
})

/** A team as the management API shows it. */
export type Team = Static<typeof TeamSchema>
/** A member of a team as the management API shows it. */
export type TeamMember = Static<typeof TeamMemberSchema>

/** Lists the teams of the caller. */
export const listTeams = endpoint({
  id: 'listTeams',
  service: 'management',
  topic: 'Teams',
  method: 'GET',
  path: '/v2/teams',
  auth: 'basic',
  access: 'read',
  summary: 'List your teams',
  description: 'All teams that you are a member of, oldest first. A key of a team lists that team only.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The teams.', body: Type.Array(TeamSchema) },
  errors: ['store_unavailable'],
})

const CreateTeamSchema = Type.Object({
  team_name: label(`Name of the team, at most ${MAX_LABEL_LENGTH} characters; names need not be unique.`),
  copy_cc: yesNo('Stored and returned. It has no effect: Homeport takes no payments.'),
})

/** The body of a team's creation. */
export type CreateTeamBody = Static<typeof CreateTeamSchema>

/** Creates a team. */
export const createTeam = endpoint({
  id: 'createTeam',
  service: 'management',
  topic: 'Teams',
  method: 'POST',
  path: '/v2/team',
  auth: 'basic',
  access: 'write',
  summary: 'Create a team',
  description: `Creates a team with you as its owner. One person may own ${MAX_OWNED_TEAMS} teams.`,
  body: { kind: 'json', schema: CreateTeamSchema },
  success: { status: 200, description: 'The new team.', body: TeamSchema },
  errors: ['team_key_refused', 'team_limit', 'store_unavailable'],
})

/** Deletes a team. */
export const deleteTeam = endpoint({
  id: 'deleteTeam',
  service: 'management',
  topic: 'Teams',
  method: 'DELETE',
  path: '/v2/team/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Delete a team',
  description: 'Only the owner may delete a team, and only when it has no databases. Its keys are deleted with it.',
  params: Type.Object({ id: text('`team_id` of the team.') }),
  body: noFields,
  success: ok,
  errors: ['team_not_found', 'team_forbidden', 'team_key_refused', 'team_not_empty', 'store_unavailable'],
})

/** Lists the members of a team. */
export const listTeamMembers = endpoint({
  id: 'listTeamMembers',
  service: 'management',
  topic: 'Teams',
  method: 'GET',
  path: '/v2/teams/{team_id}',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'List the members of a team',
  description: 'Every member sees all members, the owner first.',
  params: Type.Object({ team_id: text('`team_id` of the team.') }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The members; at least the owner.', body: Type.Array(TeamMemberSchema) },
  errors: ['team_not_found', 'store_unavailable'],
})

const AddMemberSchema = Type.Object({
  team_id: text('`team_id` of the team.'),
  member_email: email('E-mail of the new member.'),
  member_role: Type.Enum([...ASSIGNABLE_ROLES], {
    description: '`admin` manages members, keys and databases; `dev` manages databases; `finance` can only read.',
  }),
})

/** The body that adds a member. */
export type AddMemberBody = Static<typeof AddMemberSchema>

/** Adds a member to a team. */
export const addTeamMember = endpoint({
  id: 'addTeamMember',
  service: 'management',
  topic: 'Teams',
  method: 'POST',
  path: '/v2/teams/member',
  auth: 'basic',
  access: 'write',
  summary: 'Add a member to a team',
  description: `Only the owner and admins may add members, ${MAX_MEMBERS} at most. The e-mail need not belong to an account on this server: such a member uses keys of the team. To change a role, remove the member and add them again.`,
  body: { kind: 'json', schema: AddMemberSchema },
  success: { status: 200, description: 'The new member.', body: TeamMemberSchema },
  errors: ['team_not_found', 'team_forbidden', 'member_exists', 'team_member_limit', 'store_unavailable'],
})

const RemoveMemberSchema = Type.Object({
  team_id: text('`team_id` of the team.'),
  member_email: email('E-mail of the member.'),
})

/** The body that removes a member. */
export type RemoveMemberBody = Static<typeof RemoveMemberSchema>

/** Removes a member from a team. */
export const removeTeamMember = endpoint({
  id: 'removeTeamMember',
  service: 'management',
  topic: 'Teams',
  method: 'DELETE',
  path: '/v2/teams/member',
  auth: 'basic',
  access: 'write',
  summary: 'Remove a member from a team',
  description:
    "The owner and admins may remove other members, and members may remove themselves. The owner cannot be removed. The member's keys of the team are deleted.",
  body: { kind: 'json', schema: RemoveMemberSchema },
  success: ok,
  errors: ['team_not_found', 'team_forbidden', 'member_not_found', 'team_owner_stays', 'store_unavailable'],
})

/** Longest lifetime of a key or token that expires, seconds. */
export const MAX_LIFETIME_S = 10 * 365 * 86_400

/** `expires_in` of the creation of a key or token. */
export const expiresIn = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: MAX_LIFETIME_S,
    description: 'Seconds until the key or token expires. Default: it does not expire.',
  }),
)

const keyFields = {
  key_id: text('Identifier of the key.'),
  name: text('Name of the key, unique in its account or team.'),
  read_only: yesNo('Whether the key can only read.'),
  creation_time: Type.Integer({ description: 'When it was created, Unix seconds.' }),
  team_id: Type.Optional(text('The team of the key. Absent for a key of your account.')),
  member_email: Type.Optional(text('For a key of a team: the member who uses it, with this e-mail as user name.')),
  expires_at: Type.Optional(Type.Integer({ description: 'When it expires, Unix seconds; absent: never.' })),
  last_used_at: Type.Optional(
    Type.Integer({ description: 'When it was used last, Unix seconds, to the minute; absent: never.' }),
  ),
  previous_valid_until: Type.Optional(
    Type.Integer({ description: 'After a rotation: the time until which the old secret is accepted, Unix seconds.' }),
  ),
}

/** An API key, without its secret. */
export const ApiKeySchema = Type.Object(keyFields)

/** A new API key with its secret. */
export const NewApiKeySchema = Type.Object({
  ...keyFields,
  api_key: text('The secret: the password of HTTP Basic. It is shown once and not stored.'),
})

/** An API key as the management API lists it. */
export type ApiKey = Static<typeof ApiKeySchema>
/** An API key as its creation returns it. */
export type NewApiKey = Static<typeof NewApiKeySchema>

const TeamQuery = Type.Object({
  team_id: Type.Optional(
    text('A team that you are a member of. Absent: the account or team of the API key of this request.'),
  ),
})

/** Lists API keys. */
export const listApiKeys = endpoint({
  id: 'listApiKeys',
  service: 'management',
  topic: 'API keys',
  method: 'GET',
  path: '/v2/apikeys',
  auth: 'basic',
  access: 'read',
  summary: 'List API keys',
  description: 'Names and properties of the keys without their secrets, oldest first.',
  query: TeamQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'The keys.', body: Type.Array(ApiKeySchema) },
  errors: ['team_not_found', 'store_unavailable'],
})

// Unknown fields are refused: a misspelt `read_only` must not create a key with write access.
const CreateApiKeySchema = Type.Object(
  {
    name: label(`Name of the key, at most ${MAX_LABEL_LENGTH} characters, unique in its account or team.`),
    read_only: Type.Optional(yesNo('Whether the key can only read. Default: false.')),
    team_id: Type.Optional(text('Create a key of this team.')),
    member_email: Type.Optional(
      email('The member of the team who will use the key. Default: you. Owner and admins may choose other members.'),
    ),
    expires_in: expiresIn,
  },
  { additionalProperties: false },
)

/** The body of a key's creation. */
export type CreateApiKeyBody = Static<typeof CreateApiKeySchema>

/** Creates an API key. */
export const createApiKey = endpoint({
  id: 'createApiKey',
  service: 'management',
  topic: 'API keys',
  method: 'POST',
  path: '/v2/apikeys',
  auth: 'basic',
  access: 'write',
  summary: 'Create an API key',
  description: `A key has access to your account, or to one team with the role of the member who uses it. Only this response has its secret. An account or team may have ${MAX_API_KEYS} keys.`,
  body: { kind: 'json', schema: CreateApiKeySchema },
  success: { status: 200, description: 'The key with its secret.', body: NewApiKeySchema },
  errors: [
    'team_not_found',
    'team_forbidden',
    'member_not_found',
    'api_key_limit',
    'api_key_name_taken',
    'store_unavailable',
  ],
})

/** Deletes an API key. */
export const deleteApiKey = endpoint({
  id: 'deleteApiKey',
  service: 'management',
  topic: 'API keys',
  method: 'DELETE',
  path: '/v2/apikeys/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Delete an API key',
  description:
    'The key is invalid as soon as the response is sent. The last key of an account with write access cannot be deleted.',
  params: Type.Object({ id: text('`key_id` of the key.') }),
  query: TeamQuery,
  body: noFields,
  success: ok,
  errors: ['api_key_not_found', 'team_not_found', 'team_forbidden', 'last_api_key', 'store_unavailable'],
})
