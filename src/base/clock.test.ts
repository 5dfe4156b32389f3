import { expect, it } from 'vitest'
import { AgeWatch } from './clock.js'
import { ManualClock } from './testing/manual-clock.js'

const DAY_MS = 86_400_000

function startWatch() {
  const clock = new ManualClock()
  const distrusted: number[] = []
  const ages = new AgeWatch(clock, (byMs) => void distrusted.push(byMs))
  ages.start()
  return { clock, distrusted, ages }
}

it('after a jump ahead of a day, nothing is deleted by age for a day, even before the jump is reported', () => {
  const { clock, distrusted, ages } = startWatch()
  expect(ages.mayDelete).toBe(true)
  clock.jump(2 * DAY_MS)
  expect([ages.mayDelete, distrusted]).toEqual([false, []])
  clock.advance(5_000)
  expect([ages.mayDelete, distrusted]).toEqual([false, [2 * DAY_MS]])
  clock.advance(DAY_MS - 1)
  expect(ages.mayDelete).toBe(false)
  clock.advance(1)
  expect(ages.mayDelete).toBe(true)
})

it('deletions by age go on when the clock is set back, and after a small jump', () => {
  const { clock, distrusted, ages } = startWatch()
  clock.jump(2 * DAY_MS)
  clock.advance(5_000)
  clock.jump(-2 * DAY_MS)
  clock.advance(5_000)
  expect(ages.mayDelete).toBe(true)
  clock.jump(DAY_MS / 2)
  clock.advance(5_000)
  expect([ages.mayDelete, distrusted.length]).toEqual([true, 1])
})
