import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as flowKeys from './flow-keys.js'
import type { NewMessage } from './messages.js'
import * as messages from './messages.js'

const T = 1_700_000_000_000
const HOUR = 3_600_000

describeOnEveryStore('a flow-control key that messages name', (openStore) => {
  let store: Store
  let accountId = ''
  let made = 0

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(() => {
    accountId = `acc_${++made}`
  })

  const named = (key: string, createdAt: number, flow?: object): NewMessage => ({
    ...{ message_id: `msg_${++made}`, account_id: accountId, kind: 'http', url: 'http://x.test/', method: 'POST' },
    ...{ headers: '{}', body: null, config: JSON.stringify(flow ? { flow } : {}), max_retries: 0, next_at: T },
    ...{ created_at: createdAt, labels: '', flow_key: key, host: 'x.test', path: '/' },
  })
  const publish = (...entries: NewMessage[]) => store.run(messages.insert, entries)
  const row = async (key = 'k') => (await store.run(flowKeys.get, { accountId, key, now: T }))?.row

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
})
