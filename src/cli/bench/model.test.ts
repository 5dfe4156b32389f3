import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { type Cost, type Machine, predict, predictCluster } from './model.js'
import { scalePage } from './scale-page.js'

const cost: Cost = {
  alone: { mainUs: 200, otherUs: 100, callerUs: 100 },
  busy: { mainUs: 50, otherUs: 50, callerUs: 100 },
  commits: 1,
}
const machine: Machine = { cores: 2, speed: 1, syncUs: 200, sharesCores: false }

it('the model predicts the path of an operation for one caller: main thread, caller and commits', () => {
  expect(predict(cost, machine, 1).perSecond).toBeCloseTo(1e6 / (200 + 100 + 200))
  expect(predict({ ...cost, commits: 0 }, machine, 1).perSecond).toBeCloseTo(1e6 / 300)
})

it('the model predicts the bottleneck for many callers', () => {
  expect(predict(cost, machine, Infinity)).toEqual({ perSecond: 20_000, bound: 'main thread' })
  expect(predict(cost, { ...machine, sharesCores: true }, Infinity)).toEqual({ perSecond: 10_000, bound: 'cores' })
  expect(predict(cost, { ...machine, cores: 64, sharesCores: true }, Infinity).bound).toBe('main thread')
})

it('the model predicts more for faster cores, and never more than the plan allows', () => {
  expect(predict(cost, { ...machine, speed: 2 }, Infinity).perSecond).toBeCloseTo(40_000)
  expect(predict(cost, machine, 50, 3_000)).toEqual({ perSecond: 3_000, bound: 'plan' })
})

it('the model predicts more with each further caller', () => {
  const rates = [1, 2, 5, 50, 1_000].map((callers) => predict(cost, machine, callers).perSecond)
  expect(rates).toEqual(rates.toSorted((one, other) => one - other))
})

it('the model predicts for a cluster what its nodes or PostgreSQL allow', () => {
  const ofOne = { nodeMainUs: 100, postgresUs: 20 }
  expect(predictCluster(ofOne, 3, 4)).toEqual({ perSecond: 30_000, bound: 'nodes' })
  expect(predictCluster(ofOne, 30, 4)).toEqual({ perSecond: 200_000, bound: 'PostgreSQL' })
})

it('docs/scale.md matches the model (run `npm run docs` to update it)', () => {
  expect(readFileSync(new URL('../../../docs/scale.md', import.meta.url), 'utf8')).toBe(scalePage())
})
