import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import type { NewMessage } from '../../queue/transactions/messages.js'
import * as messages from '../../queue/transactions/messages.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as queueStats from './queue-stats.js'

const FROM = 1_700_000_000_000
const MINUTE = 60_000

describeOnEveryStore('the activity of a queue', (openStore) => {
  const message = (at: number, more: Partial<NewMessage> = {}): NewMessage => ({
    message_id: newId('msg_', at),
    account_id: 'acc',
    kind: 'http',
    url: 'http://x.test/a',
    method: 'POST',
    headers: '{}',
    body: Buffer.from('four'),
    config: '{}',
    max_retries: 3,
    next_at: 1,
    created_at: at,
    labels: '',
    caller_ip: null,
    host: 'x.test',
    path: '/a',
    ...more,
  })

  it('is counted by interval, kind and state, without other accounts and earlier times', async () => {
    const store = await openStore()
    const [early, last] = [FROM + 10, FROM + 2 * MINUTE - 1]
    await store.run(messages.insert, [
      message(FROM - 1),
      ...[message(FROM), message(early), message(last), message(last, { body: null })],
      ...[message(last, { kind: 'workflow' }), message(early, { account_id: 'other' })],
    ])
    const args = { accountId: 'acc', from: FROM, stepMs: MINUTE, most: 100 }
    const { messages: found, runs } = await store.run(queueStats.counts, args)
    const sorted = [...found].sort((a, b) => a.step - b.step || a.kind.localeCompare(b.kind))
    expect([sorted, runs]).toEqual([
      [
        { step: 0, kind: 'http', state: 'pending', count: 2, bytes: 8 },
        { step: 1, kind: 'http', state: 'pending', count: 2, bytes: 4 },
        { step: 1, kind: 'workflow', state: 'pending', count: 1, bytes: 4 },
      ],
      [],
    ])
    const newest = await store.run(queueStats.counts, { ...args, most: 1 })
    expect(newest.messages).toMatchObject([{ step: 1, count: 1 }])
  })
})
