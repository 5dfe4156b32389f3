import { expect, it } from 'vitest'
import { addressOf, choiceOf, selectorOf, selectsEverything, withKind } from './selector.js'

const URL = 'https://example.com/nightly'

it('a selector is read from a URL, and unknown parameters are dropped', () => {
  const search = { kind: 'resumeRuns', url: URL, label: 42, from: 5, to: 'soon', ids: [], exact: 'yes', more: 1 }
  expect(choiceOf(search)).toEqual({ kind: 'resumeRuns', url: URL, label: '42', from: 5 })
})

it('a cancel selects runs by URL prefix or whole URL; other kinds filter by whole URLs', () => {
  expect(selectorOf({ url: URL })).toEqual({ workflowUrl: URL })
  expect(selectorOf({ url: URL, exact: true })).toEqual({ workflowUrl: URL, workflowUrlExactMatch: true })
  expect(selectorOf({ kind: 'restartRuns', url: URL, status: 500 })).toEqual({
    workflowUrl: [URL],
    responseStatus: [500],
  })
})

it('a selector with IDs, even an empty list, ignores other filters', () => {
  expect(selectorOf({ ids: ['wfr_1'], label: 'x' })).toEqual({ workflowRunIds: ['wfr_1'] })
  expect(selectorOf({ kind: 'deleteDeadRuns', ids: ['1-0'] })).toEqual({ dlqIds: ['1-0'] })
  expect(selectorOf({ ids: [] })).toEqual({ workflowRunIds: [] })
})

it('a selector keeps the conditions that its kind of items has, and drops others', () => {
  const choice = choiceOf({ state: 'sleeping', waiting: 'order-1', attemptsMost: 2, payload: '$.a = 1', saved: 'mine' })
  expect(selectorOf(choice)).toEqual({
    state: 'sleeping',
    waitingFor: 'order-1',
    attemptsAtMost: 2,
    payload: '$.a = 1',
    saved: 'mine',
  })
  expect(withKind(choice, 'deleteDeadLetters')).toEqual({
    kind: 'deleteDeadLetters',
    attemptsMost: 2,
    payload: '$.a = 1',
  })
  expect(withKind({ state: 'retry' }, 'cancelMessages')).toEqual({ kind: 'cancelMessages' })
})

it('the address leaves out many IDs', () => {
  const ids = Array.from({ length: 51 }, (_, number) => `wfr_${number}`)
  expect(addressOf({ kind: 'cancelRuns', ids: ['wfr_1'] })).toEqual({ kind: 'cancelRuns', ids: ['wfr_1'] })
  expect(addressOf({ kind: 'cancelRuns', ids })).toEqual({ kind: 'cancelRuns' })
})

it('a selector without filters is recognized', () => {
  expect(selectsEverything({ kind: 'cancelRuns' })).toBe(true)
  expect(selectsEverything({ ids: [] })).toBe(false)
  expect(selectsEverything({ label: 'x' })).toBe(false)
})

it('a selector uses the filter names of the queue for messages and dead letters', () => {
  const choice = { kind: 'retryDeadLetters', url: URL, queue: 'mails', group: 'orders', status: 503, from: 7 } as const
  expect(selectorOf(choice)).toEqual({
    url: [URL],
    queueName: ['mails'],
    topicName: ['orders'],
    responseStatus: [503],
    fromDate: 7,
  })
  expect(selectorOf({ kind: 'cancelMessages', ids: ['msg_1'], label: 'x' })).toEqual({ messageIds: ['msg_1'] })
  expect(selectorOf({ kind: 'cancelMessages', status: 503, exact: true })).toEqual({})
})

it('a change of the kind keeps the filters that both kinds have', () => {
  const choice = { url: URL, exact: true, label: 'x', host: 'h', ids: ['wfr_1'] } as const
  expect(withKind(choice, 'resumeRuns')).toEqual({ kind: 'resumeRuns', url: URL, label: 'x' })
  expect(withKind({ kind: 'resumeRuns', ids: ['1-0'] }, 'restartRuns')).toEqual({ kind: 'restartRuns', ids: ['1-0'] })
})
