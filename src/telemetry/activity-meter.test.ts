import { expect, it } from 'vitest'
import { ACTIVITY_KINDS } from '../contract/console/activity.js'
import { ActivityMeter, BLOCK_MS, MINUTE_MS } from './activity-meter.js'

const T = Math.floor(1_800_000_000_000 / BLOCK_MS) * BLOCK_MS
const PUBLISHED = ACTIVITY_KINDS.indexOf('published')

it('counts by account, minute and kind, and notifies once until the counts are taken', () => {
  let now = T
  let notified = 0
  const meter = new ActivityMeter(() => now)
  meter.onChange(() => notified++)
  meter.add('a', 'published', 0)
  expect(notified).toBe(0)
  meter.add('a', 'published', 3)
  meter.add('b', 'delivered')
  now += 14 * MINUTE_MS
  meter.add('a', 'published')
  expect(notified).toBe(1)
  const [block, ...others] = meter.of('a')
  expect(others).toEqual([])
  expect(block).toMatchObject({ accountId: 'a', start: T })
  expect(block?.counts[PUBLISHED]).toBe(3)
  expect(block?.counts[14 * ACTIVITY_KINDS.length + PUBLISHED]).toBe(1)
  expect(meter.takeChanged().map(({ accountId }) => accountId)).toEqual(['a', 'b'])
  expect(meter.takeChanged()).toEqual([])
  meter.add('b', 'delivered')
  expect(notified).toBe(2)
})

it('the meter returns the same counts again if they could not be stored', () => {
  const meter = new ActivityMeter(() => T)
  meter.add('a', 'published')
  const taken = meter.takeChanged()
  meter.add('b', 'published')
  meter.putBack(taken)
  expect(meter.takeChanged().map(({ accountId }) => accountId)).toEqual(['a', 'b'])
})

it('the meter forgets blocks that are over and stored, and keeps those that are not', () => {
  let now = T
  const meter = new ActivityMeter(() => now)
  meter.add('a', 'published')
  now += 2 * BLOCK_MS
  meter.dropStored()
  expect(meter.of('a')).toHaveLength(1)
  meter.takeChanged()
  meter.dropStored()
  expect(meter.of('a')).toEqual([])
})

it('the meter keeps a bounded number of blocks while none can be stored', () => {
  let now = T
  const meter = new ActivityMeter(() => now)
  for (let block = 0; block < 10; block++, now += BLOCK_MS) meter.add('a', 'published')
  expect(meter.of('a').map(({ start }) => (start - T) / BLOCK_MS)).toEqual([6, 7, 8, 9])
})

it('the meter never overwrites a stored block after the clock was set back', () => {
  let now = T + BLOCK_MS
  const meter = new ActivityMeter(() => now)
  meter.add('a', 'published')
  const [first] = meter.takeChanged()
  now += 3 * BLOCK_MS
  meter.dropStored()
  now = T + BLOCK_MS
  meter.add('a', 'published')
  const [again] = meter.of('a')
  expect(again?.start).toBe(first?.start)
  expect(again?.writer).not.toBe(first?.writer)
})
