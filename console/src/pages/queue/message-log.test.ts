import { expect, it } from 'vitest'
import { type LogEntry, messagesOf, standingOf } from './message-log.js'

const entry = (messageId: string, state: LogEntry['state'], time: number): LogEntry => ({
  messageId,
  state,
  time,
  url: 'http://127.0.0.1:9/',
  method: 'POST',
  header: {},
  body: '',
  maxRetries: 3,
})

it('a message has the state of its latest entry, in any order of entries', () => {
  const entries = [
    entry('b', 'RETRY', 30),
    entry('b', 'ACTIVE', 20),
    entry('b', 'CREATED', 10),
    entry('a', 'CREATED', 5),
  ]
  const messages = messagesOf(entries)
  expect(messages.map(({ messageId, latest }) => [messageId, latest.state])).toEqual([
    ['b', 'RETRY'],
    ['a', 'CREATED'],
  ])
  expect(messagesOf(entries.toReversed())).toEqual(messages.toReversed())
})

it('of entries with the same time, the later state wins', () => {
  const messages = messagesOf([entry('a', 'DELIVERED', 7), entry('a', 'ACTIVE', 7), entry('a', 'CREATED', 7)])
  expect(messages).toMatchObject([{ latest: { state: 'DELIVERED' }, attempts: 1, publishedAtMs: 7 }])
})

it('only the three final states are final', () => {
  expect(standingOf('ERROR')).toBe('unfinished')
  expect([standingOf('DELIVERED'), standingOf('FAILED'), standingOf('CANCELED')]).toEqual([
    'delivered',
    'failed',
    'canceled',
  ])
})
