import { getHeapStatistics } from 'node:v8'
import { beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { IdleMemory } from './garbage-collection.js'
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

it('collects once after an idle time, however often idleness is reported', async () => {
  for (let i = 0; i < 1_000; i++) memory.noteIdle()
  await pass(9_999)
  expect([state.collected, clock.pendingTimers]).toEqual([0, 1])
  await pass(1)
  expect([state.collected, clock.pendingTimers]).toEqual([1, 0])
})

it('waits while the event loop works', async () => {
  state.utilization = 0.5
  memory.noteIdle()
  await pass(60_000)
  expect(state.collected).toBe(0)
  state.utilization = 0.04
  await pass(10_000)
  expect(state.collected).toBe(1)
})

it('does nothing when the process is busy again, until it reports idleness once more', async () => {
  memory.noteIdle()
  state.isIdle = false
  await pass(60_000)
  expect([state.collected, clock.pendingTimers]).toEqual([0, 0])
  state.isIdle = true
  memory.noteIdle()
  await pass(10_000)
  expect(state.collected).toBe(1)
})

it('keeps watching after a collection that failed', async () => {
  const fail = new IdleMemory({
    clock,
    isIdle: () => true,
    utilization: () => 0,
    collect: () => Promise.reject(new Error('no')),
  })
  fail.noteIdle()
  await pass(10_000)
  fail.noteIdle()
  expect(clock.pendingTimers).toBe(1)
})

it('collects again only when the heap has grown', async () => {
  const collectedAt = async (heapBytes: number): Promise<number> => {
    state.heapBytes = heapBytes
    memory.noteIdle()
    await pass(10_000)
    return state.collected
  }
  expect([await collectedAt(100 * MIB), await collectedAt(43 * MIB), await collectedAt(44 * MIB)]).toEqual([1, 1, 2])
})

it('makes V8 return the memory of garbage', async () => {
  let garbage: unknown[] | undefined = Array.from({ length: 300_000 }, (_, number) => ({ number }))
  const full = getHeapStatistics().total_heap_size
  new IdleMemory({ clock, isIdle: () => true, utilization: () => 0 }).noteIdle()
  expect(garbage.splice(0)).toHaveLength(300_000)
  garbage = undefined
  clock.advance(10_000)
  await waitFor(() => getHeapStatistics().total_heap_size < full - 5 * MIB, { what: 'the heap to shrink' })
})
