import { expect, it } from 'vitest'
import { ipMatcher, isIpRange } from './ip-ranges.js'

it.each([
  ['203.0.113.7', true],
  ['10.0.0.0/8', true],
  ['0.0.0.0/0', true],
  ['2001:db8::/32', true],
  ['::1', true],
  ['10.0.0.0/33', false],
  ['::/129', false],
  ['10.0.0', false],
  ['10.0.0.0/', false],
  ['10.0.0.0/-1', false],
  ['home', false],
  ['', false],
])('takes %s for an address or network: %s', (text, expected) => {
  expect(isIpRange(text)).toBe(expected)
})

it('lets those in that a range holds, also when an IPv4 address came over an IPv6 socket', () => {
  const matches = ipMatcher(['10.0.0.0/8', '203.0.113.7', '2001:db8::/32'])
  for (const inside of ['10.1.2.3', '203.0.113.7', '::ffff:10.1.2.3', '2001:db8::7']) expect(matches(inside)).toBe(true)
  for (const outside of ['11.0.0.1', '203.0.113.8', '::1', '2001:db9::1', '', 'x']) expect(matches(outside)).toBe(false)
})

it('lets everybody in without a range, and nobody with one that it cannot read', () => {
  expect(ipMatcher([])('192.0.2.1')).toBe(true)
  expect(ipMatcher(['nonsense'])('192.0.2.1')).toBe(false)
})
