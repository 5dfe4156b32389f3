import { expect, it } from 'vitest'
import { Ascending } from './ascending.js'

/** Numbers in an order that is always the same, and looks like none. */
const scattered = (many: number, highest: number): number[] =>
  Array.from({ length: many }, (_, index) => 1 + ((index * 7_919_993) % highest))

it.each([
  ['near to each other', scattered(200_000, 150_000)],
  ['far from each other', scattered(3_000, 2 ** 45)],
  ['in order', Array.from({ length: 100_000 }, (_, index) => index + 1)],
  ['none', []],
])('sorts numbers that lie %s and keeps each once', async (_, seqs) => {
  const sorting = new Ascending()
  for (let at = 0; at < seqs.length; at += 5_000) sorting.add(seqs.slice(at, at + 5_000))
  const expected = [...new Set(seqs)].sort((one, other) => one - other)
  const sorted: number[] = []
  for await (const some of sorting.sorted()) sorted.push(...some)
  expect(sorted).toEqual(expected)
  expect(sorting.isEmpty).toBe(seqs.length === 0)
})
