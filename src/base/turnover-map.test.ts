import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { TurnoverMap } from './turnover-map.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
setFlagsFromString('--no-expose-gc')

const longLivedBytes = (): number =>
  getHeapSpaceStatistics().find((space) => space.space_name === 'old_space')?.space_used_size ?? Number.NaN

describe('a map with entries that come and go', () => {
  it('behaves like a Map', () => {
    const map = new TurnoverMap<string, number>()
    map.set('a', 1)
    map.set('b', 2)
    map.set('a', 3)
    expect([map.size, map.get('a'), map.has('b'), map.get('c')]).toEqual([2, 3, true, undefined])
    expect([...map.keys()]).toEqual(['a', 'b'])
    expect([...map.values()]).toEqual([3, 2])
    expect([...map.entries()]).toEqual([
      ['a', 3],
      ['b', 2],
    ])
    expect([map.delete('a'), map.delete('a'), map.size]).toEqual([true, false, 1])
    map.clear()
    expect([...map.entries()]).toEqual([])
  })

  it('keeps entries and their order after many deletions', () => {
    const map = new TurnoverMap<number, number>()
    for (let key = 0; key < 20_000; key++) {
      map.set(key, -key)
      if (key >= 10) map.delete(key - 10)
    }
    const left = Array.from({ length: 10 }, (_, index) => 19_990 + index)
    expect([...map.keys()]).toEqual(left)
    expect([...map.values()]).toEqual(left.map((key) => -key))
    expect(map.size).toBe(10)
  })

  it.each([
    { passing: 30_000, bytes: 1_000 },
    { passing: 1_500, bytes: 40_000 },
  ])('lets young collections free $passing entries of $bytes bytes that pass through it', (each) => {
    const map = new TurnoverMap<number, number[]>()
    map.set(0, [])
    // Promotes the map and its table to the old generation.
    collect()
    const before = longLivedBytes()
    for (let key = 1; key < each.passing; key++) {
      map.set(key, new Array(each.bytes / 8).fill(key))
      map.delete(key - 1)
    }
    expect(longLivedBytes() - before).toBeLessThan((each.passing * each.bytes) / 8)
  })
})
