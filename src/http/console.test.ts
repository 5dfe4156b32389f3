import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import Type from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { CONSOLE_HEADER } from '../contract/console/session.js'
import { endpoint } from '../contract/endpoint.js'
import type { Caller } from './caller.js'
import { cookieNameOf, HttpServer, type HttpSettings, route, Site } from './index.js'

/** Features of the listener with the console: pages, cookie, and operations of another service. */

const caller: Caller = {
  accountId: 'acc',
  email: 'a@b.c',
  accountType: 'paid',
  source: 'API_KEY - first',
  ip: '127.0.0.1',
  access: 'write',
}

const declare = (id: string, method: 'GET' | 'POST', service: 'management' | 'queue', auth: 'basic' | 'bearer') =>
  endpoint({
    id,
    method,
    service,
    topic: 'Server',
    summary: id,
    description: id,
    errors: [],
    ...(auth === 'bearer' ? { auth, scopes: [] } : { auth }),
    path: `/v2/${id}`,
    access: method === 'GET' ? 'read' : 'write',
    body: method === 'GET' ? { kind: 'none' } : { kind: 'raw' },
    success: { status: 200, description: 'who', body: Type.Any() },
  })

const answer = async ({ caller }: { caller: Caller }) => ({ email: caller.email, access: caller.access })
const own = [declare('read', 'GET', 'management', 'basic'), declare('write', 'POST', 'management', 'basic')]
const guests = [declare('messages', 'GET', 'queue', 'bearer'), declare('publish', 'POST', 'queue', 'bearer')]

const COOKIE = cookieNameOf('0b6f9c1e-7d41-4a57-9a53-0d5a8f3f0a11')
const PAGE = '<!doctype html><title>console</title>'
const SCRIPT = 'console.log("it runs")'.repeat(50)
/** More than the system takes for a client that does not read. */
const LARGE_SCRIPT = SCRIPT.repeat(16_000)

function site(): Site | undefined {
  const folder = tempDir()
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), PAGE)
  writeFileSync(join(folder, 'assets', 'app-1a2b.js'), SCRIPT)
  writeFileSync(join(folder, 'assets', 'app-1a2b.js.br'), brotliCompressSync(SCRIPT))
  writeFileSync(join(folder, 'assets', 'large-3c4d.js'), LARGE_SCRIPT)
  writeFileSync(join(folder, 'assets', 'large-3c4d.js.br'), brotliCompressSync(LARGE_SCRIPT))
  return Site.read({ folder, connectTo: ['http://rest.example'] })
}

const settings: HttpSettings = {
  service: 'management',
  host: '127.0.0.1',
  port: 0,
  version: '1.2.3',
  publicUrl: 'http://localhost:8700',
  bodyLimitBytes: 100,
  routes: own.map((declared) => route(declared, answer)),
  guests: { routes: guests.map((declared) => route(declared, answer)), bodyLimitBytes: 1_000 },
  authenticator: { basic: () => undefined, bearer: () => undefined },
  sessions: {
    cookieName: COOKIE,
    caller: async (secret) =>
      secret === 'good' ? caller : secret === 'reader' ? { ...caller, access: 'read' } : undefined,
  },
  onInternalError: () => undefined,
}
let server: HttpServer
let base = ''
beforeAll(async () => {
  server = new HttpServer({ ...settings, site: site() })
  await server.start()
  base = `http://127.0.0.1:${server.port}`
})
afterAll(() => server.stop())

const SIGNED_IN = { cookie: `other=1; homeport_session_of_another=reader; ${COOKIE}=good` }
const FROM_CONSOLE = { ...SIGNED_IN, [CONSOLE_HEADER]: '1' }

const get = (path: string, headers: Record<string, string> = {}) => fetch(base + path, { headers })
const post = (path: string, headers: Record<string, string>, body = '') =>
  fetch(base + path, { method: 'POST', headers, body })

describe('the cookie of the console', () => {
  it.each(['/v2/read', '/v2/messages'])('is accepted as credentials at %s', async (path) => {
    expect(await (await get(path, SIGNED_IN)).json()).toEqual({ email: 'a@b.c', access: 'write' })
  })

  it.each(['/v2/write', '/v2/publish'])(
    'cannot write at %s without the header that only the console sends',
    async (path) => {
      const refused = await post(path, SIGNED_IN)
      expect(refused.status).toBe(403)
      expect(await refused.text()).toContain('X-Homeport-Console')
      expect((await post(path, FROM_CONSOLE)).status).toBe(200)
    },
  )

  it('cannot write if its API key is read-only', async () => {
    const reader = { ...FROM_CONSOLE, cookie: `${COOKIE}=reader` }
    expect((await get('/v2/read', reader)).status).toBe(200)
    expect((await post('/v2/write', reader)).status).toBe(403)
  })

  it('is ignored when there is an Authorization header, and refused when it is unknown', async () => {
    expect((await get('/v2/read', { ...SIGNED_IN, authorization: 'Basic wrong' })).status).toBe(401)
    expect((await get('/v2/read', { cookie: `${COOKIE}=stale` })).status).toBe(401)
    expect((await get('/v2/read', { cookie: `${COOKIE}=` })).status).toBe(401)
  })

  it('is ignored by a listener without sessions', async () => {
    const { sessions, ...without } = settings
    const plain = new HttpServer(without)
    await plain.start()
    const response = await fetch(`http://127.0.0.1:${plain.port}/v2/read`, { headers: SIGNED_IN })
    await plain.stop()
    expect(response.status).toBe(401)
  })
})

describe('the operations of a guest service', () => {
  it('have their own body limit and are not documented', async () => {
    expect((await post('/v2/publish', FROM_CONSOLE, 'x'.repeat(900))).status).toBe(200)
    const large = await post('/v2/publish', FROM_CONSOLE, 'x'.repeat(1_100))
    expect([large.status, await large.text()]).toEqual([413, expect.stringContaining('1000 bytes')])
    expect((await post('/v2/write', FROM_CONSOLE, 'x'.repeat(900))).status).toBe(413)
    const described = JSON.stringify(await (await get('/openapi.json')).json())
    expect(described).toContain('/v2/read')
    expect(described).not.toContain('/v2/publish')
  })
})

describe('the pages of the console', () => {
  const asBrowser = { accept: 'text/html,application/xhtml+xml' }

  it.each(['/', '/databases/some-id', '/sign-in?next=/'])(
    'are at %s for browsers, with a strict content security policy',
    async (path) => {
      const response = await get(path, asBrowser)
      expect([response.status, await response.text()]).toEqual([200, PAGE])
      const policy = response.headers.get('content-security-policy')
      expect(policy).toContain("default-src 'self'; script-src 'self';")
      expect(policy).toContain("connect-src 'self' http://rest.example;")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(response.headers.get('cache-control')).toBe('no-cache')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('referrer-policy')).toBe('no-referrer')
    },
  )

  it('include a root page for every client', async () => {
    const response = await fetch(`${base}/`, { headers: { accept: '*/*' } })
    expect([response.status, await response.text()]).toEqual([200, PAGE])
  })

  it('have assets that browsers may cache forever, compressed on request', async () => {
    const response = await get('/assets/app-1a2b.js')
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(await response.text()).toBe(SCRIPT)
    expect((await get('/assets/app-1a2b.js.br')).status).toBe(404)
  })

  it.each([
    ['br, gzip', 'br'],
    ['gzip', 'gzip'],
    ['identity', null],
  ])('for clients that accept %s have the encoding %s', async (accepted, encoding) => {
    const response = await get('/assets/app-1a2b.js', { 'accept-encoding': accepted })
    expect([response.headers.get('content-encoding'), await response.text()]).toEqual([encoding, SCRIPT])
  })

  it('are unpacked once for all clients that are sent them at the same time', async () => {
    const before = process.memoryUsage().arrayBuffers
    const sockets = Array.from({ length: 20 }, () => connect(server.port, '127.0.0.1').pause())
    for (const socket of sockets) {
      socket.on('error', () => undefined)
      socket.write('GET /assets/large-3c4d.js HTTP/1.1\r\nHost: x\r\n\r\n')
      await once(socket, 'readable')
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(3 * LARGE_SCRIPT.length)
    for (const socket of sockets) socket.destroy()
  })

  it('are not sent again if the client has them', async () => {
    const etag = (await get('/', asBrowser)).headers.get('etag') ?? ''
    expect((await get('/', { ...asBrowser, 'if-none-match': etag })).status).toBe(304)
  })

  it.each([
    ['/v2/unknown', asBrowser],
    ['/assets/gone-9f9f.js', asBrowser],
    ['/somewhere', { accept: 'application/json' }],
  ])('do not replace an error at %s', async (path, headers) => {
    const response = await get(path, headers)
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toContain('application/json')
  })

  it('accept no writes', async () => {
    expect((await post('/databases', { ...FROM_CONSOLE, ...asBrowser })).status).toBe(404)
  })
})
