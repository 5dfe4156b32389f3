import { beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { newId } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { ActivityMeter, BLOCK_MS, MINUTE_MS, silentLogger } from '../telemetry/index.js'
import { ActivityLog } from './activity-log.js'
import * as activityBlocks from './transactions/activity-blocks.js'

const HOUR_MS = 60 * MINUTE_MS
const T = Math.floor(1_800_000_000_000 / HOUR_MS) * HOUR_MS
const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)

describeOnEveryStore('the activity of accounts', (openStore) => {
  let store: Store

  beforeAll(async () => {
    store = await openStore()
  })

  const account = (): string => newId('acc_', Date.now())

  /** A process that counts, with the log that stores it. */
  async function started(clock: ManualClock) {
    const meter = new ActivityMeter(() => clock.now())
    const log = new ActivityLog({ store, clock, logger: silentLogger, meter })
    await log.start()
    return { meter, log }
  }

  it('adds up what several processes have counted, also those that have stopped', async () => {
    const clock = new ManualClock(T + 30 * MINUTE_MS)
    const accountId = account()
    const before = await started(clock)
    before.meter.add(accountId, 'published', 2)
    before.meter.add(accountId, 'failed_runs')
    await before.log.stop()
    const node = await started(clock)
    const other = await started(clock)
    node.meter.add(accountId, 'published', 10)
    node.meter.add(account(), 'published', 1_000)
    other.meter.add(accountId, 'published', 100)
    await other.log.stop()
    const hour = await node.log.read(accountId, '1h')
    expect(hour).toMatchObject({ from: (T - 29 * MINUTE_MS) / 1_000, step_seconds: 60 })
    expect(hour.series.published).toHaveLength(60)
    expect(hour.series.published[59]).toBe(112)
    expect(hour.series.failed_runs[59]).toBe(1)
    expect(sumOf(hour.series.published)).toBe(112)
    const day = await node.log.read(accountId, '1d')
    expect(day.series.published).toHaveLength(96)
    expect(day.series.published[95]).toBe(112)
    await node.log.stop()
  })

  it('counts nothing twice when a block is stored again and again', async () => {
    const clock = new ManualClock(T)
    const accountId = account()
    const { meter, log } = await started(clock)
    for (let minute = 0; minute < 20; minute++) {
      meter.add(accountId, 'delivered', 5)
      clock.advance(MINUTE_MS)
    }
    const isStored = async () => (await store.run(activityBlocks.since, { accountId, from: 0 })).length === 2
    await waitFor(isStored, { what: 'both blocks to be stored' })
    const expected = [...Array.from({ length: 20 }, () => 5), 0]
    const { series: own } = await log.read(accountId, '1h')
    expect(own.delivered.slice(-21)).toEqual(expected)
    await log.stop()
    const next = await started(clock)
    const { series: stored } = await next.log.read(accountId, '1h')
    expect(stored.delivered.slice(-21)).toEqual(expected)
  })

  it('deletes what is older than a day, in batches', async () => {
    const old = newId('writer', 1)
    const blocks = Array.from({ length: 1_100 }, (_, index) => ({
      account_id: `old-${index}`,
      start: T - 30 * HOUR_MS,
      writer: old,
      counts: '[]',
    }))
    await store.run(activityBlocks.store, { blocks })
    const kept = { account_id: account(), start: T - BLOCK_MS, writer: old, counts: '[[0,1]]' }
    await store.run(activityBlocks.store, { blocks: [kept] })
    const before = T - 25 * HOUR_MS
    let batches = 1
    while ((await store.run(activityBlocks.expire, { before })) === 'more') batches++
    expect(batches).toBe(4)
    expect(await store.run(activityBlocks.since, { accountId: 'old-1099', from: 0 })).toEqual([])
    expect(await store.run(activityBlocks.since, { accountId: kept.account_id, from: 0 })).toEqual([kept])
  })
})
