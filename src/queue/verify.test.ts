import { createHash, createHmac } from 'node:crypto'
import { Receiver } from '@upstash/qstash'
import { describe, expect, it } from 'vitest'
import { signDelivery } from './dispatcher/delivery-headers.js'
import { explainSignature } from './verify.js'

const NOW = Date.now()
const KEYS = { current: 'sig_current', next: 'sig_next' }
const URL = 'https://e.test/hook?x=1'
const bytes = (text: string) => new TextEncoder().encode(text)
const sign = (body: string, key = KEYS.current, now = NOW) => signDelivery({ key, url: URL, body: bytes(body), now })
const explain = (signature: string | undefined, body: string, url: string | undefined = URL, now = NOW) =>
  explainSignature({ signature, body: bytes(body), url }, KEYS, now)

describe('explaining a signature', () => {
  it('accepts what a receiver accepts, with either key', async () => {
    expect(explain(await sign('{"a":1}'), '{"a":1}')).toEqual({ valid: true, signedWith: 'current', problems: [] })
    expect(explain(await sign('', KEYS.next), '')).toMatchObject({ valid: true, signedWith: 'next' })
    const receiver = new Receiver({ currentSigningKey: KEYS.current, nextSigningKey: KEYS.next })
    expect(await receiver.verify({ signature: await sign('{"a":1}'), body: '{"a":1}', url: URL })).toBe(true)
  })

  it.each([
    ['header', undefined],
    ['form', 'nonsense'],
    ['form', 'a.b.c'],
  ])('reports a problem of the %s', (part, signature) => {
    expect(explain(signature, 'x')).toMatchObject({ valid: false, problems: [{ part }] })
  })

  it('reports a signature by another key or a changed one', async () => {
    const foreign = await sign('x', 'sig_other')
    const changed = `${(await sign('x')).slice(0, -4)}AAAA`
    for (const signature of [foreign, changed]) {
      expect(explain(signature, 'x')).toMatchObject({ valid: false, problems: [{ part: 'key' }] })
    }
  })

  const signed = (head: object, changes: object) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const body = createHash('sha256').update('x').digest('base64url')
    const at = Math.floor(NOW / 1_000)
    const claims = { iss: 'Upstash', sub: URL, exp: at + 300, nbf: at, body, ...changes }
    const text = `${part(head)}.${part(claims)}`
    return `${text}.${createHmac('sha256', KEYS.current).update(text).digest('base64url')}`
  }
  const HEAD = { alg: 'HS256', typ: 'JWT' }

  it('refuses another algorithm, even with the right key', () => {
    expect(explain(signed(HEAD, {}), 'x')).toMatchObject({ valid: true })
    for (const alg of ['none', 'HS512', 'hs256', undefined]) {
      const found = { part: 'alg', expected: 'HS256', found: String(alg) }
      expect(explain(signed({ typ: 'JWT', alg }, {}), 'x')).toMatchObject({ valid: false, problems: [found] })
    }
  })

  it.each([
    ['exp', { exp: '9999999999' }],
    ['exp', { exp: null }],
    ['exp', { exp: [9_999_999_999] }],
    ['exp', { exp: undefined }],
    ['nbf', { nbf: '0' }],
    ['nbf', { nbf: undefined }],
  ])('refuses a claim %s that is not a number: %j', (part, changes) => {
    const problems = [{ part, expected: 'a number' }]
    expect(explain(signed(HEAD, changes), 'x')).toMatchObject({ valid: false, problems })
  })

  it('does not parse a header that is too long for a signature', () => {
    expect(explain('.'.repeat(2 ** 24), 'x')).toMatchObject({ valid: false, problems: [{ part: 'form' }] })
  })

  it('reports every wrong claim, with both values', async () => {
    const verdict = explain(await sign('x'), 'y', 'https://other.test/', NOW + 301_000)
    expect(verdict.problems.map((one) => one.part)).toEqual(['sub', 'exp', 'body'])
    expect(verdict.problems[0]).toMatchObject({ expected: 'https://other.test/', found: URL })
  })

  it.each([
    ['{"a":1}', '{ "a": 1 }', /parsed as JSON/],
    ['{\n  "a": 1\n}', '{"a":1}', /parsed as JSON/],
    ['text', 'text\n', /white space/],
    ['text\n', 'text', /line end is missing/],
    ['a\r\nb', 'a\nb', /line ends were changed/],
    ['text', '"text"', /wrapped/],
    ['text', 'dGV4dA==', /base64/],
    ['', '{}', /empty/],
    ['abc', 'xyz', /raw bytes/],
  ])('finds the change from %j to %j', async (signed, seen, cause) => {
    expect(explain(await sign(signed), seen).problems).toMatchObject([
      { part: 'body', problem: expect.stringMatching(cause) },
    ])
  })
})
