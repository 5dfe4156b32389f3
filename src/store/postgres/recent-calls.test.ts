import { expect, it } from 'vitest'
import { RecentCalls } from './recent-calls.js'

it('the counter says whether many calls were made within the last moment', () => {
  const calls = new RecentCalls()
  expect(calls.areMany(0)).toBe(false)
  for (let call = 0; call < 20; call++) calls.note(100 + call)
  expect(calls.areMany(130)).toBe(false)
  calls.note(140)
  expect(calls.areMany(150)).toBe(true)
  expect(calls.areMany(900)).toBe(true)
  expect(calls.areMany(1_500)).toBe(false)
})
