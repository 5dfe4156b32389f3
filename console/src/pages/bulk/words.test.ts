import { expect, it } from 'vitest'
import { selectorText } from '../../../../src/contract/words/selector.js'
import { type Action, countsOf } from './words.js'

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
  expect(selectorText({ ...action, selector }, time)).toBe('label a or b, from <7>')
  expect(selectorText(action, time)).toBe('everything')
})

it('a list of IDs is shown as its count', () => {
  const text = (selector: Action['selector']) => selectorText({ ...action, selector }, time)
  expect(text({ workflowRunIds: ['x', 'y'] })).toBe('2 IDs')
  expect(text({ workflowRunIds: ['x'], workflowRunIdsTotal: 5_000 })).toBe('5,000 IDs')
})

it('the text says whether a URL is a prefix, and writes conditions in words', () => {
  const workflowUrl = 'https://x.test/a'
  const text = (kind: Action['kind'], selector: Action['selector']) => selectorText({ kind, selector }, time)
  expect(text('cancelRuns', { workflowUrl })).toBe('URL begins with https://x.test/a')
  expect(text('pauseRuns', { workflowUrl, workflowUrlExactMatch: true })).toBe('URL https://x.test/a')
  expect(text('resumeRuns', { workflowUrl: [workflowUrl] })).toBe('URL https://x.test/a')
  expect(text('cancelRuns', { olderThan: '2h', attemptsAtLeast: 3, errorContains: 'boom' })).toBe(
    'older than 2h, failed attempts at least 3, error contains boom',
  )
})

it('the counts add up to the set', () => {
  const counts = countsOf(action)
  expect(counts.map(({ name }) => name)).toEqual(['cancelled', 'alreadyFinished', 'failed', 'pending'])
  expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(action.matched)
})
