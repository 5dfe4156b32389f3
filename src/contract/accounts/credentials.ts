import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok, QUEUE_TOKEN_SCOPES } from '../endpoint.js'
import { expiresIn, label, MAX_LABEL_LENGTH, MAX_LIFETIME_S, NewApiKeySchema } from './accounts.js'

/** Most named queue tokens of an account or team. */
export const MAX_QUEUE_TOKENS = 50
/** Longest overlap of a rotation: the time for which the old secret is accepted beside the new one, seconds. */
export const MAX_OVERLAP_S = 30 * 86_400
/** Overlap of a rotation whose request names none, seconds. */
export const DEFAULT_OVERLAP_S = 86_400
/** Longest name of a queue or flow-control key. */
const MAX_SCOPE_NAME_LENGTH = 512

const text = (description: string) => Type.String({ description })

const RotateSchema = Type.Object(
  {
    overlap: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_OVERLAP_S,
        description: `Seconds for which the old secret is still accepted; 0: it is refused at once. Default: ${DEFAULT_OVERLAP_S}.`,
      }),
    ),
    expires_in: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LIFETIME_S,
        description: 'Seconds from now until it expires; only for a key or token that expires. Default: unchanged.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** The body of a rotation. */
export type RotateBody = Static<typeof RotateSchema>

const rotateBody = { kind: 'json', optional: true, schema: RotateSchema } as const

const TeamQuery = Type.Object({
  team_id: Type.Optional(
    text('A team that you are a member of. Absent: the account or team of the API key of this request.'),
  ),
})

/** Gives an API key a new secret. */
export const rotateApiKey = endpoint({
  id: 'rotateApiKey',
  service: 'management',
  topic: 'API keys',
  method: 'POST',
  path: '/v2/apikeys/{id}/rotate',
  auth: 'basic',
  access: 'write',
  summary: 'Rotate an API key',
  description:
    'Creates a new secret, which only this response contains. The old secret is accepted during the overlap; afterwards the server refuses it and the console sessions that began with it. A second rotation ends the overlap of the first.',
  params: Type.Object({ id: text('`key_id` of the key.') }),
  query: TeamQuery,
  body: rotateBody,
  success: { status: 200, description: 'The key with its new secret.', body: NewApiKeySchema },
  errors: ['api_key_not_found', 'team_not_found', 'team_forbidden', 'store_unavailable'],
})

const seconds = (description: string) => Type.Integer({ description: `${description}, Unix seconds.` })

const tokenFields = {
  token_id: text('Identifier of the token.'),
  name: text('Name of the token, unique in its account or team.'),
  scope: Type.Enum([...QUEUE_TOKEN_SCOPES], {
    description:
      'What the token may do. `all`: everything. `publish`: publish, enqueue, trigger runs, notify. `read`: read everything except the signing keys. `queue`, `flow_control`: publish into one queue or with one flow-control key, and read its state.',
  }),
  queue: Type.Optional(text('For the scope `queue`: name of the queue.')),
  flow_control_key: Type.Optional(text('For the scope `flow_control`: the key.')),
  creation_time: seconds('When it was created'),
  expires_at: Type.Optional(seconds('When it expires; absent: never')),
  last_used_at: Type.Optional(seconds('When it was used last, to the minute; absent: never')),
  previous_valid_until: Type.Optional(seconds('After a rotation: the time until which the old secret is accepted')),
}

/** A queue token, without its secret. */
export const QueueTokenSchema = Type.Object(tokenFields)

/** A queue token as it is shown once. */
export const NewQueueTokenSchema = Type.Object({
  ...tokenFields,
  token: text('The secret: the Bearer token of the queue. It is shown only here and not stored.'),
})

/** A queue token as the management API lists it. */
export type QueueToken = Static<typeof QueueTokenSchema>
/** A queue token as its creation and rotation return it. */
export type NewQueueToken = Static<typeof NewQueueTokenSchema>

const tokens = { service: 'management', topic: 'Queue tokens', auth: 'basic' } as const
const tokenParams = Type.Object({ id: text('`token_id` of the token.') })

/** Lists queue tokens. */
export const listQueueTokens = endpoint({
  ...tokens,
  id: 'listQueueTokens',
  method: 'GET',
  path: '/v2/queue-tokens',
  access: 'read',
  summary: 'List queue tokens',
  description:
    'All tokens without their secrets: the first two tokens, then the others, oldest first. The first two tokens of an account are named `default` and `read-only`; `GET /v2/qstash/user` shows their secrets.',
  query: TeamQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'The tokens.', body: Type.Array(QueueTokenSchema) },
  errors: ['team_not_found', 'store_unavailable'],
})

// Unknown fields are refused: a misspelt `scope` must not create a token that may do everything.
const CreateQueueTokenSchema = Type.Object(
  {
    name: label(`Name of the token, at most ${MAX_LABEL_LENGTH} characters, unique in its account or team.`),
    scope: Type.Optional(Type.Enum([...QUEUE_TOKEN_SCOPES], { description: 'What it may do. Default: `all`.' })),
    queue: Type.Optional(
      Type.String({ minLength: 1, maxLength: MAX_SCOPE_NAME_LENGTH, description: 'The queue of the scope `queue`.' }),
    ),
    flow_control_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_SCOPE_NAME_LENGTH,
        description: 'The key of the scope `flow_control`.',
      }),
    ),
    expires_in: expiresIn,
    team_id: Type.Optional(text('Create a token of this team.')),
  },
  { additionalProperties: false },
)

/** The body of a token's creation. */
export type CreateQueueTokenBody = Static<typeof CreateQueueTokenSchema>

/** Creates a queue token. */
export const createQueueToken = endpoint({
  ...tokens,
  id: 'createQueueToken',
  method: 'POST',
  path: '/v2/queue-tokens',
  access: 'write',
  summary: 'Create a queue token',
  description: `Only this response contains the secret. An account or team may have ${MAX_QUEUE_TOKENS} tokens. In a team, only the owner and admins may create tokens, because a token belongs to no member.`,
  body: { kind: 'json', schema: CreateQueueTokenSchema },
  success: { status: 200, description: 'The token with its secret.', body: NewQueueTokenSchema },
  errors: ['team_not_found', 'team_forbidden', 'queue_token_limit', 'queue_token_name_taken', 'store_unavailable'],
})

const onToken = ['queue_token_not_found', 'team_not_found', 'team_forbidden', 'store_unavailable'] as const

/** Gives a queue token a new secret. */
export const rotateNamedQueueToken = endpoint({
  ...tokens,
  id: 'rotateNamedQueueToken',
  method: 'POST',
  path: '/v2/queue-tokens/{id}/rotate',
  access: 'write',
  summary: 'Rotate a queue token',
  description:
    'Creates a new secret, which only this response contains. The old secret is accepted during the overlap. A second rotation ends the overlap of the first.',
  params: tokenParams,
  query: TeamQuery,
  body: rotateBody,
  success: { status: 200, description: 'The token with its new secret.', body: NewQueueTokenSchema },
  errors: onToken,
})

/** Deletes a queue token. */
export const deleteQueueToken = endpoint({
  ...tokens,
  id: 'deleteQueueToken',
  method: 'DELETE',
  path: '/v2/queue-tokens/{id}',
  access: 'write',
  summary: 'Delete a queue token',
  description:
    'The token is invalid as soon as the response is sent, and so is an old secret during an overlap. Messages that were published with it stay.',
  params: tokenParams,
  query: TeamQuery,
  body: noFields,
  success: ok,
  errors: onToken,
})
