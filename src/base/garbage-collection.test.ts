import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { IdleMemory, TurnoverMap } from './garbage-collection.js'
import { ManualClock } from './testing/manual-clock.js'

const MIB = 2 ** 20

let clock: ManualClock
let state: { isIdle: boolean; utilization: number; heapBytes: number; collected: number }
let memory: IdleMemory

beforeEach(() => {
  clock = new ManualClock()
  state = { isIdle: true, utilization: 0, heapBytes: 100 * MIB, collected: 0 }
  memory = new IdleMemory({
    clock,
    isIdle: () => state.isIdle,
    utilization: () => state.utilization,
    heapBytes: () => state.heapBytes,
    collect: async () => {
      state.collected++
      state.heapBytes = 40 * MIB
    },
  })
})

/** Advances the clock and lets the timers' callbacks finish. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

it('garbage is collected once after an idle time, however often idleness is reported', async () => {
  for (let i = 0; i < 1_000; i++) memory.reportIdle()
  await pass(9_999)
  expect([state.collected, clock.pendingTimers]).toEqual([0, 1])
  await pass(1)
  expect([state.collected, clock.pendingTimers]).toEqual([1, 0])
})

it('the collector waits while the event loop works', async () => {
  state.utilization = 0.5
  memory.reportIdle()
  await pass(60_000)
  expect(state.collected).toBe(0)
  state.utilization = 0.04
  await pass(10_000)
  expect(state.collected).toBe(1)
})

it('the collector does nothing when the process is busy again, until it reports idleness once more', async () => {
  memory.reportIdle()
  state.isIdle = false
  await pass(60_000)
  expect([state.collected, clock.pendingTimers]).toEqual([0, 0])
  state.isIdle = true
  memory.reportIdle()
  await pass(10_000)
  expect(state.collected).toBe(1)
})

it('the collector keeps watching after a collection that failed', async () => {
  const fail = new IdleMemory({
    clock,
    isIdle: () => true,
    utilization: () => 0,
    collect: () => Promise.reject(new Error('no')),
  })
  fail.reportIdle()
  await pass(10_000)
  fail.reportIdle()
  expect(clock.pendingTimers).toBe(1)
})

it('the collector collects again only when the heap has grown', async () => {
  const collectedAt = async (heapBytes: number): Promise<number> => {
    state.heapBytes = heapBytes
    memory.reportIdle()
    await pass(10_000)
    return state.collected
  }
  expect([await collectedAt(100 * MIB), await collectedAt(43 * MIB), await collectedAt(44 * MIB)]).toEqual([1, 1, 2])
})

it('the collector makes V8 return the memory of garbage', async () => {
  let garbage: unknown[] | undefined = Array.from({ length: 300_000 }, (_, number) => ({ number }))
  const full = getHeapStatistics().total_heap_size
  new IdleMemory({ clock, isIdle: () => true, utilization: () => 0 }).reportIdle()
  expect(garbage.splice(0)).toHaveLength(300_000)
  garbage = undefined
  clock.advance(10_000)
  await waitFor(() => getHeapStatistics().total_heap_size < full - 5 * MIB, { what: 'the heap to shrink' })
})

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
