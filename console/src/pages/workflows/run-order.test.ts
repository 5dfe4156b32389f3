import { expect, it } from 'vitest'
import { filterAndSort, isSortedByBrowser, orderQuery } from './run-order.js'
import type { Run } from './words.js'

const T = 1_800_000_000_000
const run = (workflowRunId: string, more: Partial<Run> = {}): Run => ({
  workflowRunId,
  workflowUrl: 'https://x.test/w',
  workflowState: 'RUN_STARTED',
  workflowRunCreatedAt: T,
  steps: [],
  ...more,
})
const ROWS = [
  run('b', { because: [{ kind: 'event', text: 'waits' }], labels: ['z'] }),
  run('c', { workflowState: 'RUN_FAILED', workflowRunCreatedAt: T - 50, workflowRunCompletedAt: T - 40 }),
  run('a', { workflowUrl: 'https://a.test/w', workflowRunCreatedAt: T - 100 }),
]
const ids = (search: Parameters<typeof filterAndSort>[1]) =>
  filterAndSort(ROWS, search).map(({ workflowRunId }) => workflowRunId)

it('the server sorts by every order that it knows, the page by the others', () => {
  const asked = [
    { sort: '-duration' },
    { sort: 'created' },
    { sort: 'ended' },
    {},
    { sort: 'waits' },
    { sort: 'colour' },
  ]
  expect(asked.map(orderQuery)).toEqual([
    { sort: 'duration', direction: 'desc' },
    { sort: 'created', direction: 'asc' },
    { sort: 'ended', direction: 'asc' },
    {},
    {},
    {},
  ])
  expect(ids({ sort: '-id' })).toEqual(['b', 'c', 'a'])
  expect(ids({ sort: 'waits' })).toEqual(['b', 'c', 'a'])
  expect(asked.map(isSortedByBrowser)).toEqual([false, false, false, false, true, false])
})

it('the page filters by what a run waits for', () => {
  expect(ids({ waits: 'event' })).toEqual(['b'])
  expect(ids({ waits: 'paused' })).toEqual([])
})
