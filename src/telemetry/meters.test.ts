import { expect, it } from 'vitest'
import { EndpointMeters } from './meters.js'

it('counts the first hosts by themselves and all others together, however many there are', () => {
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

it('counts nothing when it may not', () => {
  expect(new EndpointMeters(0).of('a.test')).toBeUndefined()
})
