import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { messageRow } from '../testing/rows.js'
import type { NewMessage } from './messages.js'
import * as messagesCancel from './messages-cancel.js'
import * as messagesPublish from './messages-publish.js'
import * as queues from './queues.js'

const T = 1_700_000_000_000

const held = (message_id: string, queue: string): NewMessage =>
  messageRow({
    message_id,
    account_id: 'acc',
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
})
