import { Readable } from 'node:stream'
import { Type } from 'typebox'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { endpoint } from '../contract/endpoint.js'
import { type AnsweredRequest, reply, route } from './index.js'
import { listener } from './testing/listener.js'

const get = (path: string) =>
  endpoint({
    id: path,
    service: 'queue',
    topic: 'Server',
    method: 'GET',
    path,
    auth: 'none',
    access: 'read',
    summary: path,
    description: path,
    errors: [],
    body: { kind: 'none' },
    success: { status: 200, description: 'made', body: Type.Any() },
  })

const internal: unknown[] = []
const answered: AnsweredRequest[] = []
const server = listener({
  onInternalError: (_error, _reference, requestId) => internal.push(requestId),
  onAnswered: (request) => answered.push(request),
  routes: [
    route(get('/json'), async () => ({})),
    route(get('/list'), async () => Array.from({ length: 2_000 }, () => 1)),
    route(get('/bytes'), async () => reply(200, Buffer.from('bytes'))),
    route(get('/stream'), async () => reply(200, Readable.from(['a', 'b']))),
    route(get('/defect/{secret}'), () => Promise.reject(new Error('a defect'))),
  ],
})

beforeAll(() => server.start())
afterAll(() => server.stop())

async function idOf(path: string, given?: string): Promise<string | null> {
  const headers = new Headers(given === undefined ? {} : { 'x-request-id': given })
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers })
  await answer.arrayBuffer()
  return answer.headers.get('x-request-id')
}

const PATHS = [
  '/json',
  '/list',
  '/bytes',
  '/stream',
  '/defect/hunter2',
  '/unknown',
  '/health',
  '/docs',
  '/openapi.json',
]

it('every response has a request id: that of the client, or a new one', async () => {
  for (const path of PATHS) {
    expect([path, await idOf(path, 'mine-1')]).toEqual([path, 'mine-1'])
    expect(await idOf(path)).toMatch(/^[0-9a-f-]{36}$/)
  }
  expect(new Set(await Promise.all(PATHS.map((path) => idOf(path)))).size).toBe(PATHS.length)
})

it('a request id is not repeated if it is long, or could mean something in a log', async () => {
  expect(await idOf('/json', 'x'.repeat(128))).toBe('x'.repeat(128))
  for (const bad of ['x'.repeat(129), 'two words', '"}', 'ä', '%0d%0a']) expect(await idOf('/json', bad)).not.toBe(bad)
})

it('a request id is reported with an internal error and with each response, without the values in the path', async () => {
  internal.length = answered.length = 0
  await idOf('/defect/hunter2?token=hunter2', 'mine-2')
  expect(internal).toEqual(['mine-2'])
  await expect.poll(() => answered.length).toBe(1)
  expect(answered).toMatchObject([{ requestId: 'mine-2', method: 'GET', path: '/defect/:secret', status: 500 }])
})
