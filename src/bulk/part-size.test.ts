import { expect, it } from 'vitest'
import { LIMITS, PartSize } from './part-size.js'

/** The size after so many parts on a machine that takes this long for an item, and for a commit. */
function settled(itemMs: number, commitMs: number, limits = LIMITS.sqlite): number {
  const size = new PartSize(limits)
  for (let part = 0; part < 50; part++) size.took(size.items, commitMs + size.items * itemMs)
  return size.items
}

it('takes as many items as fit into the time that others may wait, within bounds', () => {
  const { aimMs, smallest, largest } = LIMITS.sqlite
  const wanted = (aimMs - 1) / 0.007
  expect(settled(0.007, 1)).toBeGreaterThan(wanted - 50)
  expect(settled(0.007, 1)).toBeLessThan(wanted + 50)
  expect(settled(0.0001, 0.1)).toBe(largest)
  expect(settled(0.5, 20)).toBe(smallest)
})

it('is not misled by what others do between two parts', () => {
  const size = new PartSize(LIMITS.sqlite)
  for (let part = 0; part < 50; part++) size.took(size.items, 1 + size.items * 0.007 + (part % 4 === 0 ? 0 : 5))
  expect(size.items).toBeGreaterThan(settled(0.007, 1) - 50)
})

it('gets smaller on a machine that gets slower', () => {
  const size = new PartSize(LIMITS.sqlite)
  for (let part = 0; part < 50; part++) size.took(size.items, 1 + size.items * 0.004)
  const before = size.items
  for (let part = 0; part < 50; part++) size.took(size.items, 1 + size.items * 0.012)
  expect(size.items).toBeLessThan(before / 2)
})

it('takes longer where nobody waits for it', () => {
  expect(settled(0.05, 1, LIMITS.postgres)).toBeGreaterThan(3 * settled(0.05, 1))
})

it('does not learn from the small part that a chunk ends with', () => {
  const size = new PartSize(LIMITS.sqlite)
  const before = size.items
  size.took(1, 50)
  expect(size.items).toBe(before)
})
