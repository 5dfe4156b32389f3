import { anthropic, custom, openai, resend } from '@upstash/qstash'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { type Sink, startSink } from '../../src/queue/testing/sink.js'
import { atCleanup, waitFor } from '../support/index.js'
import { useService } from './support/service.js'

/** Requests to providers of models and e-mail, as the published client sends them. */

const service = useService()
let sink: Sink

beforeAll(async () => {
  sink = await startSink()
  sink.answer = ({ target }) => (target === '/callback' ? {} : { body: '{"id":"from the provider"}' })
  atCleanup(() => sink.close())
})

beforeEach(() => {
  sink.received.length = 0
})

const TOKEN = 'sk-a-token-that-nobody-may-read'
const bearer = { authorization: `Bearer ${TOKEN}` }

/** The published provider, whose service stands at the sink. */
const here = <Provider extends object>(provider: Provider): Provider => Object.assign(provider, { baseUrl: sink.url })

const reply = (target: string) => sink.received.find((received) => received.target === target)

/** Whether a text contains the token, plain or in nested base64. */
function betrays(text: string, deep = 3): boolean {
  if (text.includes(TOKEN)) return true
  const encoded = deep === 0 ? [] : (text.match(/[A-Za-z0-9+/]{16,}={0,2}/g) ?? [])
  return encoded.some((part) => betrays(Buffer.from(part, 'base64').toString('latin1'), deep - 1))
}

it.each([
  ['openai', () => openai({ token: TOKEN }), '/v1/chat/completions', bearer],
  ['custom', () => custom({ token: TOKEN, baseUrl: sink.url }), '/v1/chat/completions', bearer],
  [
    'anthropic',
    () => anthropic({ token: TOKEN }),
    '/v1/messages',
    { 'x-api-key': TOKEN, 'anthropic-version': '2023-06-01' },
  ],
] as const)('a model of %s is asked with its token, which no log shows', async (_, provider, target, headers) => {
  const body = { model: 'small', messages: [{ role: 'user', content: 'hello' }] }
  const api = { name: 'llm', provider: here(provider()) } as const
  const { messageId } = await service.queue.publishJSON({ api, body, callback: `${sink.url}/callback` })
  await waitFor(() => reply('/callback'), { what: 'the callback' })
  expect(reply(target)).toMatchObject({ method: 'POST', headers: { ...headers, 'content-type': 'application/json' } })
  expect(JSON.parse(reply(target)?.body ?? '')).toEqual(body)
  const { body: reported } = JSON.parse(reply('/callback')?.body ?? '{}')
  expect(Buffer.from(reported, 'base64').toString()).toBe('{"id":"from the provider"}')
  const callbackId = String(reply('/callback')?.headers['upstash-message-id'])
  for (const id of [messageId, callbackId]) {
    for (const path of [`/v2/logs?messageId=${id}`, `/v2/messages/${id}`, '/v2/logs?groupBy=messageId'])
      expect(betrays(JSON.stringify((await service.homeport.queue('GET', path)).body))).toBe(false)
  }
  expect(betrays(service.homeport.logs())).toBe(false)
})

it('an e-mail is sent alone and in a batch', async () => {
  const body = { from: 'a@example.com', to: ['b@example.com'], subject: 'hello', html: '<p>hello</p>' }
  const email = (batch: boolean) => ({ name: 'email', provider: here(resend({ token: TOKEN, batch })) }) as const
  await service.queue.publishJSON({ api: email(false), body })
  await service.queue.publishJSON({ api: email(true), body: [body, body] })
  await waitFor(() => sink.received.length === 2, { what: 'both deliveries' })
  expect(reply('/emails')).toMatchObject({ method: 'POST', headers: bearer })
  expect(JSON.parse(reply('/emails/batch')?.body ?? '')).toEqual([body, body])
})

it('a model without a provider is refused, because none is configured', async () => {
  const api = { name: 'llm' } as const
  const asked = service.queue.publishJSON({ api, body: {}, callback: `${sink.url}/callback` })
  await expect(asked).rejects.toThrow('needs a model service')
})
