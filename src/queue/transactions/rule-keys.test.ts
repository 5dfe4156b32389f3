import { expect, it } from 'vitest'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, only, type Transaction } from '../../store/statement.js'
import { MemoryStore } from '../../store/testing/memory-store.js'
import { draftMessage } from '../publish/draft.js'
import * as messagesCancel from './messages-cancel.js'
import { publish } from './messages-publish.js'
import { undoMessages } from './messages-undo.js'
import * as ruleKeys from './rule-keys.js'

const T = 1_760_000_000_000
const DAY = 86_400_000

const keys = query<object, { rule_key: string }>(({ db }) => db.selectFrom('rule_keys').select('rule_key'))
const readKeys = read('test.readRuleKeys', function* (_: object): Transaction<string[]> {
  return (yield* all(keys, {})).map(({ rule_key }) => rule_key).sort()
})

const dueOf = query<{ seq: number }, { next_at: number }>(({ db, p }) =>
  db.selectFrom('messages').select('next_at').where('seq', '=', p.seq),
)
const readDue = read('test.readDue', function* (args: { seq: number }): Transaction<number> {
  return (yield* only(dueOf, args)).next_at
})
const undo = write('test.undo', undoMessages)

/** Publishes to one account of a store in memory. */
function publisher(store: MemoryStore) {
  const drafting = { accountId: 'acc', callerIp: null, limits: { timeoutMs: 1_000 } }
  return (headers: Record<string, string>, now = T) => {
    const entry = draftMessage({ destination: 'http://x.test/', headers, body: undefined }, { ...drafting, now })
    const [seq = 0] = store.run(publish, { entries: [entry], now }).seqs
    return { seq, messageId: entry.message.message_id }
  }
}

it('a message that is brought back with a held clock moves the beginning of its burst by the time it was cancelled', () => {
  const store = new MemoryStore()
  const publishOne = publisher(store)
  const MINUTE = 60_000
  const headersOf = (key: string) => ({
    'homeport-debounce': key,
    'homeport-debounce-delay': '10m',
    'homeport-debounce-max-delay': '1h',
  })
  const at = T + 5 * MINUTE + 5 * 60 * MINUTE
  const dueAfter = (clock: 'original' | 'hold'): number => {
    const { seq } = publishOne(headersOf(clock))
    store.run(messagesCancel.cancel, { seqs: [seq], at: T + 5 * MINUTE })
    const range = { accountId: 'acc', from: 0, to: Number.MAX_SAFE_INTEGER }
    expect(store.run(undo, { seqs: [seq], ...range, clock, at }).seqs).toEqual([seq])
    const next = publishOne(headersOf(clock), at + MINUTE)
    return store.run(readDue, next) - at
  }
  expect(dueAfter('original')).toBe(MINUTE)
  expect(dueAfter('hold')).toBe(11 * MINUTE)
  store.close()
})

it('retention deletes the keys of messages that have ended', () => {
  const store = new MemoryStore()
  const publishOne = publisher(store)
  const sweep = (now: number) => {
    for (let from: number | undefined = 0; from !== undefined; )
      from = store.run(ruleKeys.sweep, { from, before: now - 7 * DAY, limit: 1 })
  }

  publishOne({ 'homeport-singleton': 'pending' })
  const over = publishOne({ 'homeport-singleton': 'over' })
  const again = publishOne({ 'homeport-singleton': 'used again' })
  const long = `${'x'.repeat(400)}${'ü'.repeat(112)}`
  const sent = publishOne({ 'homeport-debounce': long, 'homeport-debounce-delay': '1s' })
  expect(store.run(readKeys, {})).toEqual(['over', 'pending', expect.stringMatching(/^sha256 \w{64}$/), 'used again'])
  expect(store.run(ruleKeys.close, { accountId: 'acc', messageId: sent.messageId })).toBe(true)
  store.run(messagesCancel.cancel, { seqs: [over.seq, again.seq, sent.seq], at: T + 1 })
  expect(store.run(ruleKeys.close, { accountId: 'acc', messageId: sent.messageId })).toBe(false)
  sweep(T + DAY)
  expect(store.run(readKeys, {})).toEqual(['over', 'pending', 'used again'])
  publishOne({ 'homeport-singleton': 'used again' }, T + 6 * DAY)
  sweep(T + 8 * DAY)
  expect(store.run(readKeys, {})).toEqual(['pending', 'used again'])
  store.close()
})
