import { expect, it } from 'vitest'
import { batchesOf } from './batches.js'

it('cuts a list by content and number, and leaves no item out', () => {
  const sizes = (bytes: readonly number[]) =>
    batchesOf(
      bytes.map((one) => ({ bytes: one })),
      { bytes: 10, items: 3 },
    ).map((batch) => batch.map((one) => one.bytes))
  expect(sizes([])).toEqual([])
  expect(sizes([4, 6, 1])).toEqual([[4, 6], [1]])
  expect(sizes([99, 1, 99])).toEqual([[99], [1], [99]])
  expect(sizes([1, 1, 1, 1])).toEqual([[1, 1, 1], [1]])
})
