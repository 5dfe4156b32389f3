import { createHash } from 'node:crypto'
import { jwtVerify } from 'jose'
import { expect, it } from 'vitest'
import { longBodyHash, signDelivery } from './delivery-headers.js'

const NOW = 1_700_000_000_000
const KEY = 'sig_test'

it('a delivery has a signature that a JWT library verifies, with all claims that receivers check', async () => {
  const body = new TextEncoder().encode('{"a":1}')
  const token = signDelivery({ key: KEY, url: 'https://x.test/hook?a=b', body, now: NOW })
  const { payload, protectedHeader } = await jwtVerify(token, new TextEncoder().encode(KEY), {
    issuer: 'Upstash',
    currentDate: new Date(NOW),
  })
  expect(protectedHeader).toEqual({ alg: 'HS256', typ: 'JWT' })
  expect(payload).toEqual({
    iss: 'Upstash',
    sub: 'https://x.test/hook?a=b',
    exp: NOW / 1_000 + 300,
    nbf: 1,
    iat: NOW / 1_000,
    jti: expect.stringMatching(/^jwt_/),
    body: `${createHash('sha256').update(body).digest('base64url')}=`,
  })
})

it('a long body is hashed in slices, and a short one at once', async () => {
  const body = new Uint8Array(5 * 2 ** 20 + 1).fill(7)
  expect(await longBodyHash(body)).toBe(`${createHash('sha256').update(body).digest('base64url')}=`)
  expect([longBodyHash(undefined), longBodyHash(body.subarray(0, 1_000))]).toEqual([undefined, undefined])
})

it('every delivery has its own signature', () => {
  const signing = { key: KEY, url: 'https://x.test/', body: undefined, now: NOW }
  expect(signDelivery(signing)).not.toBe(signDelivery(signing))
})
