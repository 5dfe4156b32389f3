import { expect, it } from 'vitest'
import { inTurn, isTurnSpent, nextTurn } from './turns.js'

/** Keeps the processor busy. */
function work(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until) {
    // busy
  }
}

it('does one slice of long work in a turn of the event loop, in the order of asking', async () => {
  const seen: string[] = []
  const turns = setInterval(() => {}, 1_000)
  const tick = (): void => void seen.push('turn')
  for (const name of ['a', 'b', 'c']) inTurn(() => seen.push(name))
  const done = new Promise<void>((resolve) => inTurn(resolve))
  for (let i = 0; i < 4; i++) await new Promise<void>((resolve) => setImmediate(() => resolve(tick())))
  await done
  clearInterval(turns)
  expect(seen.filter((name) => name !== 'turn')).toEqual(['a', 'b', 'c'])
  expect(seen.indexOf('b') - seen.indexOf('a')).toBeGreaterThan(1)
})

it('lets others go first while many do long work', async () => {
  const SLICE_MS = 5
  let slices = 0
  const long = async (): Promise<void> => {
    for (let i = 0; i < 4; i++) {
      await nextTurn()
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

it('tells when a turn is spent, of all that is done in it together, and begins anew with the next', async () => {
  await nextTurn()
  expect(isTurnSpent()).toBe(false)
  work(15)
  expect(isTurnSpent()).toBe(true)
  await nextTurn()
  expect(isTurnSpent()).toBe(false)
})
