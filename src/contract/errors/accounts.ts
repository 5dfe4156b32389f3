import { define, type None } from './entry.js'

/** Errors of teams and API keys. */
export const accountsErrors = {
  team_not_found: define<{ teamId: string }>({
    status: 404,
    text: ({ teamId }) =>
      `team not found: you are not a member of a team with the id "${teamId}". GET /v2/teams lists your teams.`,
  }),
  team_forbidden: define<{ role: string; allowed: string }>({
    status: 403,
    text: ({ role, allowed }) =>
      `Your role in this team is ${role}, but this operation requires ${allowed}. Ask one of them.`,
  }),
  team_key_refused: define<None>({
    status: 403,
    text: () => 'A key of a team cannot create or delete teams. Use a key of your own account.',
  }),
  team_limit: define<{ limit: number }>({
    status: 409,
    text: ({ limit }) => `You already own ${limit} teams, which is the limit. Delete one first.`,
  }),
  team_member_limit: define<{ limit: number }>({
    status: 409,
    text: ({ limit }) => `The team already has ${limit} members, which is the limit. Remove one first.`,
  }),
  team_not_empty: define<{ databases: number }>({
    status: 409,
    text: ({ databases }) =>
      `The team still has ${databases} database${databases === 1 ? '' : 's'}. Delete them or move them to another team first.`,
  }),
  member_exists: define<{ email: string; role: string }>({
    status: 409,
    text: ({ email, role }) =>
      `${email} is already a member of this team, with the role ${role}. To change the role, remove the member and add them again.`,
  }),
  member_not_found: define<{ email: string }>({
    status: 404,
    text: ({ email }) =>
      `member not found: ${email} is not a member of this team. GET /v2/teams/{id} lists its members.`,
  }),
  team_owner_stays: define<None>({
    status: 409,
    text: () => 'The owner of a team cannot be removed from it. Delete the team instead.',
  }),
  queue_account_not_found: define<{ queueId: string }>({
    status: 404,
    text: ({ queueId }) =>
      `queue not found: your account has no queue with the id "${queueId.slice(0, 80)}". GET /v2/qstash/users lists its queue.`,
  }),
  queue_not_movable: define<{ teamId: string }>({
    status: 409,
    text: ({ teamId }) =>
      `The team "${teamId}" already has its own queue, and a team can have only one. Use a key of the team: GET /v2/qstash/user shows its token.`,
  }),
  api_key_not_found: define<{ keyId: string }>({
    status: 404,
    text: ({ keyId }) =>
      `API key not found: this account has no key with the id "${keyId}". GET /v2/apikeys lists all of them.`,
  }),
  api_key_limit: define<{ limit: number }>({
    status: 409,
    text: ({ limit }) => `This account already has ${limit} API keys, which is the limit. Delete one first.`,
  }),
  api_key_name_taken: define<{ name: string }>({
    status: 409,
    text: ({ name }) =>
      `An API key with the name "${name}" already exists. Choose another name, or delete that key first.`,
  }),
  operator_only: define<None>({
    status: 403,
    text: () =>
      'Only the operator of the server, the first account, may do this. Use a key of that account, not of a team.',
  }),
  too_many_log_readers: define<{ most: number }>({
    status: 429,
    retry: 'later',
    text: ({ most }) => `${most} readers already follow the log, which is the limit. End one of them.`,
  }),
  account_not_found: define<{ accountId: string }>({
    status: 404,
    text: ({ accountId }) =>
      `account not found: there is no account with the id "${accountId}". GET /v2/accounts lists all of them.`,
  }),
  account_exists: define<{ email: string }>({
    status: 409,
    text: ({ email }) => `An account with the e-mail ${email} already exists. Use another e-mail.`,
  }),
  operator_account: define<None>({
    status: 409,
    text: () => 'This is the account of the operator: it cannot be suspended or deleted.',
  }),
  account_deleting: define<None>({
    status: 409,
    text: () => 'This account is being deleted. Send the deletion again to wait until it is complete.',
  }),
  queue_token_not_found: define<{ tokenId: string }>({
    status: 404,
    text: ({ tokenId }) =>
      `queue token not found: this account has no queue token with the id "${tokenId}". GET /v2/queue-tokens lists them.`,
  }),
  queue_token_limit: define<{ limit: number }>({
    status: 409,
    text: ({ limit }) => `This account already has ${limit} queue tokens, which is the limit. Delete one first.`,
  }),
  queue_token_name_taken: define<{ name: string }>({
    status: 409,
    text: ({ name }) =>
      `A queue token with the name "${name}" already exists. Choose another name, or delete that token first.`,
  }),
  token_scope: define<{ scope: string; name?: string | undefined; wanted: string }>({
    status: 403,
    text: ({ scope, name, wanted }) =>
      `This queue token has the scope \`${scope}\`${name === undefined ? '' : ` for "${name}"`}, which does not allow ${wanted}. Use a token with a wider scope.`,
  }),
  last_api_key: define<None>({
    status: 409,
    text: () =>
      'This is the last API key of the account with write access that does not expire. Create another one before you delete it.',
  }),
} as const
