import { expect, it } from 'vitest'
import { choiceOf, meansEverything, selectorOf, withKind } from './selector.js'

const URL = 'https://example.com/nightly'

it('reads an address, and leaves out what it does not know', () => {
  const search = { kind: 'resumeRuns', url: URL, label: 42, from: 5, to: 'soon', ids: [], exact: 'yes', more: 1 }
  expect(choiceOf(search)).toEqual({ kind: 'resumeRuns', url: URL, label: '42', from: 5 })
})

it('cancels by the beginning of a URL or by the whole one, and everything else by whole ones', () => {
  expect(selectorOf({ url: URL })).toEqual({ workflowUrl: URL })
  expect(selectorOf({ url: URL, exact: true })).toEqual({ workflowUrl: URL, workflowUrlExactMatch: true })
  expect(selectorOf({ kind: 'restartRuns', url: URL, status: 500 })).toEqual({
    workflowUrl: [URL],
    responseStatus: [500],
  })
})

it('takes ids alone when there are some, also when there are none of them', () => {
  expect(selectorOf({ ids: ['wfr_1'], label: 'x' })).toEqual({ workflowRunIds: ['wfr_1'] })
  expect(selectorOf({ kind: 'deleteDeadRuns', ids: ['1-0'] })).toEqual({ dlqIds: ['1-0'] })
  expect(selectorOf({ ids: [] })).toEqual({ workflowRunIds: [] })
})

it('knows when nothing is filtered', () => {
  expect(meansEverything({ kind: 'cancelRuns' })).toBe(true)
  expect(meansEverything({ ids: [] })).toBe(false)
  expect(meansEverything({ label: 'x' })).toBe(false)
})

it('names the filters of messages and dead letters as the queue does', () => {
  const choice = { kind: 'retryDeadLetters', url: URL, queue: 'mails', group: 'orders', status: 503, from: 7 } as const
  expect(selectorOf(choice)).toEqual({
    ...{ url: [URL], queueName: ['mails'], topicName: ['orders'], responseStatus: [503], fromDate: 7 },
  })
  expect(selectorOf({ kind: 'cancelMessages', ids: ['msg_1'], label: 'x' })).toEqual({ messageIds: ['msg_1'] })
  expect(selectorOf({ kind: 'cancelMessages', status: 503, exact: true })).toEqual({})
})

it('keeps what also chooses among the items of another kind', () => {
  const choice = { url: URL, exact: true, label: 'x', host: 'h', ids: ['wfr_1'] } as const
  expect(withKind(choice, 'resumeRuns')).toEqual({ kind: 'resumeRuns', url: URL, label: 'x' })
  expect(withKind({ kind: 'resumeRuns', ids: ['1-0'] }, 'restartRuns')).toEqual({ kind: 'restartRuns', ids: ['1-0'] })
})
