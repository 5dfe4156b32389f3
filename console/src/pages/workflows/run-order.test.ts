import { expect, it } from 'vitest'
import { arranged, isSortedHere, runOrderOf } from './run-order.js'
import type { Run } from './words.js'

const T = 1_800_000_000_000
const run = (workflowRunId: string, more: Partial<Run> = {}): Run => ({
  ...{
    workflowRunId,
    workflowUrl: 'https://x.test/w',
    workflowState: 'RUN_STARTED',
    workflowRunCreatedAt: T,
    steps: [],
  },
  ...more,
})
const ROWS = [
  run('b', { because: [{ kind: 'event', text: 'waits' }], labels: ['z'] }),
  run('c', { workflowState: 'RUN_FAILED', workflowRunCreatedAt: T - 50, workflowRunCompletedAt: T - 40 }),
  run('a', { workflowUrl: 'https://a.test/w', workflowRunCreatedAt: T - 100 }),
]
const ids = (search: Parameters<typeof arranged>[1]) =>
  arranged(ROWS, search, T + 10).map(({ workflowRunId }) => workflowRunId)

it('sorts runs by every column, in both directions', () => {
  expect(ids({})).toEqual(['b', 'c', 'a'])
  expect(ids({ sort: 'run' })).toEqual(['a', 'b', 'c'])
  expect(ids({ sort: '-run' })).toEqual(['c', 'b', 'a'])
  expect(ids({ sort: 'state' })).toEqual(['b', 'a', 'c'])
  expect(ids({ sort: 'url' })).toEqual(['a', 'b', 'c'])
  expect(ids({ sort: 'label' })[0]).toBe('b')
  expect(ids({ sort: '-now' })[0]).toBe('b')
  expect(ids({ sort: '-lasted' })[0]).toBe('a')
  expect(ids({ sort: 'made' })).toEqual(['a', 'c', 'b'])
})

it('keeps the order of the server for an unknown column', () => {
  expect(runOrderOf({ sort: 'colour' })).toBeUndefined()
  expect(ids({ sort: 'colour' })).toEqual(['b', 'c', 'a'])
})

it('leaves newest first to the server, which knows all runs', () => {
  expect([{}, { sort: '-made' }, { sort: 'made' }, { sort: '-lasted' }].map(isSortedHere)).toEqual([
    false,
    false,
    true,
    true,
  ])
})

it('filters by what a run waits for', () => {
  expect(ids({ waits: 'event' })).toEqual(['b'])
  expect(ids({ waits: 'paused' })).toEqual([])
})
