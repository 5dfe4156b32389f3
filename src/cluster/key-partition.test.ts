import { expect, it } from 'vitest'
import { PARTITIONS, partitionOfKey } from './index.js'

it('a key has the same partition for good', () => {
  expect(partitionOfKey('acc_1', 'payments')).toBe(partitionOfKey('acc_1', 'payments'))
  expect([
    partitionOfKey('acc_1', 'a'),
    partitionOfKey('acc_1', 'b'),
    partitionOfKey('acc_2', 'a'),
  ]).toMatchInlineSnapshot(`
    [
      27,
      6,
      39,
    ]
  `)
})

it('keys are spread evenly over the partitions', () => {
  const counts = new Array<number>(PARTITIONS).fill(0)
  for (let key = 0; key < 64_000; key++) {
    const partition = partitionOfKey('acc_1', `user-${key}`)
    counts[partition] = (counts[partition] ?? 0) + 1
  }
  expect(Math.min(...counts)).toBeGreaterThan(800)
  expect(Math.max(...counts)).toBeLessThan(1_200)
})
