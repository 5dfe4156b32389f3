import { expect, it } from 'vitest'
import { ACTIVITY_KINDS, ACTIVITY_PERIODS } from '../contract/console/activity.js'
import { BLOCK_MINUTES, BLOCK_MS, MINUTE_MS } from '../telemetry/index.js'
import { seriesOf, spanOf } from './series.js'
import { packCounts, unpackCounts } from './transactions/packed-counts.js'

const T = Math.floor(1_800_000_000_000 / 86_400_000) * 86_400_000

it('a period ends with the current step, and its steps begin at multiples of their length', () => {
  const span = spanOf(T + 7 * MINUTE_MS + 59_999, ACTIVITY_PERIODS['1h'])
  expect(span).toEqual({ from: T - 52 * MINUTE_MS, stepMs: MINUTE_MS, steps: 60 })
  expect(spanOf(T, ACTIVITY_PERIODS['1d'])).toEqual({ from: T - 95 * BLOCK_MS, stepMs: BLOCK_MS, steps: 96 })
})

it('a series has no counts from outside of its span', () => {
  const span = { from: T, stepMs: MINUTE_MS, steps: 2 }
  const { published } = seriesOf([{ start: T - MINUTE_MS, counts: '[[0,7],[1,1],[2,2],[3,7]]' }], span)
  expect(published).toEqual([1, 2])
})

it('packed counts are read back', () => {
  const counts = new Uint32Array(BLOCK_MINUTES * ACTIVITY_KINDS.length)
  expect(packCounts(counts)).toBe('[]')
  counts[1] = 4_000_000_000
  counts[counts.length - 1] = 1
  expect(unpackCounts(packCounts(counts))).toEqual([
    { minute: 0, counts: [0, 4_000_000_000] },
    { minute: 14, counts: [...Array.from({ length: ACTIVITY_KINDS.length - 1 }, () => 0), 1] },
  ])
})

it('counts of a newer version are read without its new kinds, and damaged text as none', () => {
  const newer = [0, ...ACTIVITY_KINDS.map(() => 1), 9]
  expect(unpackCounts(JSON.stringify([newer]))).toEqual([{ minute: 0, counts: ACTIVITY_KINDS.map(() => 1) }])
  for (const text of ['', '{', '7', '[7]', '[[0,-1]]', '[["0",1]]', '[[15,1]]', '[[]]'])
    expect(unpackCounts(text)).toEqual([])
})
