import { expect, it } from 'vitest'
import { yieldToEventLoop as turn } from '../../base/index.js'
import { quantile, runLoop } from './load.js'

const never = new AbortController().signal
const short = { measureMs: 30, warmUpMs: 10, stop: never }

it('runs as many operations at a time as there are callers', async () => {
  let now = 0
  let most = 0
  const { operations, perSecond, latenciesMs } = await runLoop({ ...short, callers: 3 }, async () => {
    most = Math.max(most, ++now)
    await turn()
    now--
  })
  expect(most).toBe(3)
  expect(latenciesMs.length).toBeLessThan(operations)
  expect(perSecond).toBeCloseTo(latenciesMs.length / 0.03)
})

it('counts every operation of a call', async () => {
  const { operations } = await runLoop({ ...short, callers: 1, perCall: 16 }, () => turn())
  expect(operations % 16).toBe(0)
})

it('the load waits for all callers before it fails', async () => {
  let ended = 0
  const loop = runLoop({ ...short, measureMs: 60_000, callers: 3 }, async (caller) => {
    await turn()
    if (caller === 1) throw new Error('refused')
    await turn()
    ended++
  })
  await expect(loop).rejects.toThrow('refused')
  const before = ended
  await turn()
  expect(ended).toBe(before)
})

it('the load ends when it is stopped', async () => {
  const stop = new AbortController()
  const loop = runLoop({ ...short, measureMs: 60_000, callers: 2, stop: stop.signal }, async () => {
    stop.abort(new Error('stopped'))
    await turn()
  })
  await expect(loop).rejects.toThrow('stopped')
})

it('quantiles of sorted values are found', () => {
  const sorted = Float64Array.from({ length: 100 }, (_, index) => index + 1)
  expect([quantile(sorted, 0.5), quantile(sorted, 0.99), quantile(sorted, 1)]).toEqual([51, 100, 100])
  expect(quantile(new Float64Array(), 0.5)).toBeNaN()
})
