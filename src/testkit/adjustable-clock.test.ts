import { expect, it } from 'vitest'
import { systemClock } from '../base/index.js'
import { AdjustableClock } from './adjustable-clock.js'

const HOUR_MS = 3_600_000

it('an advanced clock fires the timers that fall due in their order, and keeps the others', () => {
  const clock = new AdjustableClock()
  const fired: string[] = []
  clock.after(2 * HOUR_MS, () => fired.push('second'))
  clock.after(HOUR_MS, () => {
    fired.push('first')
    cancelled.cancel()
    clock.after(HOUR_MS, () => fired.push('set on the way'))
  })
  const cancelled = clock.after(1.5 * HOUR_MS, () => fired.push('cancelled'))
  // The clock runs while the timers are set, so all of them are due at most their delay after this moment.
  const start = clock.now()
  clock.advanceTo(start + 2 * HOUR_MS)
  expect(fired).toEqual(['first', 'second'])
  expect(clock.now()).toBeGreaterThanOrEqual(start + 2 * HOUR_MS)
  clock.advanceTo(start + HOUR_MS)
  expect(clock.now()).toBeGreaterThanOrEqual(start + 2 * HOUR_MS)
  clock.advanceTo(clock.now() + HOUR_MS)
  expect(fired).toEqual(['first', 'second', 'set on the way'])
})

it('an advanced clock keeps running', async () => {
  const clock = new AdjustableClock()
  clock.advanceTo(clock.now() + HOUR_MS)
  const before = clock.now()
  await new Promise<void>((resolve) => clock.after(5, resolve))
  expect(clock.now()).toBeGreaterThan(before)
  expect(clock.now() - systemClock.now()).toBeGreaterThanOrEqual(HOUR_MS - 1)
})
