import { expect, it } from 'vitest'
import { batchesOf } from './batches.js'

it('a list is cut into batches by content and number, and no item is left out', () => {
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
