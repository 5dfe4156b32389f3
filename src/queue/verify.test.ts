import { Receiver } from '@upstash/qstash'
import { describe, expect, it } from 'vitest'
import { signDelivery } from './engine/signature.js'
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
  ])('names the %s', (part, signature) => {
    expect(explain(signature, 'x')).toMatchObject({ valid: false, problems: [{ part }] })
  })

  it('names a foreign or changed signature', async () => {
    const foreign = await sign('x', 'sig_other')
    const changed = `${(await sign('x')).slice(0, -4)}AAAA`
    for (const signature of [foreign, changed]) {
      expect(explain(signature, 'x')).toMatchObject({ valid: false, problems: [{ part: 'key' }] })
    }
  })

  it('names every claim that does not hold, with both values', async () => {
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
  ])('guesses what turned %j into %j', async (signed, seen, cause) => {
    expect(explain(await sign(signed), seen).problems).toMatchObject([
      { part: 'body', problem: expect.stringMatching(cause) },
    ])
  })
})
