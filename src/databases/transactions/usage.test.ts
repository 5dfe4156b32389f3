import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import * as accounts from '../../accounts/transactions/accounts.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import { creationOf } from '../testing/rows.js'
import * as databases from './databases.js'
import * as changes from './databases-changes.js'
import * as usage from './usage.js'
import * as rollups from './usage-rollups.js'
import { mergeSamples, NO_LATENCY, type UsageSample } from './usage-sample.js'
import * as stats from './usage-stats.js'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** Midnight, which is the start of a bucket of every tier. */
const T0 = Math.floor(1_800_000_000_000 / DAY) * DAY

const sample = (reads: number, keys = 0): UsageSample => ({
  counters: {
    requests: reads,
    reads,
    writes: 0,
    scripts: 0,
    others: 0,
    bytesIn: 0,
    bytesOut: 0,
    hits: reads,
    misses: 0,
  },
  gauges: { open: 1, monitors: 0, keys, usedBytes: 10, diskBytes: 20 },
  connections: reads,
  readLatency: { count: reads, sumUs: reads * 8, steps: [4, reads] },
  writeLatency: NO_LATENCY,
  commands: { GET: reads },
})

const dayOf = (day: number, requests: number): usage.DayTotals => ({
  day,
  requests,
  reads: requests,
  writes: 0,
  scripts: 0,
  others: 0,
  bytes_in: 1,
  bytes_out: 2,
  cost_nano: 5 * requests,
  held_kib_s: 7,
})

const standingOf = (database_id: string, accounted_at = T0): usage.StandingRow => ({
  database_id,
  accounted_at,
  plan: 'payg',
  looked_at: T0,
  keys: 1,
  used_bytes: 10,
  disk_bytes: 20,
})

describeOnEveryStore('transactions of usage', (openStore) => {
  let store: Store
  let accountId: string

  beforeEach(async () => {
    store ??= await openStore()
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    accountId = randomUUID()
    const secrets = { queue_user_id: accountId, queue_token_hash: accountId, signing_current: 'a', signing_next: 'b' }
    await store.run(accounts.create, {
      account: { account_id: accountId, email: `${accountId}@x`, type: 'paid', created_at: 1, ...secrets },
      key: {
        key_id: accountId,
        account_id: accountId,
        name: 'd',
        key_hash: accountId,
        read_only: 0,
        created_at: 1,
      },
    })
  })

  const auditOf = (entity: string) => ({
    log_id: randomUUID(),
    actor: 'a',
    source: 'SYSTEM',
    action: 'Act',
    entity,
    details: '{}',
    ip: '',
    at: T0,
  })

  async function database(): Promise<string> {
    const id = randomUUID()
    await store.run(databases.create, creationOf(id, accountId, T0))
    await store.run(databases.finishCreate, { databaseId: id, audit: { ...auditOf(id), account_id: accountId } })
    return id
  }

  const add = (databaseId: string, start: number, updates: Partial<usage.UsageUpdate>) =>
    store.run(usage.add, { start, updates: [{ standing: standingOf(databaseId), days: [], ...updates }] })
  const reportOf = (databaseId: string, window: Partial<stats.SeriesWindow> = {}) =>
    store.run(stats.report, {
      accountId,
      databaseId,
      sinceDay: T0,
      window: { from: T0, stepMs: MINUTE, count: 60, tierMs: usage.FIRST_TIER_MS, ...window },
    })
  const readsIn = (report: stats.UsageReport | undefined) =>
    report?.steps.map((step) => step?.counters.reads).filter((reads) => reads !== undefined)

  it('loses nothing when several writers add to it at the same time', async () => {
    const ids = [await database(), await database()]
    const both = (order: readonly string[]) => {
      const updates = order.map((id) => ({ standing: standingOf(id), days: [dayOf(T0, 1)], sample: sample(1) }))
      return store.run(usage.add, { start: T0, updates })
    }
    await Promise.all(Array.from({ length: 20 }, (_, index) => both(index % 2 === 0 ? ids : [...ids].reverse())))
    const { month } = await store.run(usage.load, { monthStart: T0, monthEnd: T0 + 31 * DAY })
    const found = month.filter((row) => ids.includes(row.database_id))
    expect(found.map((row) => row.requests)).toEqual([20, 20])
  })

  it('merges samples of the same bucket, for many databases in one write', async () => {
    const [one, other] = [await database(), await database()]
    await add(one, T0, { sample: sample(2, 5), days: [dayOf(T0, 2)] })
    const updates = [one, other].map((id) => ({ standing: standingOf(id), sample: sample(3, 6), days: [dayOf(T0, 3)] }))
    await store.run(usage.add, { start: T0, updates })
    const report = await reportOf(one)
    expect(report?.steps[0]).toEqual(mergeSamples(sample(2, 5), sample(3, 6)))
    expect(report?.steps[0]?.readLatency).toEqual({ count: 5, sumUs: 40, steps: [4, 5] })
    expect(report?.days).toEqual([{ ...dayOf(T0, 5), database_id: one, bytes_in: 2, bytes_out: 4, held_kib_s: 14 }])
    expect(readsIn(await reportOf(other))).toEqual([3])
    // Counted by a clock that was ahead.
    await add(other, T0, { days: [dayOf(T0 + 40 * DAY, 9)] })
    const { month, standings } = await store.run(usage.load, { monthStart: T0, monthEnd: T0 + 31 * DAY })
    expect(month).toContainEqual({ database_id: one, requests: 5, cost_nano: 25, bytes: 6 })
    expect(month.find((row) => row.database_id === other)?.requests).toBe(3)
    expect(standings).toContainEqual(standingOf(one))
  })

  it('shows usage to the owner only, and skips a database that does not exist', async () => {
    const id = await database()
    const args = {
      databaseId: id,
      sinceDay: T0,
      window: { from: T0, stepMs: MINUTE, count: 1, tierMs: MINUTE } as const,
    }
    expect(await store.run(stats.report, { ...args, accountId: 'somebody else' })).toBeUndefined()
    const unknown = randomUUID()
    await add(unknown, T0, { sample: sample(1), days: [dayOf(T0, 1)] })
    const { standings } = await store.run(usage.load, { monthStart: T0, monthEnd: T0 + 31 * DAY })
    expect(standings.map((row) => row.database_id)).not.toContain(unknown)
  })

  it('deletes the usage of a deleted database', async () => {
    const id = await database()
    await add(id, T0, { sample: sample(1), days: [dayOf(T0, 1)] })
    const audit = { ...auditOf(id), account_id: accountId }
    await store.run(databases.beginDelete, { accountId, databaseId: id, audit })
    await add(id, T0, { sample: sample(1) })
    await store.run(databases.finishDelete, { databaseId: id })
    const { month, standings } = await store.run(usage.load, { monthStart: T0, monthEnd: T0 + 31 * DAY })
    expect([...month, ...standings].map((row) => row.database_id)).not.toContain(id)
  })

  it('returns the last gauges before a window, and none for a new database', async () => {
    const id = await database()
    expect((await reportOf(id))?.before).toBeUndefined()
    await add(id, T0 - MINUTE, { sample: sample(1, 9) })
    expect((await reportOf(id))?.before).toEqual({ at: T0 - MINUTE, gauges: sample(1, 9).gauges })
  })

  describe('suspension', () => {
    it('is entered and left once, with an audit entry each time', async () => {
      const id = await database()
      const args = () => ({ databaseId: id, audit: auditOf(id) })
      expect(await store.run(changes.resume, args())).toBeUndefined()
      expect(await store.run(changes.suspend, args())).toMatchObject({ database_id: id, state: 'suspended' })
      expect(await store.run(changes.suspend, args())).toBeUndefined()
      expect(await store.run(databases.get, { accountId, databaseId: id })).toMatchObject({ state: 'suspended' })
      expect(await store.run(changes.resume, args())).toMatchObject({ state: 'active' })
      const log = await store.run(accounts.auditLog, { accountId, limit: 9 })
      expect(log).toHaveLength(3)
    })

    it('is refused during another change', async () => {
      const id = await database()
      await store.run(databases.beginDelete, {
        accountId,
        databaseId: id,
        audit: { ...auditOf(id), account_id: accountId },
      })
      expect(await store.run(changes.suspend, { databaseId: id, audit: auditOf(id) })).toBeUndefined()
    })
  })
})

describeOnEveryStore('usage series', (openStore) => {
  const TWELVE = 12 * MINUTE
  const HOUR = 60 * MINUTE

  async function filled(minutes: number, ids: readonly string[], begin = 0) {
    const store = await openStore()
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    const secrets = { queue_user_id: 'u', queue_token_hash: 'u', signing_current: 'a', signing_next: 'b' }
    await store.run(accounts.create, {
      account: { account_id: 'a', email: 'a@x', type: 'paid', created_at: 1, ...secrets },
      key: { key_id: 'k', account_id: 'a', name: 'd', key_hash: 'k', read_only: 0, created_at: 1 },
    })
    for (const id of ids) {
      await store.run(databases.create, creationOf(id, 'a', T0))
    }
    const use = async (from: number, to: number): Promise<void> => {
      for (let minute = from; minute < to; minute++) {
        const updates = ids.map((id) => ({ standing: standingOf(id), days: [], sample: sample(1, minute) }))
        await store.run(usage.add, { start: T0 + minute * MINUTE, updates })
      }
    }
    await use(begin, minutes)
    const rollUp = async (tier: 1 | 2, endedBefore: number) => {
      let steps = 0
      for (let after = ''; ; steps++) {
        const outcome = await store.run(rollups.rollUp, { tier, endedBefore, after, limit: 2 })
        if (outcome.kind === 'done') return steps
        after = outcome.after
      }
    }
    const reads = async (stepMs: number, tierMs: usage.TierMs) => {
      const window = { from: T0, stepMs, count: (2 * HOUR) / stepMs, tierMs }
      const report = await store.run(stats.report, { accountId: 'a', databaseId: 'd2', sinceDay: T0, window })
      return report?.steps.map((step) => step?.counters.reads ?? 0)
    }
    const keysBefore = async (from: number) => {
      const window = { from, stepMs: MINUTE, count: 60, tierMs: MINUTE } as const
      const report = await store.run(stats.report, { accountId: 'a', databaseId: 'd2', sinceDay: T0, window })
      return report?.before?.gauges.keys
    }
    return { store, use, rollUp, reads, keysBefore }
  }

  it('say nothing of before a window by a long bucket that began before it', async () => {
    const { rollUp, keysBefore } = await filled(50, ['d2'], 40)
    await rollUp(1, T0 + HOUR)
    await rollUp(2, T0 + HOUR)
    expect(await keysBefore(T0 + 38 * MINUTE)).toBeUndefined()
    expect(await keysBefore(T0 + 43 * MINUTE)).toBe(42)
    expect(await keysBefore(T0 + HOUR)).toBe(49)
  })

  it('are the same in short and long buckets, and samples are kept until they are merged', async () => {
    const { store, rollUp, reads } = await filled(90, ['d1', 'd2', 'd3'])
    const everything = { tiers: [T0 + DAY, T0 + DAY, T0 + DAY], days: T0 } as const
    for (let left = 'more'; left === 'more'; ) left = await store.run(rollups.expire, everything)
    const expected = { twelve: [12, 12, 12, 12, 12, 12, 12, 6, 0, 0], hour: [60, 30] }
    expect(await reads(TWELVE, MINUTE)).toEqual(expected.twelve)
    expect(await rollUp(1, T0 + 90 * MINUTE)).toBe(2 * 7)
    expect(await rollUp(1, T0 + 90 * MINUTE)).toBe(0)
    expect(await reads(TWELVE, TWELVE)).toEqual(expected.twelve)
    await rollUp(2, T0 + 90 * MINUTE)
    expect(await reads(HOUR, HOUR)).toEqual(expected.hour)
    const expiry = { tiers: [T0 + 80 * MINUTE, T0 + 48 * MINUTE, 0], days: 0 } as const
    for (let left = 'more'; left === 'more'; ) left = await store.run(rollups.expire, expiry)
    expect(await reads(HOUR, HOUR)).toEqual(expected.hour)
    expect(await reads(MINUTE, MINUTE)).toEqual([...Array(80).fill(0), ...Array(10).fill(1), ...Array(30).fill(0)])
  })

  it('go on after a clock that was ahead is set back, and keep what was merged before', async () => {
    const { store, use, rollUp, reads } = await filled(24, ['d1', 'd2', 'd3'])
    await rollUp(1, T0 + 24 * MINUTE)
    await use(72, 84)
    await rollUp(1, T0 + 84 * MINUTE)
    // From here on, some minutes come a second time.
    await rollUp(1, T0 + 18 * MINUTE)
    await use(18, 48)
    await rollUp(1, T0 + 48 * MINUTE)
    const expiry = { tiers: [T0 + DAY, T0, T0], days: 0 } as const
    for (let left = 'more'; left === 'more'; ) left = await store.run(rollups.expire, expiry)
    expect(await reads(TWELVE, TWELVE)).toEqual([12, 12, 12, 12, 0, 0, 12, 0, 0, 0])
  })
})
