import { expect, it } from 'vitest'
import { write } from '../../store/operation.js'
import { insertAll, type Transaction } from '../../store/statement.js'
import { MemoryStore } from '../../store/testing/memory-store.js'
import * as messagesDead from './messages-dead.js'
import { ANY_MESSAGE } from './messages-filter.js'

const AT = 1_700_000_000_000
const LETTERS = 4_500

const letter = (seq: number) => ({
  seq,
  message_id: `msg_${seq}`,
  account_id: 'acc',
  kind: 'http',
  state: 'failed' as const,
  url: 'https://x.test/',
  method: 'POST',
  headers: '{}',
  config: '{}',
  max_retries: 0,
  retried: 0,
  next_at: AT,
  created_at: AT,
  finished_at: AT + seq,
  dlq_id: `${AT + seq}-${seq}`,
  host: 'x.test',
  path: '/',
  partition: 0,
  labels: seq === LETTERS ? '|late|' : '',
})
const insert = write('test.insertLetters', function* (_: object): Transaction<void> {
  yield* insertAll(
    'messages',
    Array.from({ length: LETTERS }, (_, index) => letter(index + 1)),
  )
})

it('a search looks at a limited number of dead letters at a time, and says where it goes on', async () => {
  const store = new MemoryStore()
  await store.run(insert, {})
  const page = (more: object, filter: object = {}) =>
    store.run(messagesDead.deadSeqs, {
      accountId: 'acc',
      kind: 'http',
      dlqIds: undefined,
      order: 'earliestFirst',
      after: undefined,
      limit: 2,
      ...more,
      filter: { ...ANY_MESSAGE, ...filter },
    })
  const late = { labels: ['late'] }
  const first = await page({}, late)
  expect(first).toEqual({ seqs: [], cursor: `${AT + 2_000}-2000` })
  const second = await page({ after: first.cursor }, late)
  expect(second).toEqual({ seqs: [], cursor: `${AT + 4_000}-4000` })
  expect(await page({ after: second.cursor }, late)).toEqual({ seqs: [LETTERS], cursor: undefined })
  expect(await page({ order: 'latestFirst' }, late)).toEqual({ seqs: [LETTERS], cursor: `${AT + 2_501}-2501` })

  // A time is found at once, and nothing behind it is looked at.
  const one = { fromDate: AT + 3_000, toDate: AT + 3_000 }
  expect(await page({}, one)).toEqual({ seqs: [3_000], cursor: undefined })
  expect(await page({ order: 'latestFirst' }, one)).toEqual({ seqs: [3_000], cursor: undefined })
  const old = await page({ order: 'latestFirst' }, { toDate: AT + 5 })
  expect(old).toEqual({ seqs: [5, 4], cursor: `${AT + 4}-4` })
  expect(await page({ order: 'latestFirst', after: old.cursor, limit: 9 })).toEqual({
    seqs: [3, 2, 1],
    cursor: undefined,
  })
})
