import { type Static, Type } from 'typebox'
import { endpoint, PATTERN_IN_WORDS } from '../endpoint.js'

/** What a member may be to a team. The owner is who made it; nobody else can become one. */
export const TEAM_ROLES = ['owner', 'admin', 'dev', 'finance'] as const

/** What a member is to a team. */
export type TeamRole = (typeof TEAM_ROLES)[number]

/** The roles that can be given. */
export const GIVEN_ROLES = ['admin', 'dev', 'finance'] as const

/** How many teams one person may own (reference redis 1.10). */
export const MOST_OWNED_TEAMS = 5

/** How many API keys an account or team may have (reference redis 1.1). */
export const MOST_API_KEYS = 37

/** Longest name of a team or key, characters. */
export const LONGEST_LABEL = 64

/** Entries that one page of the audit log may hold. */
export const MOST_AUDIT_ENTRIES = 1000

const text = (description: string) => Type.String({ description })
const yesNo = (description: string) => Type.Boolean({ description })
/**
 * Something that can be seen, no control characters, and no half of a character, which the store would change. Each
 * character can be matched in one way only, so that a text of any length is refused as fast as it is read.
 */
const VISIBLE = '^(?:(?!\\p{Cc})\\s)*[^\\s\\p{Cc}\\p{Cs}][^\\p{Cc}\\p{Cs}]*$'
const EMAIL = '^[^\\s\\p{Cc}\\p{Cs}@:]+@[^\\s\\p{Cc}\\p{Cs}@:]+$'
const label = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: LONGEST_LABEL,
    pattern: VISIBLE,
    [PATTERN_IN_WORDS]: 'must have something to see, no control characters and no half of a character',
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
const ok = { status: 200, description: 'The text "OK".', body: Type.Literal('OK') }
// Real clients send a body where none is needed: empty, {} or null.
const noFields = { kind: 'json', optional: true, schema: Type.Unknown() } as const

/** A team (reference redis 1.10). */
export const TeamSchema = Type.Object({
  team_id: text('Identifier of the team.'),
  team_name: text('Name of the team.'),
  copy_cc: yesNo('As it was given; nothing is paid here.'),
})

/** A member of a team (reference redis 1.10). */
export const TeamMemberSchema = Type.Object({
  team_id: text('Identifier of the team.'),
  team_name: text('Name of the team.'),
  member_email: text('E-mail of the member.'),
  member_role: Type.Enum([...TEAM_ROLES], { description: 'What the member is to the team.' }),
  copy_cc: yesNo('As it was given for the team.'),
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
  description: 'All teams that you are a member of, oldest first. A key of a team sees that team only.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The teams.', body: Type.Array(TeamSchema) },
  errors: ['store_unavailable'],
})

const CreateTeamSchema = Type.Object({
  team_name: label(`Name of the team, at most ${LONGEST_LABEL} characters; names need not be unique.`),
  copy_cc: yesNo('Kept and shown; nothing is paid here.'),
})

/** The body of a team's creation. */
export type CreateTeamBody = Static<typeof CreateTeamSchema>

/** Makes a team. */
export const createTeam = endpoint({
  id: 'createTeam',
  service: 'management',
  topic: 'Teams',
  method: 'POST',
  path: '/v2/team',
  auth: 'basic',
  access: 'write',
  summary: 'Create a team',
  description: `You become its owner. One person may own ${MOST_OWNED_TEAMS} teams.`,
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
  description: 'Only the owner may, and only when the team has no databases. Its keys end at once.',
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
  member_role: Type.Enum([...GIVEN_ROLES], {
    description: '`admin` manages members, keys and databases; `dev` databases; `finance` only reads.',
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
  description:
    'The owner and admins may. The e-mail need not have an account on this server: such a member uses keys of the team. A role is changed by removing the member and adding them again.',
  body: { kind: 'json', schema: AddMemberSchema },
  success: { status: 200, description: 'The new member.', body: TeamMemberSchema },
  errors: ['team_not_found', 'team_forbidden', 'member_exists', 'store_unavailable'],
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
    "The owner and admins may remove others, everybody may remove themselves, and nobody the owner. The member's keys of the team end at once.",
  body: { kind: 'json', schema: RemoveMemberSchema },
  success: ok,
  errors: ['team_not_found', 'team_forbidden', 'member_not_found', 'team_owner_stays', 'store_unavailable'],
})

const keyFields = {
  key_id: text('Identifier of the key.'),
  name: text('Name of the key, unique in its account or team.'),
  read_only: yesNo('Whether the key is refused every write.'),
  creation_time: Type.Integer({ description: 'Unix seconds.' }),
  team_id: Type.Optional(text('The team that the key acts for; absent for a key of your account.')),
  member_email: Type.Optional(text('Of a team: the member who uses the key, with this e-mail as user name.')),
}

/** An API key, without its secret. */
export const ApiKeySchema = Type.Object(keyFields)

/** An API key as it is shown once, with its secret. */
export const NewApiKeySchema = Type.Object({
  ...keyFields,
  api_key: text('The secret: the password of HTTP Basic. It is shown this once and not kept.'),
})

/** An API key as the management API lists it. */
export type ApiKey = Static<typeof ApiKeySchema>
/** An API key as its creation answers it. */
export type NewApiKey = Static<typeof NewApiKeySchema>

const TeamQuery = Type.Object({
  team_id: Type.Optional(text('A team that you are a member of. Absent: the account or team of the key that asks.')),
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
  description: 'Names and kinds, never the secrets; oldest first.',
  query: TeamQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'The keys.', body: Type.Array(ApiKeySchema) },
  errors: ['team_not_found', 'store_unavailable'],
})

// Nothing but what is known: a misspelt `read_only` must not make a key that may write.
const CreateApiKeySchema = Type.Object(
  {
    name: label(`Name of the key, at most ${LONGEST_LABEL} characters, unique in its account or team.`),
    read_only: Type.Optional(yesNo('Whether the key is refused every write. Default: false.')),
    team_id: Type.Optional(text('Make a key of this team.')),
    member_email: Type.Optional(
      email('The member of the team who will use the key. Default: you. Owner and admins may name others.'),
    ),
  },
  { additionalProperties: false },
)

/** The body of a key's creation. */
export type CreateApiKeyBody = Static<typeof CreateApiKeySchema>

/** Makes an API key. */
export const createApiKey = endpoint({
  id: 'createApiKey',
  service: 'management',
  topic: 'API keys',
  method: 'POST',
  path: '/v2/apikeys',
  auth: 'basic',
  access: 'write',
  summary: 'Create an API key',
  description: `A key acts for your account, or for one team with the role of the member who holds it. Its secret is in this answer and nowhere else. At most ${MOST_API_KEYS} for an account or team.`,
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

/** Ends an API key. */
export const deleteApiKey = endpoint({
  id: 'deleteApiKey',
  service: 'management',
  topic: 'API keys',
  method: 'DELETE',
  path: '/v2/apikeys/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Delete an API key',
  description: 'The key is dead when the answer is sent. The last key of an account that may write stays.',
  params: Type.Object({ id: text('`key_id` of the key.') }),
  query: TeamQuery,
  body: noFields,
  success: ok,
  errors: ['api_key_not_found', 'team_not_found', 'team_forbidden', 'last_api_key', 'store_unavailable'],
})
