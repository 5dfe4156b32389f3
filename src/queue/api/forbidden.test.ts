import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'

const FORBIDDEN = [
  'http://127.0.0.1/',
  'http://localhost:3000/hook',
  'http://app.localhost/',
  'http://0x7f000001/',
  'http://2130706433/',
  'http://127.1/',
  'http://[::1]/',
  'http://[::ffff:10.0.0.1]/',
  'https://169.254.169.254/latest/meta-data',
  'http%3A%2F%2F192.168.0.1%2F',
]
const ALLOWED = 'https://192.0.9.9/hook'

describeOnStore('sqlite', 'forbidden destinations', (openStore) => {
  let store: Store
  let service: QueueUnderTest
  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(async () => {
    service = await startQueue({ store, deliveryTargets: 'public' })
  })
  afterEach(async () => {
    await call('DELETE', '/v2/messages')
    await service.stop()
  })

  const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) => {
    const init = { method, headers: { ...service.auth, ...headers } }
    const response = await fetch(service.url + path, { ...init, ...(body ? { body: JSON.stringify(body) } : {}) })
    return { status: response.status, body: (await response.json()) as unknown }
  }
  const refusal = { status: 403, body: { error: expect.stringContaining('public addresses only') } }
  const later = { 'Upstash-Delay': '1d' }

  it.each(FORBIDDEN)('are refused when a message is published to %s', async (url) => {
    expect(await call('POST', `/v2/publish/${url}`, later)).toMatchObject(refusal)
    expect(await call('POST', `/v2/enqueue/q/${url}`, later)).toMatchObject(refusal)
    const items = [{ destination: url }, { destination: ALLOWED, headers: { 'upstash-delay': '1d' } }]
    const batch = await call('POST', '/v2/batch', {}, items)
    expect(batch.body).toMatchObject([{ error: refusal.body.error }, { messageId: expect.stringMatching(/^msg_/) }])
    expect((await call('POST', `/v2/schedules/${url}`, { 'Upstash-Cron': '* * * * *' })).status).toBe(403)
  })

  it.each([
    'Upstash-Callback',
    'Upstash-Failure-Callback',
    'Upstash-Callback-Failure-Callback',
    'Upstash-Failure-Callback-Callback',
  ])('are refused as %s, also in schedules and groups', async (header) => {
    const outer = header.replace(/-(?:Failure-)?Callback$/, '')
    const headers = { ...later, ...(outer !== 'Upstash' && { [outer]: ALLOWED }), [header]: 'http://10.1.2.3/' }
    expect(await call('POST', `/v2/publish/${ALLOWED}`, headers)).toMatchObject(refusal)
    expect(await call('POST', '/v2/dlq/retry', headers)).toMatchObject(refusal)
    const cron = { ...headers, 'Upstash-Cron': '0 0 29 2 *' }
    expect(await call('POST', `/v2/schedules/${ALLOWED}`, cron)).toMatchObject(refusal)
    await call('POST', '/v2/topics/g/endpoints', {}, { endpoints: [{ url: ALLOWED }] })
    expect(await call('PATCH', '/v2/topics/g', {}, { headers })).toMatchObject(refusal)
  })

  it('are refused as endpoints of URL groups', async () => {
    const endpoints = [{ url: ALLOWED }, { url: 'http://[fd00::1]/' }]
    expect(await call('POST', '/v2/topics/none/endpoints', {}, { endpoints })).toMatchObject(refusal)
    expect((await call('GET', '/v2/topics/none')).status).toBe(404)
  })

  it('are refused to intakes of other modules, also as callbacks', () => {
    const { queue } = service
    const code = expect.objectContaining({ code: 'destination_forbidden' })
    expect(() => queue.refuseForbidden([ALLOWED, 'http://10.1.2.3/'], {})).toThrow(code)
    expect(() => queue.refuseForbidden([], { 'upstash-failure-callback': 'http://127.1/' })).toThrow(code)
    expect(() => queue.refuseForbidden([ALLOWED], { 'upstash-callback': ALLOWED })).not.toThrow()
  })

  it('do not include public addresses and host names', async () => {
    for (const url of [ALLOWED, 'https://localhost.example.com/', 'https://[2a00::1]/']) {
      expect((await call('POST', `/v2/publish/${url}`, later)).status).toBe(200)
    }
  })
})
