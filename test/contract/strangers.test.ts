import { beforeAll, expect, it } from 'vitest'
import { type Answer, call, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { declaredEndpoints } from './declared.js'

/**
 * Everything that a tenant has contains this word. A caller with other credentials, the operator too, gets answers without
 * the word from every operation, and changes nothing.
 */
const WORD = 'zebra'
/** What the operator may do with accounts, and what ends the credentials of the test itself. */
const MEANT = /Account$|^rotate|^createConsoleSession$|^endConsoleSession$|AccountLimits$/
const endpoints = (await declaredEndpoints()).filter(({ auth, id }) => auth !== 'none' && !MEANT.test(id))

interface Keys {
  readonly basic: string
  readonly bearer: string
}

let homeport: RunningHomeport
let tenant: Keys
let stranger: Keys
let operator: Keys
const ids: string[] = []

const asKeys = (email: string, apiKey: string, token: string): Keys => ({
  basic: `Basic ${Buffer.from(`${email}:${apiKey}`).toString('base64')}`,
  bearer: `Bearer ${token}`,
})

async function newAccount(email: string): Promise<Keys> {
  const { body } = await homeport.api('POST', '/v2/accounts', { email, account_type: 'paid' })
  const { api_key, queue_token } = body as { api_key: string; queue_token: string }
  return asKeys(email, api_key, queue_token)
}

const ask = (
  { basic, bearer }: Keys,
  auth: string,
  method: string,
  path: string,
  json?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  call(`${auth === 'basic' ? homeport.apiUrl : homeport.queueUrl}${path}`, {
    ...{ method, headers: { authorization: auth === 'basic' ? basic : bearer, ...headers } },
    ...(method === 'GET' ? {} : { json: json ?? {} }),
  })

async function made(answer: Promise<Answer>, id?: string): Promise<void> {
  const { status, body } = await answer
  expect([status, body]).toEqual([expect.toBeOneOf([200, 202]), expect.anything()])
  if (id !== undefined) ids.push((body as Record<string, string>)[id] as string)
}

beforeAll(async () => {
  homeport = await startHomeport()
  const { email, apiKey, queueToken } = homeport.credentials
  operator = asKeys(email, apiKey, queueToken)
  tenant = await newAccount('tenant@example.com')
  stranger = await newAccount('stranger@example.com')
  const own = (auth: string, path: string, json: unknown, headers?: Record<string, string>) =>
    ask(tenant, auth, 'POST', path, json, headers)
  const to = `https://${WORD}.invalid/x`
  const later = { 'upstash-delay': '1d' }
  await made(
    own('basic', '/v2/redis/database', { database_name: WORD, platform: 'aws', primary_region: 'us-east-1' }),
    'database_id',
  )
  const [databaseId] = ids
  await made(own('basic', `/v2/redis/create-backup/${databaseId}`, { name: WORD }))
  await made(own('basic', '/v2/team', { team_name: WORD, copy_cc: false }), 'team_id')
  await made(own('basic', '/v2/apikeys', { name: WORD }), 'key_id')
  await made(own('basic', '/v2/queue-tokens', { name: WORD }), 'token_id')
  await made(own('basic', '/v2/alerts/channels', { name: WORD, url: to, kinds: ['disk_full'] }), 'channel_id')
  await made(own('bearer', `/v2/publish/${to}`, {}, { ...later, 'upstash-label': WORD }), 'messageId')
  await made(own('bearer', `/v2/enqueue/queue-1/${to}`, {}, later))
  await made(
    own(
      'bearer',
      `/v2/publish/${to}`,
      {},
      { ...later, 'upstash-flow-control-key': 'key-1', 'upstash-flow-control-value': 'rate=1' },
    ),
  )
  await made(own('bearer', '/v2/topics/group-1/endpoints', { endpoints: [{ url: to }] }))
  await made(own('bearer', `/v2/schedules/${to}`, {}, { 'upstash-cron': '0 0 1 1 *' }), 'scheduleId')
  await made(own('bearer', `/v2/trigger/${to}`, {}, later), 'workflowRunId')
  await made(own('bearer', '/v2/workflows/bulkActions', { kind: 'cancelRuns', selector: { label: WORD } }), 'actionId')
  await made(own('bearer', `/v2/publish/http://127.0.0.1:9/${WORD}`, {}, { 'upstash-retries': '0' }))
  const dead = async () =>
    ((await ask(tenant, 'bearer', 'GET', '/v2/dlq')).body as { messages: { dlqId: string }[] }).messages
  await waitFor(async () => (await dead()).length > 0, { what: 'a dead letter' })
  ids.push((await dead())[0]?.dlqId ?? '', 'queue-1', 'key-1', 'group-1')
})

/** What the tenant has; nothing here changes by time alone. */
const OWN = [
  ...[
    'listDatabases',
    'listApiKeys',
    'listQueueTokens',
    'listTeams',
    'listAlertChannels',
    'listSchedules',
    'listQueues',
  ],
  ...['listUrlGroups', 'listFlowKeys', 'listDeadLetters', 'listBulkActions', 'listWorkflowRuns', 'listQueueAccounts'],
]

async function snapshot(): Promise<unknown> {
  const reads = endpoints.filter(({ id }) => OWN.includes(id))
  expect(reads).toHaveLength(OWN.length)
  const own = await Promise.all(reads.map(({ auth, path }) => ask(tenant, auth, 'GET', path)))
  return reads.map(({ id }, index) => [id, JSON.stringify(own[index]?.body).replace(/"last_used_at":\d+,?/g, '')])
}

/** Which ids an operation may take, by its path. Where none is named, all are tried. */
const KINDS: readonly (readonly [path: RegExp, id: RegExp])[] = [
  [/^\/v2\/redis|\/team/, /-/],
  [/apikeys/, /^key_/],
  [/queue-tokens/, /^tok_/],
  [/alerts/, /^chan_/],
  [/workflows\/bulk/, /^bulk_/],
  [/dlq/, /^dlq|^msg_|^wfr_|-/],
  [/workflows|notify|wait/, /^wfr_|^bulk_/],
  [/messages/, /^msg_/],
  [/schedules/, /^scd_/],
  [/queues|enqueue/, /^queue-1/],
  [/flowControl/, /^key-1/],
  [/topics/, /^group-1/],
]

const fits = (path: string, id: string): boolean => KINDS.find(([of]) => of.test(path))?.[1].test(id) ?? true

it.each([
  ['the operator', () => operator],
  ['another tenant', () => stranger],
])('%s reaches nothing of a tenant by any operation', async (_, who) => {
  const before = await snapshot()
  expect(JSON.stringify(before)).toContain(WORD)
  const leaks: string[] = []
  for (const { id, auth, method, path } of endpoints) {
    const names = path.includes('{') || method !== 'GET' ? ids.filter((name) => fits(path, name)) : ['']
    const answers = names.map(async (name) => {
      const target = path.replace(/\{\+?\w+\}/g, name)
      const lists = { dlqIds: [name], messageIds: [name], workflowRunIds: [name] }
      const json = method === 'GET' ? undefined : { database_id: name, team_id: name, id: name, ...lists }
      const answer = await ask(who(), auth, method, target, json)
      if (JSON.stringify(answer.body).includes(WORD)) leaks.push(`${id} ${target}: ${answer.status}`)
    })
    await Promise.all(answers)
  }
  expect(leaks).toEqual([])
  expect(await snapshot()).toEqual(before)
})
