import { createDatabase } from '../../e2e/support/service.js'
import { type Answer, call } from '../../support/index.js'
import type { Exchange, Exchanges, Stage } from './stage.js'

const MEMBER = 'someone@example.com'
let made = 0

/** Creates a team; returns its id. */
async function team({ homeport }: Stage): Promise<string> {
  const { body } = await homeport.api('POST', '/v2/team', { team_name: `team ${++made}`, copy_cc: false })
  return (body as { team_id: string }).team_id
}

/** Uses a team and deletes it again, because a person may own only a few. */
const withTeam =
  (use: (stage: Stage, teamId: string) => ReturnType<Exchange>): Exchange =>
  async (stage) => {
    const teamId = await team(stage)
    const answer = await use(stage, teamId)
    await stage.homeport.api('DELETE', `/v2/team/${teamId}`)
    return answer
  }

const addMember = ({ homeport }: Stage, teamId: string) =>
  homeport.api('POST', '/v2/teams/member', { team_id: teamId, member_email: MEMBER, member_role: 'dev' })

const createKey = ({ homeport }: Stage) => homeport.api('POST', '/v2/apikeys', { name: `key ${++made}` })

const QUEUE = '/v2/qstash'

/** Answers the id of the account's queue. */
async function queueId({ homeport }: Stage): Promise<string> {
  return ((await homeport.api('GET', `${QUEUE}/user`)).body as { id: string }).id
}

/** An exchange about the queue of the account. */
const aboutQueue =
  (method: string, path: (id: string) => string, body?: object): Exchange =>
  async (stage) =>
    stage.homeport.api(method, QUEUE + path(await queueId(stage)), body)

type Ask = (method: string, path: string, json?: object) => Promise<Answer>

/** Makes a team and acts with a key of it. */
const withTeamQueue = (use: (ask: Ask, queueId: string, teamId: string) => Promise<Answer>): Exchange =>
  withTeam(async ({ homeport }, team_id) => {
    const { body } = await homeport.api('POST', '/v2/apikeys', { name: `key ${++made}`, team_id })
    const login = `${homeport.credentials.email}:${(body as { api_key: string }).api_key}`
    const headers = { authorization: `Basic ${Buffer.from(login).toString('base64')}` }
    const ask: Ask = (method, path, json) => call(homeport.apiUrl + QUEUE + path, { method, headers, json })
    return use(ask, ((await ask('GET', '/user')).body as { id: string }).id, team_id)
  })

/** The queue of the account in the management API. */
export const queueAccountExchanges: Exchanges = {
  getOwnQueueAccount: ({ homeport }) => homeport.api('GET', `${QUEUE}/user`),
  listQueueAccounts: ({ homeport }) => homeport.api('GET', `${QUEUE}/users`),
  getQueueAccount: aboutQueue('GET', (id) => `/user/${id}`),
  setQueuePlan: aboutQueue('POST', (id) => `/set-plan/${id}`, { plan_name: 'paid' }),
  updateQueueBudget: aboutQueue('PATCH', (id) => `/update-budget/${id}`, { budget: 20 }),
  enableQueueProductionPack: aboutQueue('POST', (id) => `/enable-prodpack/${id}`),
  disableQueueProductionPack: aboutQueue('POST', (id) => `/disable-prodpack/${id}`),
  getQueueStats: aboutQueue('GET', (id) => `/stats/${id}?period=30d`),
  getQueueAddresses: ({ homeport }) => homeport.api('GET', `${QUEUE}/ipv4`),
  // Moves the queue of a team to the same team, which is accepted and changes nothing.
  moveQueueToTeam: withTeamQueue((ask, id, target_team_id) =>
    ask('POST', '/move-to-team', { qstash_id: id, target_team_id }),
  ),
  // Rotates the token of a team, because all other exchanges use the token of the account.
  rotateQueueToken: withTeamQueue((ask, id) => ask('POST', `/rotate-token/${id}`)),
}
const createToken = ({ homeport }: Stage) =>
  homeport.api('POST', '/v2/queue-tokens', {
    name: `token ${++made}`,
    scope: 'queue',
    queue: 'orders',
    expires_in: 600,
  })

const tokenOf = async (stage: Stage): Promise<string> =>
  ((await createToken(stage)).body as { token_id: string }).token_id

function createAccount({ homeport }: Stage) {
  return homeport.api('POST', '/v2/accounts', { email: `tenant-${++made}@example.com`, account_type: 'free' })
}

const onAccount =
  (method: string, path: string): Exchange =>
  async (stage) => {
    const { account_id } = (await createAccount(stage)).body as { account_id: string }
    return stage.homeport.api(method, `/v2/accounts/${account_id}${path}`)
  }

/** Accounts, teams, API keys, queue tokens and the audit log. */
export const accountExchanges: Exchanges = {
  createTeam: async (stage) => {
    const answer = await stage.homeport.api('POST', '/v2/team', { team_name: 'made', copy_cc: true })
    await stage.homeport.api('DELETE', `/v2/team/${(answer.body as { team_id: string }).team_id}`)
    return answer
  },
  listTeams: withTeam(({ homeport }) => homeport.api('GET', '/v2/teams')),
  addTeamMember: withTeam(addMember),
  listTeamMembers: withTeam(async (stage, teamId) => {
    await addMember(stage, teamId)
    return stage.homeport.api('GET', `/v2/teams/${teamId}`)
  }),
  removeTeamMember: withTeam(async (stage, teamId) => {
    await addMember(stage, teamId)
    return stage.homeport.api('DELETE', '/v2/teams/member', { team_id: teamId, member_email: MEMBER })
  }),
  deleteTeam: async (stage) => stage.homeport.api('DELETE', `/v2/team/${await team(stage)}`),
  moveToTeam: withTeam(async (stage, team_id) => {
    const { database_id } = await createDatabase(stage.service)
    return stage.homeport.api('POST', '/v2/redis/move-to-team', { team_id, database_id })
  }),
  createApiKey: createKey,
  listApiKeys: ({ homeport }) => homeport.api('GET', '/v2/apikeys'),
  deleteApiKey: async (stage) => {
    const { key_id } = (await createKey(stage)).body as { key_id: string }
    return stage.homeport.api('DELETE', `/v2/apikeys/${key_id}`)
  },
  rotateApiKey: async (stage) => {
    const { key_id } = (await createKey(stage)).body as { key_id: string }
    return stage.homeport.api('POST', `/v2/apikeys/${key_id}/rotate`, { overlap: 60 })
  },
  createAccount,
  listAccounts: ({ homeport }) => homeport.api('GET', '/v2/accounts'),
  changeAccountLimits: async (stage) => {
    const { account_id } = (await createAccount(stage)).body as { account_id: string }
    return stage.homeport.api('PATCH', `/v2/accounts/${account_id}/limits`, { database_limit: 3, daily_messages: null })
  },
  suspendAccount: onAccount('POST', '/suspend'),
  resumeAccount: onAccount('POST', '/resume'),
  deleteAccount: onAccount('DELETE', ''),
  createQueueToken: createToken,
  listQueueTokens: ({ homeport }) => homeport.api('GET', '/v2/queue-tokens'),
  rotateNamedQueueToken: async (stage) => stage.homeport.api('POST', `/v2/queue-tokens/${await tokenOf(stage)}/rotate`),
  deleteQueueToken: async (stage) => stage.homeport.api('DELETE', `/v2/queue-tokens/${await tokenOf(stage)}`),
  listAuditLogs: ({ homeport }) => homeport.api('GET', '/v2/auditlogs'),
  listAuditLogsAtRoot: ({ homeport }) => homeport.api('GET', '/auditlogs'),
}
