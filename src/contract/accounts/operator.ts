import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok, PATTERN_IN_WORDS } from '../endpoint.js'
import { EMAIL } from './accounts.js'

/** Most databases that the limit of an account may allow. */
export const MAX_DATABASES = 1_000_000
/** Most messages a day that the limit of an account may allow. */
export const MAX_DAILY_MESSAGES = 1_000_000_000
/** Longest e-mail. */
const MAX_EMAIL_LENGTH = 254

const text = (description: string) => Type.String({ description })

/** The kinds of accounts. */
export const ACCOUNT_TYPES = ['free', 'paid'] as const

const accountFields = {
  account_id: text('Identifier of the account.'),
  email: text('E-mail of the account: the user name of its API keys.'),
  account_type: Type.Enum([...ACCOUNT_TYPES], { description: 'Decides the default plan and limits of its databases.' }),
  state: Type.Enum(['active', 'suspended', 'deleting'], {
    description:
      '`suspended`: its requests are refused and its databases are suspended; `deleting`: its deletion is in progress.',
  }),
  operator: Type.Boolean({ description: "Whether it is the operator's own account." }),
  creation_time: Type.Integer({ description: 'When it was created, Unix seconds.' }),
  databases: Type.Integer({ description: 'Databases of the account and the teams that it owns.' }),
  teams: Type.Integer({ description: 'Teams that it owns.' }),
  database_limit: Type.Optional(
    Type.Integer({
      description: 'Most databases of the account, and of each of its teams; absent: the limit of its type.',
    }),
  ),
  daily_messages: Type.Optional(
    Type.Integer({
      description: 'Most messages a day of the account, and of each of its teams; absent: the limit of its type.',
    }),
  ),
}

/** An account as the operator sees it, without its data. */
export const ManagedAccountSchema = Type.Object(accountFields)

/** A new account with its credentials. */
export const NewAccountSchema = Type.Object({
  ...accountFields,
  api_key: text('The password of the management API and the console. It is shown only here and not stored.'),
  queue_token: text('The token of the queue. The account can read it later with `GET /v2/qstash/user`.'),
  current_signing_key: text('The key that signs the deliveries of the queue.'),
  next_signing_key: text('The key that signs deliveries after the next rotation.'),
})

/** An account as the operator sees it. */
export type ManagedAccount = Static<typeof ManagedAccountSchema>
/** A new account with its credentials. */
export type NewAccount = Static<typeof NewAccountSchema>

const operator = { service: 'management', topic: 'Accounts', auth: 'basic' } as const
const params = Type.Object({ id: text('`account_id` of the account.') })

/** Lists accounts. */
export const listAccounts = endpoint({
  ...operator,
  id: 'listAccounts',
  method: 'GET',
  path: '/v2/accounts',
  access: 'read',
  summary: 'List accounts',
  description: 'For the operator: all accounts without their data, oldest first.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The accounts.', body: Type.Array(ManagedAccountSchema) },
  errors: ['operator_only', 'store_unavailable'],
})

const CreateAccountSchema = Type.Object(
  {
    email: Type.String({
      maxLength: MAX_EMAIL_LENGTH,
      pattern: EMAIL,
      [PATTERN_IN_WORDS]: 'must be an e-mail address such as ada@example.com',
      description: 'The e-mail, unique on this server.',
      examples: ['ada@example.com'],
    }),
    account_type: Type.Optional(Type.Enum([...ACCOUNT_TYPES], { description: 'Default: `free`.' })),
    database_limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_DATABASES,
        description: 'Most databases of the account, and of each of its teams. Default: the limit of its type.',
      }),
    ),
    daily_messages: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_DAILY_MESSAGES,
        description: 'Most messages a day of the account, and of each of its teams. Default: the limit of its type.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** The body of an account's creation. */
export type CreateAccountBody = Static<typeof CreateAccountSchema>

/** Creates an account. */
export const createAccount = endpoint({
  ...operator,
  id: 'createAccount',
  method: 'POST',
  path: '/v2/accounts',
  access: 'write',
  summary: 'Create an account',
  description: 'For the operator, who sees the credentials of the account only in this response.',
  body: { kind: 'json', schema: CreateAccountSchema },
  success: { status: 200, description: 'The account with its credentials.', body: NewAccountSchema },
  errors: ['operator_only', 'account_exists', 'store_unavailable'],
})

const onAccount = ['operator_only', 'account_not_found', 'operator_account', 'store_unavailable'] as const

const limit = (maximum: number, what: string) =>
  Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum }), Type.Null()], {
      description: `Most ${what} of the account, and of each of its teams; null: the limit of its type. Absent: unchanged.`,
    }),
  )

const ChangeLimitsSchema = Type.Object(
  {
    database_limit: limit(MAX_DATABASES, 'databases'),
    daily_messages: limit(MAX_DAILY_MESSAGES, 'messages a day'),
    account_type: Type.Optional(Type.Enum([...ACCOUNT_TYPES], { description: 'Absent: unchanged.' })),
  },
  { additionalProperties: false, minProperties: 1 },
)

/** The body of a change of an account's limits. */
export type ChangeLimitsBody = Static<typeof ChangeLimitsSchema>

/** Changes the limits and the type of an account. */
export const changeAccountLimits = endpoint({
  ...operator,
  id: 'changeAccountLimits',
  method: 'PATCH',
  path: '/v2/accounts/{id}/limits',
  access: 'write',
  summary: 'Change the limits of an account',
  description:
    'For the operator. The new limits apply from the next request on. Databases beyond a lower limit stay. A new type also applies to the teams that the account owns.',
  params,
  body: { kind: 'json', schema: ChangeLimitsSchema },
  success: { status: 200, description: 'The account with its limits.', body: ManagedAccountSchema },
  errors: [...onAccount, 'account_deleting'],
})

/** Suspends an account. */
export const suspendAccount = endpoint({
  ...operator,
  id: 'suspendAccount',
  method: 'POST',
  path: '/v2/accounts/{id}/suspend',
  access: 'write',
  summary: 'Suspend an account',
  description:
    'For the operator. The server refuses requests of the account and of the teams that it owns with 403, suspends their databases, delivers none of their messages, and skips the fires of their schedules. All data stays. Repeating the request changes nothing.',
  params,
  body: noFields,
  success: ok,
  errors: [...onAccount, 'account_deleting'],
})

/** Ends the suspension of an account. */
export const resumeAccount = endpoint({
  ...operator,
  id: 'resumeAccount',
  method: 'POST',
  path: '/v2/accounts/{id}/resume',
  access: 'write',
  summary: 'Resume an account',
  description:
    'For the operator. Ends the suspension of the account; its pending messages are delivered again. Databases that their owner or budget has suspended stay suspended.',
  params,
  body: noFields,
  success: ok,
  errors: [...onAccount, 'account_deleting'],
})

/** Deletes an account. */
export const deleteAccount = endpoint({
  ...operator,
  id: 'deleteAccount',
  method: 'DELETE',
  path: '/v2/accounts/{id}',
  access: 'write',
  summary: 'Delete an account',
  description:
    'For the operator. The credentials of the account are refused at once. Responds when all data of the account and of the teams that it owns is deleted: databases, backups, messages, runs, keys, sessions, audit log. After a crash, the next start completes the deletion.',
  params,
  body: noFields,
  success: ok,
  errors: onAccount,
})
