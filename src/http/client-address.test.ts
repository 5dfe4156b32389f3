import Type from 'typebox'
import { expect, it } from 'vitest'
import { endpoint } from '../contract/endpoint.js'
import { HttpServer, type HttpSettings, route } from './index.js'

const whoAmI = endpoint({
  id: 'whoAmI',
  service: 'queue',
  topic: 'Server',
  path: '/v2/me',
  summary: 'Who am I',
  description: 'Where the request came from.',
  errors: [],
  method: 'GET',
  auth: 'basic',
  access: 'read',
  body: { kind: 'none' },
  success: { status: 200, description: 'the address', body: Type.Any() },
})

const settings: HttpSettings = {
  service: 'queue',
  host: '127.0.0.1',
  port: 0,
  bodyLimitBytes: 1_000,
  authenticator: {
    basic: (_header, ip) => ({
      accountId: 'acc',
      email: 'a@b.c',
      accountType: 'paid',
      source: 'API_KEY - first',
      access: 'read',
      ip,
    }),
    bearer: () => undefined,
  },
  routes: [route(whoAmI, async ({ ip, caller }) => ({ ip, callerIp: caller.ip }))],
  version: '1.2.3',
  publicUrl: 'http://localhost:8702',
  onInternalError: () => {},
}

async function addressSeen(trustedProxies: readonly string[], forwarded: string): Promise<unknown> {
  const server = new HttpServer({ ...settings, trustedProxies })
  await server.start()
  try {
    const headers = { authorization: 'Basic any', 'x-forwarded-for': forwarded }
    return await (await fetch(`http://127.0.0.1:${server.port}/v2/me`, { headers })).json()
  } finally {
    await server.stop()
  }
}

const of = (ip: string) => ({ ip, callerIp: ip })

it('the server uses the client address given by a trusted proxy', async () => {
  expect(await addressSeen(['127.0.0.1', '10.0.0.0/8'], '198.51.100.9, 203.0.113.7, 10.1.2.3')).toEqual(
    of('203.0.113.7'),
  )
})

it('the server ignores the header of untrusted peers, and malformed addresses', async () => {
  expect(await addressSeen([], '203.0.113.7')).toEqual(of('127.0.0.1'))
  expect(await addressSeen(['10.0.0.1'], '203.0.113.7')).toEqual(of('127.0.0.1'))
  expect(await addressSeen(['127.0.0.1'], 'nonsense')).toEqual(of('127.0.0.1'))
})
