import { expect, it } from 'vitest'
import { type Action, countsOf, selectorText } from './words.js'

const action: Action = {
  actionId: 'bulk_1',
  kind: 'cancelRuns',
  state: 'running',
  selector: {},
  createdBy: 'ada@example.com',
  matched: 10,
  done: 4,
  failed: 0,
  outcomes: { cancelled: 3, alreadyFinished: 1, notFound: 0, failed: 0 },
  createdAt: 0,
}
const time = (atMs: number) => `<${atMs}>`

it('a selector is one line, without the settings of the action', () => {
  const selector = { label: ['a', 'b'], fromDate: 7, reason: 'twice', ratePerSecond: 5, fenceUntil: 9 }
  expect(selectorText(selector, time)).toBe('label a or b, from <7>')
  expect(selectorText({}, time)).toBe('everything')
})

it('a list of IDs is shown as its count', () => {
  expect(selectorText({ workflowRunIds: ['x', 'y'] }, time)).toBe('2 IDs')
  expect(selectorText({ workflowRunIds: ['x'], workflowRunIdsTotal: 5_000 }, time)).toBe('5,000 IDs')
})

it('the counts add up to the set', () => {
  const counts = countsOf(action)
  expect(counts.map(({ name }) => name)).toEqual(['cancelled', 'alreadyFinished', 'failed', 'pending'])
  expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(action.matched)
})
