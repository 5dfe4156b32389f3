import { expect, it, vi } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { Retries } from './retries.js'

const failure = (code: string) => Object.assign(new Error(code), { code })

/** Retries on a clock that stands still, and an attempt that fails with each of the codes, then succeeds. */
function retrying(random = 0) {
  const clock = new ManualClock()
  const retries = new Retries({ clock, random: () => random })
  const failing = (...codes: string[]) =>
    vi.fn(async () => {
      const code = codes.shift()
      if (code !== undefined) throw failure(code)
      return 'done'
    })
  return { clock, retries, failing }
}

it('runs a transaction again at once after a serialization failure', async () => {
  const { retries, failing } = retrying()
  const attempt = failing('40001', '40001')
  expect(await retries.run('a', attempt)).toBe('done')
  expect(attempt).toHaveBeenCalledTimes(3)
})

it.each([
  [0, 5],
  [0.5, 27.5],
])('the store waits before it runs a deadlocked transaction again (random %d: %d ms)', async (random, waitMs) => {
  const { clock, retries, failing } = retrying(random)
  const attempt = failing('40P01')
  const result = retries.run('a', attempt)
  await vi.waitFor(() => expect(clock.pendingTimers).toBe(1))
  clock.advance(waitMs - 1)
  expect(attempt).toHaveBeenCalledTimes(1)
  clock.advance(1)
  expect(await result).toBe('done')
})

it('the store gives up after ten attempts, and never repeats any other failure', async () => {
  const { retries, failing } = retrying()
  const conflicting = failing(...Array.from({ length: 20 }, () => '40001'))
  await expect(retries.run('a', conflicting)).rejects.toMatchObject({ code: '40001' })
  expect(conflicting).toHaveBeenCalledTimes(10)
  for (const code of ['23505', '57014', '55P03', '08006', 'ECONNRESET']) {
    const failed = failing(code)
    await expect(retries.run('a', failed)).rejects.toMatchObject({ code })
    expect(failed).toHaveBeenCalledTimes(1)
  }
})

it('runs retries of one operation one after the other, and those of others meanwhile', async () => {
  const { retries } = retrying()
  const running: string[] = []
  const open: (() => void)[] = []
  const conflictOnce = (name: string) => {
    let attempts = 0
    return async () => {
      if (attempts++ === 0) throw failure('40001')
      running.push(name)
      await new Promise<void>((resolve) => open.push(resolve))
    }
  }
  const all = ['a1', 'a2', 'b1'].map((name) => retries.run(name.charAt(0), conflictOnce(name)))
  await vi.waitFor(() => expect(running).toEqual(['a1', 'b1']))
  open.shift()?.()
  await vi.waitFor(() => expect(running).toEqual(['a1', 'b1', 'a2']))
  for (const resolve of open.splice(0)) resolve()
  await Promise.all(all)
})
