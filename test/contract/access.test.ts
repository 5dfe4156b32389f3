import { beforeAll, describe, expect, it } from 'vitest'
import type { NarrowScope } from '../../src/contract/endpoint.js'
import { type Answer, basicOf, call, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { declaredEndpoints } from './declared.js'

/** Calls every operation with credentials that do not permit it: those of other accounts, and tokens of every scope. */

/**
 * Everything that a tenant has contains this word. A caller with other credentials, the operator too, gets answers without
 * the word from every operation, and changes nothing.
 */
const WORD = 'zebra'
/** Operations on accounts that the operator may use, and operations that would end the credentials of the test. */
const LEFT_OUT = /Account$|^rotate|^createConsoleSession$|^endConsoleSession$|AccountLimits$/
const all = await declaredEndpoints()
const endpoints = all.filter(({ auth, id }) => auth !== 'none' && !LEFT_OUT.test(id))

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
  basic: basicOf(email, apiKey),
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
    method,
    headers: { authorization: auth === 'basic' ? basic : bearer, ...headers },
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

/** The operations of the queue and of workflows. */
const scoped = all.filter(({ auth }) => auth === 'bearer')
const NARROW: readonly NarrowScope[] = ['publish', 'read', 'queue', 'flow_control']
const MORE: Partial<Record<NarrowScope, object>> = {
  queue: { queue: 'orders' },
  flow_control: { flow_control_key: 'mail' },
}

const tokens = new Map<NarrowScope, string>()

const askWith = (
  scope: NarrowScope,
  method: string,
  path: string,
  json?: unknown,
  headers: object = {},
  url = 'queueUrl',
) =>
  call(`${homeport[url as 'queueUrl' | 'apiUrl']}${path}`, {
    method,
    ...(method === 'GET' ? {} : { json: json ?? {} }),
    headers: { authorization: `Bearer ${tokens.get(scope)}`, ...headers },
  })
const isRefused = ({ status, body }: Answer): boolean =>
  status === 403 && String((body as { error?: unknown }).error).includes('has the scope')

describe('tokens with a narrow scope', () => {
  beforeAll(async () => {
    for (const scope of NARROW) {
      const body = { name: scope, scope, ...MORE[scope] }
      const made = await homeport.api('POST', '/v2/queue-tokens', body)
      tokens.set(scope, (made.body as { token: string }).token)
    }
    await homeport.queue('POST', '/v2/queues', { queueName: 'orders' })
  })

  it('an operation that changes something never declares the scope `read`', () => {
    const writes = scoped.filter(({ access }) => access === 'write')
    expect(writes.filter(({ scopes }) => scopes?.includes('read'))).toEqual([])
  })

  it.each(NARROW)('a token with the scope %s is refused by every operation that does not declare it', async (scope) => {
    for (const { id, method, path, scopes } of scoped) {
      const target = path.replace(/\{\+?\w+\}/g, 'x')
      // Whether a token for one queue or key may use an operation that declares its scope also depends on the name.
      const isAllowed = scopes?.includes(scope) ?? false
      const isNamed = scope === 'queue' || scope === 'flow_control'
      for (const url of ['queueUrl', 'apiUrl']) {
        const refused = isRefused(await askWith(scope, method, target, undefined, {}, url))
        if (!isAllowed || !isNamed) expect([id, url, refused]).toEqual([id, url, !isAllowed])
      }
    }
  })

  describe('a token for one queue', () => {
    const TO = 'https://example.invalid/hook'

    it.each<[string, string, unknown, object, boolean]>([
      ['enqueues into it', `/v2/enqueue/orders/${TO}`, {}, {}, true],
      ['publishes into it by header', `/v2/publish/${TO}`, {}, { 'upstash-queue-name': 'orders' }, true],
      ['publishes into it by the query', `/v2/publish/${TO}?upstash-queue-name=orders`, {}, {}, true],
      ['does not publish without it', `/v2/publish/${TO}`, {}, {}, false],
      ['does not enqueue elsewhere', `/v2/enqueue/other/${TO}`, {}, {}, false],
      ['is not fooled by the header', `/v2/enqueue/other/${TO}`, {}, { 'upstash-queue-name': 'orders' }, false],
      ['uses no flow-control key', `/v2/enqueue/orders/${TO}`, {}, { 'upstash-flow-control-key': 'mail' }, false],
      ['nor in a callback', `/v2/enqueue/orders/${TO}`, {}, { 'upstash-callback-flow-control-key': 'mail' }, false],
      [
        'nor in a nested one',
        `/v2/enqueue/orders/${TO}`,
        {},
        { 'upstash-callback-failure-callback-queue-name': 'x' },
        false,
      ],
      ['starts no run', `/v2/enqueue/orders/${TO}`, {}, { 'upstash-workflow-runid': 'wfr_1' }, false],
      [
        'publishes no batch with one foreign item',
        '/v2/batch',
        [{ destination: TO, queue: 'orders' }, { destination: TO }],
        {},
        false,
      ],
      ['publishes a batch into it', '/v2/batch', [{ destination: TO, queue: 'orders' }], {}, true],
    ])('%s', async (_, path, body, headers, isAllowed) => {
      const delayed = { 'upstash-delay': '1d', ...headers }
      const batch = Array.isArray(body) ? body.map((item) => ({ ...item, headers: delayed })) : body
      const answer = await askWith('queue', 'POST', path, batch, delayed)
      expect([answer.status, isRefused(answer)]).toEqual(isAllowed ? [200, false] : [403, true])
    })

    it('reads its queue and no other', async () => {
      expect((await askWith('queue', 'GET', '/v2/queues/orders')).status).toBe(200)
      expect(isRefused(await askWith('queue', 'GET', '/v2/queues/other'))).toBe(true)
    })
  })

  it('a token for one queue or key shares deduplication ids with nobody else', async () => {
    const to = 'https://example.invalid/hook'
    const once = { 'upstash-delay': '1d', 'upstash-deduplication-id': 'order-1' }
    const key = { 'upstash-flow-control-key': 'mail', 'upstash-flow-control-value': 'rate=5' }
    const queued = () => askWith('queue', 'POST', `/v2/enqueue/orders/${to}`, {}, once)
    const keyed = () => askWith('flow_control', 'POST', `/v2/publish/${to}`, {}, { ...once, ...key })
    const open = () => askWith('publish', 'POST', `/v2/publish/${to}`, {}, once)
    const firsts = [await queued(), await keyed(), await open()]
    const seconds = [await queued(), await keyed(), await open()]
    const idOf = ({ body }: Answer) => (body as { messageId: string }).messageId
    expect(firsts.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(seconds.map(({ status }) => status)).toEqual([202, 202, 202])
    expect(seconds.map(idOf)).toEqual(firsts.map(idOf))
    expect(new Set(firsts.map(idOf)).size).toBe(3)
  })

  it('a token for one flow-control key publishes under it only', async () => {
    const to = '/v2/publish/https://example.invalid/hook'
    const headers = {
      'upstash-delay': '1d',
      'upstash-flow-control-key': 'mail',
      'upstash-flow-control-value': 'rate=5',
    }
    expect((await askWith('flow_control', 'POST', to, {}, headers)).status).toBe(200)
    expect((await askWith('flow_control', 'GET', '/v2/flowControl/mail')).status).toBe(200)
    expect(isRefused(await askWith('flow_control', 'GET', '/v2/flowControl/other'))).toBe(true)
    expect(isRefused(await askWith('flow_control', 'POST', to, {}, {}))).toBe(true)
    expect(
      isRefused(await askWith('flow_control', 'POST', to, {}, { ...headers, 'upstash-queue-name': 'orders' })),
    ).toBe(true)
    expect(
      isRefused(await askWith('flow_control', 'POST', to, {}, { ...headers, 'upstash-flow-control-key': 'x' })),
    ).toBe(true)
  })
})
