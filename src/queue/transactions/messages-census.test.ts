import { expect, it } from 'vitest'
import * as accounts from '../../accounts/transactions/accounts.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { SlicedCount } from '../../telemetry/index.js'
import { messageRow } from '../testing/rows.js'
import type { NewMessage } from './messages.js'
import * as messages from './messages.js'
import * as census from './messages-census.js'
import * as messagesSettle from './messages-settle.js'

const message = (id: number, more: Partial<NewMessage> = {}): NewMessage => {
  const own = { message_id: `msg_${id}`, account_id: `acc${id % 2}`, next_at: 10 + (id % 3), created_at: 1 }
  return messageRow({ ...own, ...more })
}

const account = (id: string) => ({
  account: {
    account_id: id,
    email: `${id}@x.test`,
    type: 'paid' as const,
    queue_user_id: id,
    queue_token_hash: id,
    signing_current: 'a',
    signing_next: 'b',
    created_at: 1,
  },
  key: { key_id: id, account_id: id, name: 'default', key_hash: id, read_only: 0 as const, created_at: 1 },
})

describeOnEveryStore('the census of messages', (openStore) => {
  const count = async (store: Store, what: census.CountedMessages, size: number): Promise<number | undefined> => {
    const slice = (after: census.CensusPlace) => store.run(census.slice, { what, after, size })
    // A count gives up after some time of a real clock.
    return new SlicedCount({ clock: new ManualClock(0), start: census.CENSUS_START, slice }).read()
  }

  it('counts the same in slices of every size, also where many are due at the same time', async () => {
    const store = await openStore()
    for (const what of ['pending', 'held', 'dead'] as const) expect(await count(store, what, 5)).toBe(0)
    expect(await store.run(census.earliest, { except: [] })).toEqual({ message: null, schedule: null })
    for (const id of ['acc0', 'acc1', 'idle']) await store.run(accounts.create, account(id))
    await store.run(
      messages.insert,
      Array.from({ length: 9 }, (_, id) => message(id)),
    )
    for (const size of [1, 2, 4, 9, 10]) expect(await count(store, 'pending', size)).toBe(9)
    expect(await store.run(census.earliest, { except: [] })).toEqual({ message: 10, schedule: null })
    expect(await store.run(census.earliest, { except: ['acc0'] })).toEqual({ message: 10, schedule: null })
    expect(await store.run(census.earliest, { except: ['acc0', 'acc1'] })).toEqual({ message: null, schedule: null })
    await store.run(messages.insert, [message(10, { next_at: 5 })])
    expect(await store.run(census.earliest, { except: ['acc0'] })).toEqual({ message: 10, schedule: null })
    expect(await store.run(census.earliest, { except: ['acc1'] })).toEqual({ message: 5, schedule: null })
  })

  it('counts the dead letters of all accounts', async () => {
    const store = await openStore()
    const seqs = await store.run(
      messages.insert,
      Array.from({ length: 6 }, (_, id) => message(id)),
    )
    const attempt = { startedAt: 1, status: 500, headers: '{}', body: null, error: null }
    for (const seq of seqs.slice(0, 5)) {
      const end = { kind: 'failed', dlqId: `dlq-${seq}` } as const
      await store.run(messagesSettle.settle, { seq, retried: 0, at: 20, attempt, end, follow: [] })
    }
    for (const size of [1, 2, 5, 6]) expect(await count(store, 'dead', size)).toBe(5)
    expect(await count(store, 'pending', 3)).toBe(1)
  })
})
