import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Alert, AlertChannel, AlertRule } from '../../src/contract/alerts/alerts.js'
import type { Silence } from '../../src/contract/alerts/silences.js'
import { type Received, type Sink, startSink } from '../../src/queue/testing/sink.js'
import { atCleanup, waitFor } from '../support/index.js'
import { receiverOf, useService } from './support/service.js'

/** Alerts as users meet them: a channel is added, a message dies, and a receiver gets a signed notification. */

const service = useService()
let sink: Sink

beforeAll(async () => {
  sink = await startSink()
  atCleanup(() => sink.close())
})

beforeEach(() => {
  sink.received.length = 0
  sink.answer = ({ target }) => (target === '/dead' ? { status: 500 } : {})
})

const notified = (target: string): Promise<Received> =>
  waitFor(() => sink.received.find((request) => request.target === target), { what: `a notification at ${target}` })

const textOf = (received: Received): string => Buffer.from(received.body, 'latin1').toString('utf8')

async function addChannel(some: object): Promise<AlertChannel> {
  const { status, body } = await service.homeport.api('POST', '/v2/alerts/channels', { name: 'ops', ...some })
  expect([status, body]).toEqual([200, expect.objectContaining(some)])
  return body as AlertChannel
}

it('the server sends a test, signed by the keys of the account', async () => {
  const url = `${sink.url}/test?of=alerts`
  const { channel_id } = await addChannel({ url })
  const { body } = await service.homeport.api('POST', `/v2/alerts/channels/${channel_id}/test`)
  const got = await notified('/test?of=alerts')
  expect(got.headers['upstash-message-id']).toBe((body as { message_id: string }).message_id)
  expect(JSON.parse(textOf(got))).toMatchObject({ type: 'homeport.alert', test: true, held_back: 0 })
  const signature = String(got.headers['upstash-signature'])
  expect(await receiverOf(service).verify({ signature, body: textOf(got), url })).toBe(true)
  await service.homeport.api('DELETE', `/v2/alerts/channels/${channel_id}`)
})

it('the server notifies of a dead letter and of a failed run, in the format of each channel, and keeps both', async () => {
  const json = await addChannel({ url: `${sink.url}/json`, kinds: ['dead_letter'] })
  const slack = await addChannel({ url: `${sink.url}/slack`, format: 'slack' })
  const other = await addChannel({ url: `${sink.url}/other`, kinds: ['disk_full'] })
  const { messageId: id } = await service.queue.publish({ url: `${sink.url}/dead`, body: 'x', retries: 0 })
  await service.workflow.trigger({ url: `${sink.url}/dead`, retries: 0 })
  const got = await notified('/json')
  const body = textOf(got)
  const signature = String(got.headers['upstash-signature'])
  expect(await receiverOf(service).verify({ signature, body, url: json.url })).toBe(true)
  const { host } = new URL(sink.url)
  expect(JSON.parse(body)).toMatchObject({
    test: false,
    status: 'event',
    kind: 'dead_letter',
    subject: host,
    severity: 'error',
    count: 1,
    title: `A message to ${host} became a dead letter.`,
    examples: [{ id, text: `${host}: answered 500` }],
    link: `${service.homeport.apiUrl}/alerts`,
  })
  // One look may find both, or one look each of them.
  const texts = await waitFor(
    () => {
      const all = sink.received.filter(({ target }) => target === '/slack').map(textOf)
      return all.length === 2 && all.map((text) => String(JSON.parse(text).text)).sort()
    },
    { what: 'two notifications for Slack' },
  )
  expect(texts[0]).toContain(`*A message to ${host} became a dead letter.*`)
  expect(texts[1]).toContain(`*A workflow run of ${host}/dead failed.*`)
  expect(sink.received.filter(({ target }) => target === '/other')).toEqual([])
  const { alerts } = (await service.homeport.api('GET', '/v2/alerts/history')).body as { alerts: Alert[] }
  const byKind = (kind: string) => alerts.filter((alert) => alert.kind === kind)
  expect(byKind('dead_letter')).toMatchObject([{ state: 'sent', count: 1 }])
  expect(byKind('dead_letter')[0]?.message_ids).toContain(got.headers['upstash-message-id'])
  expect(byKind('run_failed')).toMatchObject([{ state: 'sent', count: 1, subject: `${host}/dead` }])
  for (const { channel_id } of [json, slack, other]) {
    await service.homeport.api('DELETE', `/v2/alerts/channels/${channel_id}`)
  }
})

it('the server shows the host of a channel only to read-only keys, which change nothing', async () => {
  const { channel_id } = await addChannel({ url: 'https://hooks.example.com/services/secret' })
  const key = await service.homeport.api('POST', '/v2/apikeys', { name: 'reader', read_only: true })
  const apiKey = (key.body as { api_key: string }).api_key
  const reader = { authorization: `Basic ${btoa(`${service.homeport.credentials.email}:${apiKey}`)}` }
  const read = await fetch(`${service.homeport.apiUrl}/v2/alerts/channels`, { headers: reader })
  expect(await read.json()).toMatchObject([{ channel_id, url: 'https://hooks.example.com/…' }])
  const change = { method: 'DELETE', headers: reader }
  expect((await fetch(`${service.homeport.apiUrl}/v2/alerts/channels/${channel_id}`, change)).status).toBe(403)
  await service.homeport.api('DELETE', `/v2/alerts/channels/${channel_id}`)
})

it('the server refuses what cannot be used, and says why', async () => {
  const { api } = service.homeport
  const refused = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) => {
    const answer = await api(method, path, body)
    return `${answer.status} ${(answer.body as { error: string }).error}`
  }
  expect(await refused('POST', '/v2/alerts/channels', { name: 'a', url: 'ftp://e.test' })).toMatch(/^400 The URL/)
  expect(await refused('POST', '/v2/alerts/channels', { name: 'a', url: 'http://e.test', kind: [] })).toMatch(/^400/)
  expect(await refused('DELETE', '/v2/alerts/channels/none')).toMatch(/^404/)
  expect(await refused('PATCH', '/v2/alerts/rules/budget', { threshold: 101 })).toMatch(/^400 .*from 1 to 100 %/)
  expect(await refused('PATCH', '/v2/alerts/rules/dead_letter', { threshold: 1 })).toMatch(/^400 .*none/)
  expect(await refused('PATCH', '/v2/alerts/rules/nonsense', { enabled: true })).toMatch(/^404/)
  expect(await refused('POST', '/v2/alerts/silences', { until: 1 })).toMatch(/^400 .*future/)
})

it('the server changes rules and silences, with entries in the audit log', async () => {
  const { api } = service.homeport
  const rule = await api('PATCH', '/v2/alerts/rules/backup_old', { enabled: false, threshold: 72 })
  expect(rule.body).toMatchObject({ kind: 'backup_old', enabled: false, threshold: 72, default_threshold: 48 })
  const rules = (await api('GET', '/v2/alerts/rules')).body as AlertRule[]
  expect(rules.find(({ kind }) => kind === 'backup_old')).toEqual(rule.body)
  const until = Math.floor(Date.now() / 1000) + 3_600
  const silence = (await api('POST', '/v2/alerts/silences', { kind: 'budget', until, reason: 'known' })).body as Silence
  expect((await api('GET', '/v2/alerts/silences')).body).toEqual([silence])
  expect((await api('DELETE', `/v2/alerts/silences/${silence.silence_id}`)).body).toBe('OK')
  const acts = ((await api('GET', '/v2/auditlogs')).body as { action_string: string }[]).map((one) => one.action_string)
  expect(acts.slice(0, 3)).toEqual(['Delete Alert Silence', 'Create Alert Silence', 'Change Alert Rule'])
})
