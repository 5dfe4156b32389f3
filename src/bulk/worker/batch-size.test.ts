import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { BatchSize, LIMITS } from './batch-size.js'

/** Runs batches one after the other, each with its own duration in milliseconds. */
function decideEach(size: BatchSize, batches: number, elapsedMs: (items: number, batch: number) => number): void {
  let now = 0
  for (let batch = 0; batch < batches; batch++) {
    const asked = now
    now += elapsedMs(size.items, batch)
    size.took(size.items, asked, now)
  }
}

/** Batch size after this many batches on a machine with these costs per item and per commit, milliseconds. */
function settled(itemMs: number, commitMs: number, limits = LIMITS.sqlite): number {
  const size = new BatchSize(limits)
  decideEach(size, 50, (items) => commitMs + items * itemMs)
  return size.items
}

it('the batch size fits the target duration, within bounds', () => {
  const { targetMs, smallest, largest } = LIMITS.sqlite
  const expected = (targetMs - 1) / 0.005
  expect(settled(0.005, 1)).toBeGreaterThan(expected - 50)
  expect(settled(0.005, 1)).toBeLessThan(expected + 50)
  expect(settled(0.0001, 0.1)).toBe(largest)
  expect(settled(0.5, 20)).toBe(smallest)
})

it('the batch size starts with small batches and grows quickly', () => {
  const { smallest } = LIMITS.sqlite
  const size = new BatchSize(LIMITS.sqlite)
  expect(size.items * 4).toBeLessThan(smallest)
  decideEach(size, 6, (items) => 10 + items * 0.1)
  expect(size.items).toBe(smallest)
})

it('the batch size ignores the time of other transactions between two batches', () => {
  const size = new BatchSize(LIMITS.sqlite)
  decideEach(size, 50, (items, batch) => 1 + items * 0.005 + (batch % 4 === 0 ? 0 : 5))
  expect(size.items).toBeGreaterThan(settled(0.005, 1) - 50)
})

it('the batch size measures batches that share a commit as one', () => {
  const size = new BatchSize(LIMITS.sqlite)
  let now = 0
  for (let commit = 0; commit < 50; commit++) {
    const asked = now
    now += 1 + 3 * size.items * 0.005
    for (let batch = 0; batch < 3; batch++) size.took(size.items, asked, now + batch * 0.1)
  }
  expect(size.items).toBeGreaterThan(settled(0.005, 0.33) - 100)
  expect(size.items).toBeLessThan(settled(0.005, 0.33) + 100)
})

it('the batch size ignores late notifications', () => {
  const size = new BatchSize(LIMITS.sqlite)
  decideEach(size, 50, (items, batch) => 1 + items * 0.005 + (batch % 8 === 6 ? 3 : batch % 8 === 7 ? -3 : 0))
  expect(size.items).toBeLessThan(settled(0.005, 1) + 50)
})

it('the batch size shrinks when the machine gets slower', () => {
  const size = new BatchSize(LIMITS.sqlite)
  decideEach(size, 50, (items) => 0.5 + items * 0.003)
  const before = size.items
  const slower = new BatchSize(LIMITS.sqlite)
  decideEach(slower, 100, (items, batch) => 0.5 + items * (batch < 50 ? 0.003 : 0.009))
  expect(slower.items).toBeLessThan(before / 2)
})

it('the batch size uses longer batches on PostgreSQL', () => {
  expect(settled(0.05, 1, LIMITS.postgres)).toBeGreaterThan(2 * settled(0.05, 1))
})

it('the batch size ignores the small last batch of a chunk', () => {
  const size = new BatchSize(LIMITS.sqlite)
  const before = size.items
  size.took(1, 0, 50)
  expect(size.items).toBe(before)
})

it('the batch size makes one batch at a time, of fewer items, while others use PostgreSQL', () => {
  let isBesideOthers = false
  const size = new BatchSize(LIMITS.postgres, () => isBesideOthers)
  decideEach(size, 20, () => 1)
  expect([size.items, size.inFlight]).toEqual([2_000, 2])
  isBesideOthers = true
  expect([size.items, size.inFlight]).toEqual([1_000, 1])
})

it('the batch size has the bounds of the documentation', () => {
  const page = readFileSync(new URL('../../../docs/bulk-cancel.md', import.meta.url), 'utf8').replaceAll(/\s+/g, ' ')
  const bounds = ({ smallest, largest }: typeof LIMITS.sqlite) =>
    `${smallest} to ${largest.toLocaleString('en-US')} items`
  const { sqlite, postgres } = LIMITS
  expect(page).toContain(
    `${bounds(sqlite)}: as many as this machine processes in about ${sqlite.targetMs} milliseconds`,
  )
  expect(page).toContain(`${bounds(postgres)}, up to about ${postgres.targetMs} milliseconds`)
})
