import { expect, it } from 'vitest'
import type { PublishItem } from '../types.js'
import { draftMessage } from './draft.js'
import { Drafter } from './drafter.js'

const drafting = { accountId: 'acc', callerIp: null, now: 1_700_000_000_000, limits: { timeoutMs: 60_000 } }
const DESTINATION = 'https://x.test/hook'

const item = (headers: Record<string, string> = {}, more: Partial<PublishItem> = {}): PublishItem => ({
  destination: DESTINATION,
  headers,
  body: Buffer.from('body'),
  ...more,
})

const drafted = (items: readonly PublishItem[]) => {
  const drafter = new Drafter(drafting, new Map(), 'everything')
  return items.flatMap((each) => drafter.draft(each).entries)
}

it('drafts items in a row as it drafts each of them alone', () => {
  const label = { 'upstash-label': 'a', 'content-type': 'text/plain' }
  const items = [
    item(label),
    item({ ...label }),
    item({ ...label }, { body: Buffer.from('other') }),
    item({ ...label }, { body: undefined }),
    item({ ...label, 'upstash-label': 'b' }),
    item({ 'upstash-label': 'b' }),
    item({ 'upstash-label': 'b' }, { queue: 'q' }),
    item({ 'upstash-label': 'b' }, { queue: 'q', destination: 'https://y.test/' }),
    item({ 'upstash-content-based-deduplication': 'true' }),
    item({ 'upstash-content-based-deduplication': 'true' }, { body: Buffer.from('other') }),
    item({ 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'rate=1' }),
    item({ 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'rate=2' }),
  ]
  const anyId = { message_id: expect.stringMatching(/^msg_/) }
  const alone = items.map((each) => draftMessage(each, drafting))
  const entries = drafted(items)
  expect(entries).toEqual(alone.map(({ message, dedup }) => ({ message: { ...message, ...anyId }, dedup })))
  expect(new Set(entries.map(({ message }) => message.message_id)).size).toBe(items.length)
})

it('refuses each item of a row that is forbidden or wrong', () => {
  const drafter = new Drafter(drafting, new Map(), 'public')
  drafter.draft(item())
  const refused = (headers: Record<string, string>, more?: Partial<PublishItem>) => () =>
    drafter.draft(item(headers, more))
  for (let time = 0; time < 2; time++) {
    expect(refused({}, { destination: 'http://127.0.0.1/' })).toThrow(/127\.0\.0\.1/)
    expect(refused({ 'upstash-callback': 'http://10.0.0.1/' })).toThrow(/10\.0\.0\.1/)
    expect(refused({ 'upstash-retries': 'many' })).toThrow(/Upstash-Retries/)
    expect(drafter.draft(item()).entries).toHaveLength(1)
  }
})
