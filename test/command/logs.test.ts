import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import {
  atCleanup,
  call,
  childEnv,
  commandHost,
  MAIN_JS,
  placeFlags,
  type RunningHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'

/** The log as an operator reads it: lines of requests, `homeport logs`, and its stream. */

const SECRET = 'hunter2-hunter2'

const start = (place = {}) => startHomeport({ ...place, args: ['--access-log'] })
const parsed = (text: string): Record<string, unknown>[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))

const basic = (login: string) => ({ authorization: `Basic ${Buffer.from(login).toString('base64')}` })

/** Requests to the three listeners, with a secret wherever one may stand. */
async function makeRequests({ apiUrl, restUrl, queueUrl, api, credentials }: RunningHomeport): Promise<string> {
  const create = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
  const { database_id, rest_token } = (await api('POST', '/v2/redis/database', create)).body as Record<string, string>
  const id = (name: string) => ({ 'x-request-id': name })
  await call(`${apiUrl}/v2/redis/database/${SECRET}`, {
    headers: { ...id('req-api'), ...basic(`${credentials.email}:${credentials.apiKey}`) },
  })
  await call(`${apiUrl}/${SECRET}?token=${SECRET}`, { headers: id('req-unknown') })
  await call(`${queueUrl}/v2/publish/https://example.invalid/${SECRET}?key=${SECRET}`, {
    method: 'POST',
    json: { secret: SECRET },
    headers: { ...id('req-queue'), authorization: `Bearer ${credentials.queueToken}`, 'upstash-delay': '1d' },
  })
  const wrong = { ...id('req-wrong'), authorization: `Bearer ${SECRET}` }
  await call(`${queueUrl}/v2/messages/${SECRET}`, { headers: wrong })
  const headers = { ...id('req-rest'), authorization: `Bearer ${rest_token}` }
  await call(`${restUrl}/set/${SECRET}/${SECRET}`, { headers })
  await call(`${restUrl}/pipeline/?_token=${rest_token}`, { method: 'POST', json: [['PING']] })
  return String(database_id)
}

let homeport: RunningHomeport
const command = commandHost()
beforeAll(async () => {
  homeport = await start()
})

it('the log has a line for each request on demand, with the id of the response and without secrets', async () => {
  const databaseId = await makeRequests(homeport)
  const lines = () => parsed(homeport.logs()).filter(({ event }) => event === 'request_access')
  await waitFor(() => lines().some(({ path }) => path === '/pipeline'), { what: 'the lines' })
  const byId = new Map(lines().map((line) => [line.requestId, line]))
  const { accountId } = byId.get('req-api') ?? {}
  expect(byId.get('req-api')).toMatchObject({
    level: 'info',
    service: 'management',
    method: 'GET',
    path: '/v2/redis/database/:id',
    status: 404,
    durationMs: expect.any(Number),
    bytes: expect.any(Number),
    accountId: expect.any(String),
  })
  expect(byId.get('req-unknown')).toMatchObject({ path: '(other)', status: 404 })
  expect(byId.get('req-queue')).toMatchObject({ service: 'queue', method: 'POST', path: '/v2/publish/-', accountId })
  expect(byId.get('req-wrong')).toMatchObject({ status: 401 })
  expect(byId.get('req-wrong')).not.toHaveProperty('accountId')
  expect(byId.get('req-rest')).toMatchObject({ service: 'rest', path: '/{command}', status: 200, databaseId })
  expect(lines().find(({ path }) => path === '/pipeline')).toMatchObject({
    requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    status: 200,
    databaseId,
  })
  expect(homeport.logs()).not.toContain(SECRET)
  const { apiKey, queueToken, currentSigningKey } = homeport.credentials
  for (const secret of [apiKey, queueToken, currentSigningKey])
    expect(JSON.stringify(parsed(homeport.logs()))).not.toContain(secret)

  const flags = placeFlags(homeport.place)
  const one = await command(['logs', '--request', 'req-rest', '--json', ...flags])
  expect([one.code, parsed(one.stdout)]).toEqual([0, [byId.get('req-rest')]])
  const engines = await command(['logs', '--event', 'engine_started', '--count', '1', ...flags])
  expect(engines.stdout).toMatch(/^\S+ INFO {2}engine started databaseId=\S+ region=us-east-1 pid=\d+\n$/)
  expect((await command(['logs', '--level', 'error', ...flags])).stdout).toBe('')
  expect(await command(['logs', '--event', 'nonsense', ...flags])).toMatchObject({ code: 2 })
})

it('the log names the request in the lines that its work causes', async () => {
  const { apiUrl, place, credentials } = homeport
  const taken = createServer()
  atCleanup(() => void taken.close())
  // The database of the first test has the first port.
  await new Promise<void>((resolve) =>
    taken.listen(Number(place.redisPorts.split('-', 1)[0]) + 1, '127.0.0.1', resolve),
  )
  const headers = { ...basic(`${credentials.email}:${credentials.apiKey}`), 'x-request-id': 'req-port' }
  const json = { database_name: 'next', platform: 'aws', primary_region: 'us-east-1' }
  expect((await call(`${apiUrl}/v2/redis/database`, { method: 'POST', headers, json })).status).toBe(200)
  const found = parsed(homeport.logs()).find(({ event }) => event === 'database_port_taken')
  expect(found).toMatchObject({ level: 'warn', requestId: 'req-port' })
})

it('the log is followed across a restart without losing a line, by the operator only', async () => {
  const first = homeport
  const other = (await first.api('POST', '/v2/accounts', { email: 'ada@example.com' })).body as Record<string, string>
  const asTenant = basic(`${other.email}:${other.api_key}`)
  const refused = await call(`${first.apiUrl}/v2/server/logs`, { headers: asTenant })
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([403, expect.stringContaining('the operator')])
  const scraped = await call(`${first.apiUrl}/v2/server/logs`)
  expect(scraped.status).toBe(401)

  const args = [MAIN_JS, 'logs', '--follow', '--count', '0', '--json', ...placeFlags(first.place)]
  const follower = spawn(process.execPath, args, { env: childEnv(), stdio: ['ignore', 'pipe', 'inherit'] })
  atCleanup(() => void follower.kill('SIGKILL'))
  const ended = once(follower, 'close')
  let text = ''
  follower.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  const sees = (requestId: string) => parsed(text).filter((line) => line.requestId === requestId).length
  const ask = ({ apiUrl }: RunningHomeport, id: string) =>
    call(`${apiUrl}/v2/server/logs`, { headers: { ...asTenant, 'x-request-id': id } })
  // The follower may not have connected yet.
  let tries = 0
  await waitFor(async () => (await ask(first, `try-${++tries}`)) && text !== '', { what: 'the follower to connect' })
  await ask(first, 'before')
  await waitFor(() => sees('before') === 1, { what: 'a line before the restart' })
  expect(await first.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  const second = await start(first.place)
  await ask(second, 'after')
  await waitFor(() => sees('after') === 1, { what: 'a line after the restart' })
  expect([sees('before'), sees('after')]).toEqual([1, 1])
  follower.kill('SIGINT')
  await ended
})
