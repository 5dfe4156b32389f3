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
  const drafter = new Drafter(drafting.limits, 'everything')
  return items.flatMap((each) => drafter.draft(each, drafting, new Map()).entries)
}

it('the drafter drafts items in a row as it drafts each of them alone', () => {
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
    item({ 'upstash-forward-x-a': '1' }),
    item({ 'upstash-forward-x-a': '1', 'x-b': '2' }),
    item({ 'upstash-forward-x-a': '2' }),
    item({ 'upstash-forward-x-a': '2', 'upstash-forward-x-c': '3' }),
    item({ 'upstash-header-forward': 'true', 'x-b': '1' }),
    item({ 'upstash-header-forward': 'true', 'x-b': '2' }),
    item({ 'upstash-deduplication-id': '1' }),
    item({ 'upstash-deduplication-id': '2' }),
    item({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }),
    item({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01' }),
    item({ 'homeport-priority': '5' }),
    item({ 'homeport-priority': '6' }),
  ]
  const anyId = { message_id: expect.stringMatching(/^msg_/) }
  const alone = items.map((each) => draftMessage(each, drafting))
  const entries = drafted(items)
  expect(entries).toEqual(alone.map(({ message, dedup }) => ({ message: { ...message, ...anyId }, dedup })))
  expect(new Set(entries.map(({ message }) => message.message_id)).size).toBe(items.length)
})

it('the drafter drafts the same item for others and later as if it were the first', () => {
  const drafter = new Drafter(drafting.limits, 'everything')
  const later = { ...drafting, accountId: 'other', callerIp: '192.0.2.1', now: drafting.now + 60_000, partition: 7 }
  const times: Record<string, string>[] = [
    {},
    { 'upstash-delay': '10s' },
    { 'upstash-not-before': String(drafting.now / 1_000 + 30) },
    { 'homeport-debounce': 'k', 'homeport-debounce-delay': '10s' },
  ]
  for (const each of times.map((headers) => item(headers)))
    for (const how of [drafting, drafting, later, later]) {
      const [entry] = drafter.draft(each, how, new Map()).entries
      const { message, dedup, rule } = draftMessage(each, how)
      expect(entry).toEqual({ message: { ...message, message_id: expect.any(String) }, dedup, ...(rule && { rule }) })
    }
})

it('the drafter drafts items for more destinations than it remembers, and long ones', () => {
  const drafter = new Drafter(drafting.limits, 'everything')
  const urlOf = (each: PublishItem) => drafter.draft(each, drafting, new Map()).entries[0]?.message.url
  for (let number = 0; number < 1_200; number++) {
    const destination = `https://x.test/${number}`
    expect(urlOf(item({}, { destination }))).toBe(destination)
  }
  const long = item({ 'upstash-forward-x': 'x'.repeat(3_000) })
  expect(drafter.draft(long, drafting, new Map())).toMatchObject({ kind: 'single' })
})

it('the drafter refuses each item of a row that is forbidden or wrong', () => {
  const drafter = new Drafter(drafting.limits, 'public')
  const draft = (each: PublishItem) => drafter.draft(each, drafting, new Map())
  draft(item())
  const refused = (headers: Record<string, string>, more?: Partial<PublishItem>) => () => draft(item(headers, more))
  for (let time = 0; time < 2; time++) {
    expect(refused({}, { destination: 'http://127.0.0.1/' })).toThrow(/127\.0\.0\.1/)
    expect(refused({ 'upstash-callback': 'http://10.0.0.1/' })).toThrow(/10\.0\.0\.1/)
    expect(refused({ 'upstash-retries': 'many' })).toThrow(/Upstash-Retries/)
    expect(draft(item()).entries).toHaveLength(1)
  }
})
