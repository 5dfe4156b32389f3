import { expect, it } from 'vitest'
import { MAX_PREFIXES, MemorySample, prefixOf, SAMPLE_STEP } from './memory-sample.js'

const never = new AbortController().signal

/** A database of these keys, whose SCAN finds one of them twice. */
function database(sizes: Readonly<Record<string, number | undefined>>, atATime = 250) {
  const names = Object.keys(sizes)
  return {
    scan: async (cursor: string) => {
      const next = Number(cursor) + atATime
      const found = names.slice(Number(cursor), next)
      return { names: [...found, ...found.slice(0, 1)], cursor: next < names.length ? String(next) : undefined }
    },
    sizes: async (asked: readonly string[]) => asked.map((name) => sizes[name]),
  }
}

it('a sample adds up the sizes by prefix, down to the requested level', async () => {
  const sample = new MemorySample()
  await sample.grow(database({ 'user:1:a': 10, 'user:2:a': 30, plain: 5, gone: undefined }), never, () => undefined)
  expect([sample.keys, sample.bytes, sample.isWhole]).toEqual([3, 45, true])
  expect(sample.prefixes(':', 1)).toEqual([
    { prefix: 'user:', keys: 2, bytes: 40, largest: { name: 'user:2:a', bytes: 30 } },
    { prefix: 'plain', keys: 1, bytes: 5, largest: { name: 'plain', bytes: 5 } },
  ])
  expect(sample.prefixes(':', 2).map(({ prefix }) => prefix)).toEqual(['user:2:', 'user:1:', 'plain'])
})

it('a sample measures a bounded number of keys, and more on demand', async () => {
  const keys = Object.fromEntries(Array.from({ length: 2 * SAMPLE_STEP + 10 }, (_, i) => [`k${i}:x`, 1]))
  const sample = new MemorySample()
  const store = database(keys)
  await sample.grow(store, never, () => undefined)
  expect([sample.keys, sample.isWhole]).toEqual([SAMPLE_STEP, false])
  await sample.grow(store, never, () => undefined)
  await sample.grow(store, never, () => undefined)
  expect([sample.keys, sample.isWhole]).toEqual([2 * SAMPLE_STEP + 10, true])
  const uses = sample.prefixes(':', 1)
  expect([uses.length, uses.at(-1)?.prefix, uses.at(-1)?.keys]).toEqual([
    MAX_PREFIXES + 1,
    undefined,
    2 * SAMPLE_STEP + 10 - MAX_PREFIXES,
  ])
})

it('a sample stops when it is aborted', async () => {
  const stop = new AbortController()
  const sample = new MemorySample()
  const keys = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, 1]))
  await sample.grow(database(keys), stop.signal, () => stop.abort())
  expect([sample.keys, sample.isWhole]).toEqual([250, false])
})

it.each([
  ['a:b:c', ':', 1, 'a:'],
  ['a:b:c', ':', 2, 'a:b:'],
  ['a:b:c', ':', 4, 'a:b:'],
  ['abc', ':', 1, 'abc'],
  [':a', ':', 1, ':'],
  ['a--b', '--', 1, 'a--'],
  ['a:b', '', 1, 'a:b'],
])('the prefix of %s by %j up to level %d is %s', (name, separator, levels, prefix) => {
  expect(prefixOf(name, separator, levels)).toBe(prefix)
})
