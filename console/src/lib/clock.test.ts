import { afterEach, expect, it, vi } from 'vitest'
import { clockMs, watchClock } from './clock.js'

afterEach(() => {
  vi.useRealTimers()
})

it('the clock is right at once, also after an hour without readers', () => {
  vi.useFakeTimers({ now: 1_000_000 })
  watchClock(() => undefined)()
  vi.setSystemTime(4_600_000)
  const end = watchClock(() => undefined)
  expect(clockMs()).toBe(4_600_000)
  end()
})

it('ticks while it has readers, and has no timer afterwards', () => {
  vi.useFakeTimers({ now: 1_000_000 })
  let ticks = 0
  const end = watchClock(() => ticks++)
  vi.advanceTimersByTime(10_000)
  expect([ticks, clockMs()]).toEqual([2, 1_010_000])
  end()
  expect(vi.getTimerCount()).toBe(0)
})
