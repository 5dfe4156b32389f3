import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { atCleanup, tempDir } from '../../../test/support/index.js'
import { runCli } from '../index.js'

/** The commands of the queue against a server that answers as the test says. */

let answers: Record<string, unknown> = {}
/** The answer to what is not in `answers`. */
let refusal = { status: 404, error: 'There is none.' }
let requests: { request: string; body: string }[] = []

beforeEach(async () => {
  requests = []
  const server = createServer(async (incoming, response) => {
    const request = `${incoming.method} ${incoming.url}`
    requests.push({ request, body: await text(incoming) })
    const answer = answers[request]
    response.statusCode = answer === undefined ? refusal.status : 200
    response.end(JSON.stringify(answer ?? { error: refusal.error }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const queue = { QSTASH_URL: url, QSTASH_TOKEN: 'token' }
  for (const [name, value] of Object.entries({ HOMEPORT_API_URL: url, ...queue })) vi.stubEnv(name, value)
})
afterEach(() => vi.unstubAllEnvs())

async function queue(line: string) {
  const out: string[] = []
  const err: string[] = []
  const io = { out: (said: string) => void out.push(said), err: (said: string) => void err.push(said) }
  return { code: await runCli(['queue', ...line.split(' ')], io), out: out.join(''), err: err.join('') }
}

it('the command refuses headers that HTTP cannot carry, without their secrets', async () => {
  const publish = (flags: string) => queue(`publish http://a.test ${flags}`)
  expect(await publish('--header X:☃')).toMatchObject({
    code: 2,
    err: expect.stringContaining('-X: ☃" cannot be sent'),
  })
  expect(await publish('--flow-key ключ')).toMatchObject({ code: 2 })
  vi.stubEnv('QSTASH_TOKEN', 'sécret☃')
  const { code, err } = await publish('--body x')
  expect([code, err]).toEqual([2, expect.stringContaining('authorization: …')])
  expect(err).not.toContain('cret☃')
  expect(requests).toEqual([])
})

it('the command changes only the given settings of a queue', async () => {
  const mails = { name: 'mails', createdAt: 1, updatedAt: 1, parallelism: 5, lag: 0, paused: true }
  answers = { 'GET /v2/queues': [mails], 'GET /v2/queues/mails': mails, 'POST /v2/queues': {} }
  const sent = async (line: string) => {
    requests = []
    expect(await queue(line)).toMatchObject({ code: 0 })
    return JSON.parse(requests.find(({ request }) => request === 'POST /v2/queues')?.body ?? '')
  }
  expect(await sent('queues upsert mails --paused')).toEqual({ queueName: 'mails', parallelism: 5, paused: true })
  expect(await sent('queues upsert mails --parallelism 7')).toMatchObject({ parallelism: 7, paused: true })
  answers = { ...answers, 'GET /v2/queues': [] }
  expect(await sent('queues upsert mails')).toMatchObject({ parallelism: 1, paused: false })
})

it('the command shows the endpoints that are left in a URL group, and refuses unknown ones', async () => {
  const [one, other] = [{ url: 'http://a.test' }, { name: 'backup', url: 'http://b.test' }]
  const news = { name: 'news', createdAt: 1, updatedAt: 1, endpoints: [one, other] }
  answers = { 'GET /v2/topics/news': news, 'DELETE /v2/topics/news/endpoints': {} }
  expect((await queue('groups remove news nope')).err).toContain('has no endpoint "nope"')
  expect(requests).toHaveLength(1)
  const { out } = await queue('groups remove news backup')
  expect(out).toContain('http://a.test')
  expect(out).not.toContain('b.test')
  expect((await queue('groups remove news backup http://a.test')).out).toBe(
    'deleted news, which has no endpoints left\n',
  )
})

it('the command lists why there was no response to a dead letter', async () => {
  const letter = { dlqId: '1-0', messageId: 'msg_1', url: 'http://a.test', method: 'POST', header: {}, maxRetries: 0 }
  const refused = {
    ...letter,
    createdAt: 1,
    notBefore: 1,
    responseStatus: 0,
    responseBody: 'the connection was refused',
  }
  answers = {
    'GET /v2/dlq?count=50': { messages: [refused, { ...refused, responseStatus: 500, responseBody: 'a page' }] },
  }
  const { out } = await queue('dlq list')
  expect(out).toMatch(/none .*the connection was refused\n/)
  expect(out).not.toContain('a page')
})

it('names commands in the refusals of a batch, and the missing message of an undo', async () => {
  answers = { 'POST /v2/batch': [{ error: 'Add endpoints with POST /v2/topics/x/endpoints.' }] }
  const file = join(tempDir(), 'batch.json')
  writeFileSync(file, '[{"destination": "x"}]')
  expect(await queue(`batch ${file}`)).toMatchObject({
    code: 1,
    err: expect.stringContaining('`homeport queue groups add x`'),
  })
  expect(await queue('messages undo msg_1')).toMatchObject({
    code: 3,
    err: expect.stringContaining('no cancelled message "msg_1"'),
  })
})

it.each([
  [400, 'Upstash-Cron is "bad"; see Upstash-Callback-Retries.', 2, '--cron is "bad"; see Upstash-Callback-Retries.'],
  [400, 'Homeport-Debounce-Delay is ""; send 30s.', 2, '--debounce-delay is ""; send 30s.'],
  [
    401,
    'Unauthorized: the token is not valid.',
    4,
    'is not valid. This command used the credentials of the environment.',
  ],
  [404, 'There is no operation POST /v2/schedules/x.', 1, 'it is another service of Homeport, or another version'],
])('the command says of a refusal with %i what the user can change: %s', async (status, error, code, said) => {
  answers = {}
  refusal = { status, error }
  expect(await queue('schedules create http://a.test --cron bad')).toMatchObject({
    code,
    err: expect.stringContaining(said),
  })
})

it.each([
  ['schedules create --cron x', '--not-before 1h'],
  ['enqueue mails', '--priority 5'],
])('the command has no flag that the API always refuses: %s %s', async (command, flag) => {
  const { code, err } = await queue(`${command} http://a.test ${flag}`)
  expect([code, err]).toEqual([2, expect.stringContaining('unknown option')])
})
