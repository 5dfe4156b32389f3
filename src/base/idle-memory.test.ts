import { getHeapStatistics } from 'node:v8'
import { beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { IdleMemory } from './idle-memory.js'
import { ManualClock } from './testing/manual-clock.js'

const MIB = 2 ** 20

let clock: ManualClock
let state: { isAtRest: boolean; work: number; heapBytes: number; collected: number }
let memory: IdleMemory

beforeEach(() => {
  clock = new ManualClock()
  state = { isAtRest: true, work: 0, heapBytes: 100 * MIB, collected: 0 }
  memory = new IdleMemory({
    clock,
    isAtRest: () => state.isAtRest,
    workSinceAsked: () => state.work,
    heapBytes: () => state.heapBytes,
    collect: async () => {
      state.collected++
      state.heapBytes = 40 * MIB
    },
  })
})

/** Lets time pass, and what falls due with it happen. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

it('collects once after a rest, however many things came to rest', async () => {
  for (let i = 0; i < 1_000; i++) memory.rest()
  await pass(9_999)
  expect([state.collected, clock.pendingTimers]).toEqual([0, 1])
  await pass(1)
  expect([state.collected, clock.pendingTimers]).toEqual([1, 0])
})

it('waits as long as there is work', async () => {
  state.work = 0.5
  memory.rest()
  await pass(60_000)
  expect(state.collected).toBe(0)
  state.work = 0.04
  await pass(10_000)
  expect(state.collected).toBe(1)
})

it('leaves a program alone that works again, until that tells of its next rest', async () => {
  memory.rest()
  state.isAtRest = false
  await pass(60_000)
  expect([state.collected, clock.pendingTimers]).toEqual([0, 0])
  state.isAtRest = true
  memory.rest()
  await pass(10_000)
  expect(state.collected).toBe(1)
})

it('goes on where memory cannot be given back', async () => {
  const fail = new IdleMemory({
    clock,
    isAtRest: () => true,
    workSinceAsked: () => 0,
    collect: () => Promise.reject(new Error('no')),
  })
  fail.rest()
  await pass(10_000)
  fail.rest()
  expect(clock.pendingTimers).toBe(1)
})

it('collects again only when the heap has grown', async () => {
  const rested = async (heapBytes: number): Promise<number> => {
    state.heapBytes = heapBytes
    memory.rest()
    await pass(10_000)
    return state.collected
  }
  expect([await rested(100 * MIB), await rested(43 * MIB), await rested(44 * MIB)]).toEqual([1, 1, 2])
})

it('makes V8 give back what was thrown away', async () => {
  let rubbish: unknown[] | undefined = Array.from({ length: 300_000 }, (_, number) => ({ number }))
  const full = getHeapStatistics().total_heap_size
  new IdleMemory({ clock, isAtRest: () => true, workSinceAsked: () => 0 }).rest()
  expect(rubbish.splice(0)).toHaveLength(300_000)
  rubbish = undefined
  clock.advance(10_000)
  await waitFor(() => getHeapStatistics().total_heap_size < full - 5 * MIB, { what: 'the heap to shrink' })
})
