import { expect, it } from 'vitest'
import { GatherMemory } from './gather-memory.js'
import { isLent, keep } from './lent-memory.js'

it('lends memory to one client after the other, and leaves alone what frames may still need', () => {
  const one = new GatherMemory()
  const first = one.take(10_000)
  expect(isLent(first)).toBe(true)
  expect(keep(first.subarray(0, 10)).buffer).not.toBe(first.buffer)
  const second = one.take(10_000)
  expect([second === first, one.isCurrent(first), one.isCurrent(second)]).toEqual([false, false, true])
  one.giveBack()
  const other = new GatherMemory()
  expect(other.take(10_000)).toBe(first)
  expect(other.take(10_000)).not.toBe(second)
})

it('does not lend memory for few bytes, nor for very many', () => {
  const memory = new GatherMemory()
  expect([100, 100_000].map((bytes) => memory.take(bytes)).map((taken) => [isLent(taken), taken.length])).toEqual([
    [false, 100],
    [false, 100_000],
  ])
})
