import { expect, it } from 'vitest'
import { systemClock } from '../base/index.js'
import { AdjustableClock } from './adjustable-clock.js'

const HOUR_MS = 3_600_000

it('fires the timers on the way in the order of their times, and keeps the others', () => {
  const clock = new AdjustableClock()
  const fired: string[] = []
  clock.after(2 * HOUR_MS, () => fired.push('second'))
  clock.after(HOUR_MS, () => {
    fired.push('first')
    cancelled.cancel()
    clock.after(HOUR_MS, () => fired.push('set on the way'))
  })
  const cancelled = clock.after(1.5 * HOUR_MS, () => fired.push('cancelled'))
  // The clock runs while timers are set, so their times lie after this moment less what has passed.
  const start = clock.now()
  clock.advanceTo(start + 2 * HOUR_MS)
  expect(fired).toEqual(['first', 'second'])
  expect(clock.now()).toBeGreaterThanOrEqual(start + 2 * HOUR_MS)
  clock.advanceTo(start + HOUR_MS)
  expect(clock.now()).toBeGreaterThanOrEqual(start + 2 * HOUR_MS)
  clock.advanceTo(clock.now() + HOUR_MS)
  expect(fired).toEqual(['first', 'second', 'set on the way'])
})

it('runs by itself, too', async () => {
  const clock = new AdjustableClock()
  clock.advanceTo(clock.now() + HOUR_MS)
  const before = clock.now()
  await new Promise<void>((resolve) => clock.after(5, resolve))
  expect(clock.now()).toBeGreaterThan(before)
  expect(clock.now() - systemClock.now()).toBeGreaterThanOrEqual(HOUR_MS - 1)
})
