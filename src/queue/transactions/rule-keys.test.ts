import { expect, it } from 'vitest'
import { all, read, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { MemoryStore } from '../../store/testing/memory-store.js'
import { draftMessage } from '../publish/draft.js'
import * as messagesCancel from './messages-cancel.js'
import { publish } from './messages-publish.js'
import * as messagesRetention from './messages-retention.js'
import * as ruleKeys from './rule-keys.js'

const T = 1_760_000_000_000
const DAY = 86_400_000

const keys = query<object, { rule_key: string }>(({ db }) => db.selectFrom('rule_keys').select('rule_key'))
const readKeys = read('test.readRuleKeys', function* (_: object): Transaction<string[]> {
  return (yield* all(keys, {})).map(({ rule_key }) => rule_key).sort()
})

it('deletes keys whose message has ended, after the retention time', () => {
  const store = new MemoryStore()
  const drafting = { accountId: 'acc', callerIp: null, now: T, limits: { timeoutMs: 1_000 } }
  const entryOf = (headers: Record<string, string>) =>
    draftMessage({ destination: 'http://x.test/', headers, body: undefined }, drafting)
  const publishOne = (headers: Record<string, string>, now = T) => {
    const entry = entryOf(headers)
    const [seq = 0] = store.run(publish, { entries: [entry], now }).seqs
    return { seq, messageId: entry.message.message_id }
  }
  const sweep = (now: number) =>
    store.run(messagesRetention.sweep, { after: 0, finishedBefore: now - 7 * DAY, now, limit: 100 })

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
