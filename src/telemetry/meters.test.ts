import { expect, it } from 'vitest'
import { EndpointMeters } from './meters.js'

it('the first hosts are counted one by one, and all others together, however many they are', () => {
  const meters = new EndpointMeters(2)
  for (const host of ['a.test', 'other', 'a.test', ...Array.from({ length: 10_000 }, (_, i) => `${i}.test`)]) {
    const meter = meters.of(host)
    if (meter) meter.delivered++
  }
  expect([...meters.all()].map(([host, { delivered }]) => [host, delivered])).toEqual([
    ['a.test', 2],
    ['other', 10_001],
  ])
})

it('no host is counted when the limit is 0', () => {
  expect(new EndpointMeters(0).of('a.test')).toBeUndefined()
})
