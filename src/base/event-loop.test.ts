import { expect, it } from 'vitest'
import { isTurnSpent, scheduleSlice, yieldToEventLoop } from './event-loop.js'

/** Blocks the event loop. */
function work(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until) {
    // busy
  }
}

it('runs one slice per turn of the event loop, first come, first served', async () => {
  const seen: string[] = []
  const turns = setInterval(() => {}, 1_000)
  const tick = (): void => void seen.push('turn')
  for (const name of ['a', 'b', 'c']) scheduleSlice(() => seen.push(name))
  const done = new Promise<void>((resolve) => scheduleSlice(resolve))
  for (let i = 0; i < 4; i++) await new Promise<void>((resolve) => setImmediate(() => resolve(tick())))
  await done
  clearInterval(turns)
  expect(seen.filter((name) => name !== 'turn')).toEqual(['a', 'b', 'c'])
  expect(seen.indexOf('b') - seen.indexOf('a')).toBeGreaterThan(1)
})

it('the event loop serves other callbacks while many tasks do long work', async () => {
  const SLICE_MS = 5
  let slices = 0
  const long = async (): Promise<void> => {
    for (let i = 0; i < 4; i++) {
      await yieldToEventLoop()
      work(SLICE_MS)
      slices++
    }
  }
  const all = Promise.all(Array.from({ length: 20 }, long))
  let looks = 0
  while (slices < 80) {
    const before = slices
    await new Promise((resolve) => setImmediate(resolve))
    expect(slices - before).toBeLessThanOrEqual(2)
    looks++
  }
  await all
  expect(looks).toBeGreaterThanOrEqual(40)
})

it('the time of all callers in one turn of the event loop counts together, and from 0 in the next turn', async () => {
  await yieldToEventLoop()
  expect(isTurnSpent()).toBe(false)
  work(15)
  expect(isTurnSpent()).toBe(true)
  await yieldToEventLoop()
  expect(isTurnSpent()).toBe(false)
})
