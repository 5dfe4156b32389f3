import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { newAccountRows } from '../../accounts/testing/rows.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { messageRow } from '../../queue/testing/rows.js'
import * as messages from '../../queue/transactions/messages.js'
import { settle } from '../../queue/transactions/messages-settle.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import * as history from './alerts-history.js'
import * as sources from './alerts-sources.js'

const T = Date.parse('2026-03-01T12:00:00Z')
const MINUTE = 60_000

describeOnSampledStore('dead letters after the clock was set back', (openStore) => {
  const start = async () => {
    const store = await openStore()
    const accountId = randomUUID()
    await store.run(accounts.create, newAccountRows(accountId, T))
    const deadLetters = async (at: number, count = 1): Promise<void> => {
      const rows = Array.from({ length: count }, () =>
        messageRow({ message_id: `msg_${randomUUID()}`, account_id: accountId, created_at: at }),
      )
      const attempt = { startedAt: at, status: 500, headers: '{}', body: null, error: null }
      const seqs = await store.run(messages.insert, rows)
      await Promise.all(
        seqs.map((seq) => {
          const end = { kind: 'failed', dlqId: `${at}-${seq}` } as const
          return store.run(settle, { seq, retried: 0, at, end, follow: [], attempt })
        }),
      )
    }
    /** One look. Answers how many dead letters have been counted until then. */
    const countedAt = async (now: number): Promise<number> => {
      const watched = [{ accountId, createdAt: T }]
      for (const one of await store.run(sources.waiting, { watched, sources: ['dead_letter'], now })) {
        const ids = () => Array.from({ length: sources.MAX_RAISED }, () => randomUUID())
        while (await store.run(sources.collect, { ...one, ids: ids(), episodeIds: ids(), now }));
      }
      const alerts = await store.run(history.list, { accountId, before: Number.MAX_SAFE_INTEGER, limit: 99 })
      return alerts.reduce((sum, { count }) => sum + count, 0)
    }
    return { deadLetters, countedAt }
  }

  it('are counted once, also those of the repeated time', async () => {
    const { deadLetters, countedAt } = await start()
    await deadLetters(T + 60 * MINUTE, 3)
    expect(await countedAt(T + 60 * MINUTE)).toBe(3)
    await deadLetters(T + 80 * MINUTE, 2)
    expect(await countedAt(T + 80 * MINUTE)).toBe(5)
    // The clock is set back by 79 minutes.
    expect(await countedAt(T + MINUTE)).toBe(5)
    await deadLetters(T + 2 * MINUTE)
    expect(await countedAt(T + 2 * MINUTE)).toBe(6)
    await deadLetters(T + 59 * MINUTE)
    expect(await countedAt(T + 61 * MINUTE)).toBe(7)
    expect(await countedAt(T + 100 * MINUTE)).toBe(7)
    await deadLetters(T + 100 * MINUTE)
    expect(await countedAt(T + 100 * MINUTE)).toBe(8)
  })

  it('are not counted again at each look if there are more than the keys that it remembers', async () => {
    const { deadLetters, countedAt } = await start()
    await deadLetters(T + 30 * MINUTE, 1_100)
    await deadLetters(T + 31 * MINUTE, 1_100)
    expect(await countedAt(T + 31 * MINUTE)).toBe(2_200)
    for (const look of [1, 2, 3]) {
      await deadLetters(T + look * MINUTE)
      expect(await countedAt(T + look * MINUTE)).toBe(2_200 + look)
    }
  })
})
