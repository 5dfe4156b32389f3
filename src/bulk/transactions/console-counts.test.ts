import { expect, it } from 'vitest'
import { messageRow } from '../../queue/testing/rows.js'
import type { NewMessage } from '../../queue/transactions/messages.js'
import * as messages from '../../queue/transactions/messages.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as consoleCounts from './console-counts.js'

describeOnEveryStore('the counts of an account', (openStore) => {
  const message = (message_id: string, more: Partial<NewMessage> = {}): NewMessage =>
    messageRow({ message_id, account_id: 'acc', created_at: 1, ...more })

  it('stop at a maximum, and exclude other accounts', async () => {
    const store = await openStore()
    const count = (accountId: string, most: number) => store.run(consoleCounts.ofAccount, { accountId, most })
    const none = { pendingMessages: 0, deadMessages: 0, activeRuns: 0, deadRuns: 0, activeActions: 0 }
    expect(await count('acc', 10)).toEqual(none)
    const own = ['1', '2', '3'].map((id) => message(id))
    // Deliveries of runs count as runs.
    const others = [message('4', { kind: 'workflow' }), message('5', { account_id: 'other' })]
    await store.run(messages.insert, [...own, ...others])
    expect(await count('acc', 10)).toEqual({ ...none, pendingMessages: 3 })
    expect(await count('acc', 2)).toEqual({ ...none, pendingMessages: 2, morePending: true })
    expect(await count('other', 10)).toEqual({ ...none, pendingMessages: 1 })
  })

  it('look at all pending rows where most are messages, and at some where most are deliveries of runs', async () => {
    const store = await openStore()
    const rows = (account_id: string, kind: string) =>
      Array.from({ length: 2_100 }, (_, n) => message(`${kind}-${n}`, { account_id, kind }))
    await store.run(messages.insert, [...rows('queue', 'http'), ...rows('runs', 'workflow')])
    const count = (accountId: string) => store.run(consoleCounts.ofAccount, { accountId, most: 10_000 })
    const all = await count('queue')
    expect([all.pendingMessages, all.morePending]).toEqual([2_100, undefined])
    const some = await count('runs')
    expect([some.pendingMessages, some.morePending]).toEqual([0, true])
  })
})
