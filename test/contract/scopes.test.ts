import { beforeAll, describe, expect, it } from 'vitest'
import type { NarrowScope } from '../../src/contract/endpoint.js'
import { type Answer, call, type RunningHomeport, startHomeport } from '../support/index.js'
import { declaredEndpoints } from './declared.js'

/** Every operation of the queue and of workflows, asked with tokens of every scope. */
const endpoints = (await declaredEndpoints()).filter(({ auth }) => auth === 'bearer')
const NARROW: readonly NarrowScope[] = ['publish', 'read', 'queue', 'flow_control']
const MORE: Partial<Record<NarrowScope, object>> = {
  queue: { queue: 'orders' },
  flow_control: { flow_control_key: 'mail' },
}

let homeport: RunningHomeport
const tokens = new Map<NarrowScope, string>()

beforeAll(async () => {
  homeport = await startHomeport()
  for (const scope of NARROW) {
    const body = { name: scope, scope, ...MORE[scope] }
    const made = await homeport.api('POST', '/v2/queue-tokens', body)
    tokens.set(scope, (made.body as { token: string }).token)
  }
  await homeport.queue('POST', '/v2/queues', { queueName: 'orders' })
})

const ask = (
  scope: NarrowScope,
  method: string,
  path: string,
  json?: unknown,
  headers: object = {},
  url = 'queueUrl',
) =>
  call(`${homeport[url as 'queueUrl' | 'apiUrl']}${path}`, {
    ...{ method, ...(method === 'GET' ? {} : { json: json ?? {} }) },
    headers: { authorization: `Bearer ${tokens.get(scope)}`, ...headers },
  })
const isRefused = ({ status, body }: Answer): boolean =>
  status === 403 && String((body as { error?: unknown }).error).includes('has the scope')

it('no operation that changes something declares that reading suffices', () => {
  const writes = endpoints.filter(({ access }) => access === 'write')
  expect(writes.filter(({ scopes }) => scopes?.includes('read'))).toEqual([])
})

it.each(NARROW)('a token with the scope %s is refused whatever it does not declare', async (scope) => {
  for (const { id, method, path, scopes } of endpoints) {
    const target = path.replace(/\{\+?\w+\}/g, 'x')
    // Of a narrow token by name, only the operations it never may do are decided by the pipeline alone.
    const isAllowed = scopes?.includes(scope) ?? false
    const isNamed = scope === 'queue' || scope === 'flow_control'
    for (const url of ['queueUrl', 'apiUrl']) {
      const refused = isRefused(await ask(scope, method, target, undefined, {}, url))
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
    const answer = await ask('queue', 'POST', path, batch, delayed)
    expect([answer.status, isRefused(answer)]).toEqual(isAllowed ? [200, false] : [403, true])
  })

  it('reads its queue and no other', async () => {
    expect((await ask('queue', 'GET', '/v2/queues/orders')).status).toBe(200)
    expect(isRefused(await ask('queue', 'GET', '/v2/queues/other'))).toBe(true)
  })
})

it('a token for one queue or key shares deduplication ids with nobody else', async () => {
  const to = 'https://example.invalid/hook'
  const once = { 'upstash-delay': '1d', 'upstash-deduplication-id': 'order-1' }
  const key = { 'upstash-flow-control-key': 'mail', 'upstash-flow-control-value': 'rate=5' }
  const queued = () => ask('queue', 'POST', `/v2/enqueue/orders/${to}`, {}, once)
  const keyed = () => ask('flow_control', 'POST', `/v2/publish/${to}`, {}, { ...once, ...key })
  const open = () => ask('publish', 'POST', `/v2/publish/${to}`, {}, once)
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
  const headers = { 'upstash-delay': '1d', 'upstash-flow-control-key': 'mail', 'upstash-flow-control-value': 'rate=5' }
  expect((await ask('flow_control', 'POST', to, {}, headers)).status).toBe(200)
  expect((await ask('flow_control', 'GET', '/v2/flowControl/mail')).status).toBe(200)
  expect(isRefused(await ask('flow_control', 'GET', '/v2/flowControl/other'))).toBe(true)
  expect(isRefused(await ask('flow_control', 'POST', to, {}, {}))).toBe(true)
  expect(isRefused(await ask('flow_control', 'POST', to, {}, { ...headers, 'upstash-queue-name': 'orders' }))).toBe(
    true,
  )
  expect(isRefused(await ask('flow_control', 'POST', to, {}, { ...headers, 'upstash-flow-control-key': 'x' }))).toBe(
    true,
  )
})
