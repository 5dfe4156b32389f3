import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { messageRow } from '../testing/rows.js'
import type { NewMessage } from './messages.js'
import * as messagesCancel from './messages-cancel.js'
import * as messagesPublish from './messages-publish.js'
import * as queues from './queues.js'

const T = 1_700_000_000_000

const held = (message_id: string, queue: string, account_id = 'acc'): NewMessage =>
  messageRow({
    message_id,
    account_id,
    max_retries: 3,
    created_at: T,
    queue,
  })

describeOnEveryStore('queue operations', (openStore) => {
  it('count the messages of a queue that have not ended, in batches', async () => {
    const store = await openStore()
    const messages = ['a', 'b', 'a', 'a', 'a', 'b', 'a'].map((queue, index) => held(`msg_${index}`, queue))
    const entries = messages.map((message) => ({ message, dedup: null }))
    const { seqs } = await store.run(messagesPublish.publish, { entries, now: T })
    await store.run(messagesCancel.cancel, { seqs: [seqs[3] ?? 0], at: T })
    const part = { accountId: 'acc', name: 'a', limit: 2 }
    const first = await store.run(queues.countWaiting, { ...part, after: 0 })
    expect(first).toEqual({ count: 2, next: seqs[2] })
    const second = await store.run(queues.countWaiting, { ...part, after: first.next ?? 0 })
    expect(second).toEqual({ count: 2, next: seqs[6] })
    const third = await store.run(queues.countWaiting, { ...part, after: second.next ?? 0 })
    expect(third).toEqual({ count: 0, next: undefined })
  })

  it('give turns, and take them back, within one account', async () => {
    const store = await openStore()
    const publish = (account: string, numbers: readonly number[]) => {
      const messages = numbers.map((number) => held(`msg_${account}${number}`, 'q', account))
      return store.run(messagesPublish.publish, {
        entries: messages.map((message) => ({ message, dedup: null })),
        now: T,
      })
    }
    const cancel = async (seq: number | undefined) =>
      (await store.run(messagesCancel.cancel, { seqs: [seq ?? 0], at: T })).offers.map((offer) => offer.message_id)
    const { seqs: first } = await publish('a', [1, 2, 3])
    const { turns } = await publish('b', [1, 2, 3])
    expect(turns.map((turn) => turn.message_id)).toEqual(['msg_b1'])
    const ofB = { accountId: 'b', name: 'q', now: T }
    const wider = await store.run(queues.upsert, { ...ofB, parallelism: 2, paused: 0 })
    expect(wider.map((turn) => turn.message_id)).toEqual(['msg_b2'])
    expect(await cancel(first[0])).toEqual(['msg_a2'])
    await store.run(queues.setPaused, { ...ofB, paused: 1 })
    expect(await cancel(first[1])).toEqual(['msg_a3'])
    const removed = await store.run(queues.removeWithRest, { accountId: 'b', name: 'q', most: 3, at: T })
    expect([removed?.length, await store.run(queues.get, { accountId: 'b', name: 'q' })]).toEqual([3, undefined])
    expect((await publish('a', [4])).turns).toEqual([])
    expect(await cancel(first[2])).toEqual(['msg_a4'])
  })
})
