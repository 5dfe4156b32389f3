import { expect, it } from 'vitest'
import { PartSize } from './part-size.js'

/** The size after so many parts on a machine that takes this long for an item, and for a commit. */
function settled(itemMs: number, commitMs: number): number {
  const size = new PartSize()
  for (let part = 0; part < 50; part++) size.took(size.items, commitMs + size.items * itemMs)
  return size.items
}

it('takes as many items as fit into a few milliseconds, within bounds', () => {
  expect(settled(0.007, 1)).toBeGreaterThan(950)
  expect(settled(0.007, 1)).toBeLessThan(1_050)
  expect(settled(0.0001, 0.1)).toBe(4_000)
  expect(settled(0.5, 20)).toBe(250)
})

it('does not learn from the small part that a chunk ends with', () => {
  const size = new PartSize()
  size.took(1, 50)
  expect(size.items).toBe(250)
})
