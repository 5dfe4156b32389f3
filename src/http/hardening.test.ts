import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import Type from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mainThreadMs, unitMs } from '../../test/support/processor-time.js'
import { waitFor } from '../../test/support/wait-for.js'
import { ConnectionLimiter } from '../base/index.js'
import { endpoint } from '../contract/endpoint.js'
import { HostNames } from './host-names.js'
import type { HttpSettings } from './http-settings.js'
import { route } from './route.js'
import { HttpServer } from './server.js'
import { MALFORMED_REQUESTS } from './testing/malformed-requests.js'

const things = (auth: 'basic' | 'bearer' | 'none', path: string) =>
  endpoint({
    id: path.slice(1),
    service: 'management',
    topic: 'Server',
    method: 'GET',
    path,
    access: 'read',
    ...(auth === 'bearer' ? { auth, scopes: [] } : { auth }),
    summary: '',
    description: '',
    body: { kind: 'none' },
    errors: [],
    success: { status: 200, description: '', body: Type.Unknown() },
  })
/** Functions that answer the waiting requests. */
const patient: ((answer: unknown) => void)[] = []
/** The bodies that have reached a handler. */
const bodies: unknown[] = []
const settings: HttpSettings = {
  service: 'management',
  host: '127.0.0.1',
  port: 0,
  bodyLimitBytes: 1_000,
  version: '1',
  routes: [
    route(things('none', '/open'), async () => ({ a: 1 })),
    route(things('none', '/bytes'), async () => new Uint8Array([1])),
    route(
      endpoint({ ...things('none', '/body'), method: 'POST', access: 'write', body: { kind: 'raw' } }),
      async ({ body }) => void bodies.push(body),
    ),
    route(things('none', '/list'), async () => Array.from({ length: 2_000 }, () => 1)),
    route(things('none', '/patient'), () => new Promise((resolve) => patient.push(resolve))),
    route(things('basic', '/basic'), async () => 'never'),
    route(things('bearer', '/bearer'), async () => 'never'),
  ],
  authenticator: { basic: () => undefined, bearer: () => undefined },
  hosts: new HostNames(['homeport.example']),
  publicUrl: 'http://homeport.example',
  onInternalError: (error: unknown) => {
    throw error
  },
}
const server = new HttpServer(settings)
beforeAll(() => server.start())
afterAll(() => server.stop())

function ask(path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
    const sending = request({ host: '127.0.0.1', port: server.port, path, headers, agent: false }, async (answer) => {
      let text = ''
      for await (const part of answer) text += part
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text })
    })
    sending.once('error', reject).end()
  })
}

describe('the host name of a request', () => {
  it.each([
    'localhost',
    'LOCALHOST:8700',
    'a.localhost',
    'localhost.:1',
    '127.0.0.1:80',
    '127.8.8.8',
    '[::1]',
    '[::1]:8700',
  ])('may be %s', async (host) => expect((await ask('/open', { host })).status).toBe(200))

  it('may be one that the operator allows', async () => {
    expect((await ask('/open', { host: 'HomePort.example:443' })).status).toBe(200)
  })

  it.each([
    'evil.example',
    'homeport.example.evil.example',
    'localhost.evil.example',
    'xlocalhost',
    '127.0.0.1.evil.example',
    '[evil]',
  ])('may not be %j, whatever is asked for', async (host) => {
    for (const path of ['/open', '/health', '/docs', '/openapi.json', '/nothing', '/basic']) {
      const { status, text } = await ask(path, { host })
      expect([path, status]).toEqual([path, 421])
      expect(JSON.parse(text).error).toContain('allowedHosts')
    }
  })
})

/** Sends bytes (latin1) and resolves to what the server has sent until it closed the connection. */
function send(text: string): Promise<string> {
  const socket = connect(server.port, '127.0.0.1', () => socket.write(text, 'latin1'))
  let all = ''
  socket.on('data', (part) => (all += part)).on('error', () => undefined)
  return once(socket, 'close').then(() => all)
}

describe('a request that two servers could read differently', () => {
  it.each(MALFORMED_REQUESTS)('is refused: %s', async (_what, text) => {
    const calls = bodies.length
    const answers = (await send(text.replace('/', '/body'))).split(/^HTTP\/1\.1 /m).slice(1)
    expect(answers).toHaveLength(1)
    expect(answers[0]).toMatch(/^400 .*[Cc]onnection: close.*{"error":"[^"]+"}$/s)
    expect(bodies).toHaveLength(calls)
  })
})

describe('a response', () => {
  it.each(['/open', '/bytes', '/list', '/nothing', '/basic', '/health', '/openapi.json', '/docs', '/%'])(
    'to %s is not kept, framed or guessed about',
    async (path) => {
      const { headers } = await ask(path)
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
      expect(headers['content-security-policy']).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/)
    },
  )

  it('to malformed HTTP has the same headers', async () => {
    const text = await send('nonsense\r\n\r\n')
    expect(text).toMatch(/^HTTP\/1.1 400 .*nosniff.*no-store/s)
  })
})

it('an error repeats little of a long path, and says how much it leaves out', async () => {
  const { status, text } = await ask(`/begins${'x'.repeat(60_000)}ends`)
  const { error } = JSON.parse(text)
  expect([status, error.length < 5_000]).toEqual([404, true])
  expect(error).toMatch(/GET \/beginsx+ \[56,\d\d\d characters left out\] x+ends\. The page \/docs/)
})

describe('a response to missing credentials', () => {
  it.each([
    ['/basic', {}, 'Basic realm="homeport", charset="UTF-8"'],
    ['/bearer', {}, 'Bearer realm="homeport"'],
    // A browser would show its own login window.
    ['/basic', { 'sec-fetch-mode': 'cors' }, 'xBasic realm="homeport"'],
    ['/basic', { 'sec-fetch-site': 'same-origin' }, 'xBasic realm="homeport"'],
    ['/basic', { cookie: 'homeport_session_1=x' }, 'xBasic realm="homeport"'],
    ['/basic', { accept: 'text/html,*/*' }, 'xBasic realm="homeport"'],
  ])('to %s with %j names the scheme', async (path, headers, challenge) => {
    const answer = await ask(path, headers)
    expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': challenge } })
  })
})

describe('connections of clients that show no credentials', () => {
  it('are closed when there are too many, the oldest first; a client with credentials stays', async () => {
    const caller = { accountId: '', email: '', accountType: 'paid', source: '', access: 'read', ip: '' } as const
    const limited = new HttpServer({
      ...settings,
      authenticator: { basic: () => caller, bearer: () => undefined },
      connectionLimiter: new ConnectionLimiter({ most: 2 }),
    })
    await limited.start()
    const open = (bytes: string) => {
      const socket = connect(limited.port, '127.0.0.1', () => socket.write(bytes))
      return socket.on('error', () => undefined).resume()
    }
    const known = open('GET /basic HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(known, 'data')
    const first = open('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(first, 'data')
    const others = [open('GET /'), open('GET /')]
    await once(first, 'close')
    known.write('GET /basic HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(known, 'data')
    for (const each of [known, ...others]) each.destroy()
    await limited.stop()
  })
})

it('the server begins only a few of the requests that a connection sends at once', async () => {
  const socket = connect(server.port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (more) => (text += more))
  socket.write('GET /patient HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(200))
  for (let begun = 0; begun < 200; begun++) {
    await waitFor(() => patient.length > 0, { what: 'the next request' })
    expect(patient.length).toBeLessThan(50)
    patient.shift()?.({ number: begun })
  }
  await waitFor(() => text.endsWith('{"number":199}'), { what: 'the last answer' })
  socket.destroy()
})

it('the server does little work for a client without credentials and with thousands of query parameters', async () => {
  const target = `/bearer?${'a=%ff&'.repeat(10_000)}qstash_token=wrong`
  const tries: number[] = []
  while (tries.length < 5) {
    const begun = mainThreadMs()
    const { status } = await fetch(`http://127.0.0.1:${server.port}${target}`, {
      headers: { host: 'homeport.example' },
    })
    expect(status).toBe(401)
    tries.push(mainThreadMs() - begun)
  }
  // Decoding all of them takes longer than this.
  expect(Math.min(...tries) / unitMs()).toBeLessThan(1)
})
