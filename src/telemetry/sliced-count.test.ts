import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { SlicedCount } from './sliced-count.js'

it('a count is repeated after 15 seconds at the earliest, and later when counting took long', async () => {
  const clock = new ManualClock(0)
  let walks = 0
  let tookMs = 0
  const count = new SlicedCount<number>({
    clock,
    start: 0,
    slice: async (after) => {
      if (after === 0) walks++
      clock.advance(tookMs)
      return after === 2 ? { count: 1 } : { count: 10, next: after + 1 }
    },
  })
  expect([await count.read(), await count.read(), walks]).toEqual([21, 21, 1])
  clock.advance(15_000)
  tookMs = 1_000
  await count.read()
  expect(walks).toBe(2)
  clock.advance(59_999)
  await count.read()
  expect(walks).toBe(2)
  clock.advance(1)
  tookMs = 0
  expect([await count.read(), walks]).toEqual([21, 3])
})

it('the previous count is returned while a long one runs, and counting continues after the store has failed', async () => {
  const clock = new ManualClock(0)
  let work: () => Promise<{ count: number }> = async () => ({ count: 3 })
  const count = new SlicedCount<number>({ clock, start: 0, slice: () => work() })
  expect(await count.read()).toBe(3)
  clock.advance(15_000)
  work = () => new Promise(() => undefined)
  const reading = count.read()
  clock.advance(250)
  expect(await reading).toBe(3)

  work = () => Promise.reject(new Error('the store is away'))
  const failing = new SlicedCount<number>({ clock, start: 0, slice: () => work() })
  expect(await failing.read()).toBeUndefined()
  clock.advance(15_000)
  work = async () => ({ count: 4 })
  expect(await failing.read()).toBe(4)
})
