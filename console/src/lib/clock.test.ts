import { afterEach, expect, it, vi } from 'vitest'
import { clockMs, noteServerTime, serverMs, watchClock } from './clock.js'

afterEach(() => {
  noteServerTime(new Date().toUTCString(), Date.now())
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

it('the clock ticks while it has readers, and has no timer afterwards', () => {
  vi.useFakeTimers({ now: 1_000_000 })
  let ticks = 0
  const end = watchClock(() => ticks++)
  vi.advanceTimersByTime(10_000)
  expect([ticks, clockMs()]).toEqual([2, 1_010_000])
  end()
  expect(vi.getTimerCount()).toBe(0)
})

const DAY_MS = 86_400_000

it.each([
  ['ahead', -DAY_MS],
  ['behind', DAY_MS],
])('the clock follows the server where the clock of this computer is a day %s', (_, behindMs) => {
  vi.useFakeTimers({ now: 10 * DAY_MS })
  noteServerTime(new Date(Date.now() + behindMs).toUTCString(), Date.now())
  const end = watchClock(() => undefined)
  expect([clockMs(), serverMs(), serverMs(5)]).toEqual([10 * DAY_MS + behindMs, 10 * DAY_MS + behindMs, 5 + behindMs])
  end()
})

it('a slow answer, or one without a time, does not change the clock', () => {
  vi.useFakeTimers({ now: 10 * DAY_MS })
  const askedMs = Date.now() - 90_000
  noteServerTime(new Date(askedMs).toUTCString(), askedMs)
  noteServerTime(null, askedMs)
  expect(serverMs()).toBe(10 * DAY_MS)
})
