import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { messageRow } from '../testing/rows.js'
import * as flowDue from './flow-due.js'
import * as flowKeys from './flow-keys.js'
import type { NewMessage } from './messages.js'
import * as messages from './messages.js'
import * as messagesCancel from './messages-cancel.js'
import * as messagesPublish from './messages-publish.js'
import * as messagesRetention from './messages-retention.js'

const T = 1_700_000_000_000
const HOUR = 3_600_000

describeOnEveryStore('a key that messages name', (openStore) => {
  let store: Store
  let accountId = ''
  let made = 0

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(() => {
    accountId = `acc_${++made}`
  })

  const named = (key: string, createdAt: number, flow?: object): NewMessage =>
    messageRow({
      message_id: `msg_${++made}`,
      account_id: accountId,
      config: JSON.stringify(flow ? { flow } : {}),
      next_at: T,
      created_at: createdAt,
      flow_key: key,
    })
  const publish = (...entries: NewMessage[]) => store.run(messages.insert, entries)
  const row = async (key = 'k') => store.run(flowKeys.get, { accountId, key })

  it('is written again only when its limits differ or its row is an hour old', async () => {
    await publish(named('k', T, { parallelism: 2 }))
    expect(await row()).toMatchObject({ parallelism: 2, rate: null, updated_at: T })
    await publish(named('k', T + 1, { parallelism: 2 }), named('k', T + 2))
    expect(await row()).toMatchObject({ parallelism: 2, updated_at: T })
    await publish(named('k', T + 3, { parallelism: 2, rate: 5 }))
    expect(await row()).toMatchObject({ parallelism: 2, rate: 5, period_s: 1, updated_at: T + 3 })
    await publish(named('k', T + 3 + HOUR))
    expect(await row()).toMatchObject({ parallelism: 2, rate: 5, updated_at: T + 3 + HOUR })
  })

  it('keeps pinned limits, whatever messages say', async () => {
    await publish(named('k', T))
    const change = { parallelism: 1, pinned_parallelism: 1 as const }
    await store.run(flowKeys.modify, { accountId, key: 'k', change, create: false, at: T + 1 })
    await publish(named('k', T + 2, { parallelism: 9 }))
    expect(await row()).toMatchObject({ parallelism: 1, updated_at: T + 1 })
    await publish(named('k', T + 3, { parallelism: 9, rate: 3 }))
    expect(await row()).toMatchObject({ parallelism: 1, rate: 3 })
  })

  it('gets the limits of its last message, beside other keys of the same publish', async () => {
    await publish(named('b', T, { rate: 1 }), named('a', T, { rate: 2 }), named('b', T, { rate: 3, period: 60 }))
    expect([await row('a'), await row('b')]).toMatchObject([{ rate: 2 }, { rate: 3, period_s: 60 }])
  })

  it('is read with all others a page at a time', async () => {
    await publish(...['c', 'a', 'b'].map((key) => named(key, T)))
    const read: string[][] = []
    for (let after: flowKeys.KeyPlace | undefined = { account_id: accountId, flow_key: '' }; after; ) {
      const page: flowKeys.FlowKeyRow[] = await store.run(flowKeys.page, { after, limit: 2 })
      read.push(page.filter((key) => key.account_id === accountId).map((key) => key.flow_key))
      after = page.length === 2 ? page[1] : undefined
    }
    expect(read.slice(0, 2)).toEqual([['a', 'b'], ['c']])
  })

  it('is deleted once no message has named it for long, unless one is pending or somebody has pinned it', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const seqs = await publish(...names.map((key) => named(key, T)))
    await store.run(messagesCancel.cancel, { seqs, at: T })
    await publish(named('bb', T), named('late', T + HOUR))
    const change = { pinned_rate: 1 as const }
    await store.run(flowKeys.modify, { accountId, key: 'pinned', change, create: true, at: T })
    const removed: string[] = []
    for (let after: flowKeys.KeyPlace | undefined = { account_id: accountId, flow_key: '' }; after; ) {
      const swept: flowKeys.Swept = await store.run(flowKeys.sweep, { before: T + 1, after, limit: 2 })
      removed.push(...swept.removed.filter((key) => key.account_id === accountId).map((key) => key.flow_key))
      after = swept.next
    }
    expect(removed.sort()).toEqual(names)
    const page = { accountId, search: '', after: '', limit: 9, now: T + HOUR }
    const keysOf = async (some: Partial<flowKeys.KeyPage>) =>
      (await store.run(flowKeys.list, { ...page, ...some })).map(({ row, due }) => [row.flow_key, due])
    expect(await keysOf({})).toEqual([
      ['bb', 1],
      ['late', 1],
      ['pinned', 0],
    ])
    expect(await keysOf({ after: 'bb', limit: 1 })).toEqual([['late', 1]])
    expect(await keysOf({ search: 'a', after: 'bb' })).toEqual([['late', 1]])
  })

  it('is counted in steps', async () => {
    await publish(...Array.from({ length: flowKeys.MAX_DUE + 7 }, () => named('many', T)))
    await publish(named('many', T + 1), named('other', T))
    const [many] = await store.run(flowKeys.list, { accountId, search: 'many', after: '', limit: 9, now: T })
    expect(many?.due).toBe(flowKeys.MAX_DUE)
    const counts: number[] = []
    for (let after: flowDue.DueCount['next'] = flowDue.FIRST_DUE; after; ) {
      const some: flowDue.DueCount = await store.run(flowDue.count, {
        accountId,
        key: 'many',
        now: T,
        after,
        limit: 50,
      })
      counts.push(some.count)
      after = some.next
    }
    expect(counts).toEqual([50, 50, 8])
  })

  it('of a deduplication is deleted once it has expired, a few at a time', async () => {
    const { flow_key, ...message } = named('', T)
    const entries = [1, 2, 3].map((expiresAt) => ({
      message: { ...message, message_id: `msg_dedup_${expiresAt}` },
      dedup: { key: `expires ${expiresAt}`, expiresAt },
    }))
    await store.run(messagesPublish.publish, { entries, now: 0 })
    const step = () => store.run(messagesRetention.removeExpiredKeys, { now: 3, limit: 2 })
    expect([await step(), await step()]).toEqual([true, false])
  })
})
