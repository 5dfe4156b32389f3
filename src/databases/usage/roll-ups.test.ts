import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { type Clock, yieldToEventLoop } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import type { Store } from '../../store/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { recordedLog } from '../../telemetry/testing/recorded-log.js'
import { NOBODY_SUSPENDED } from '../suspended.js'
import * as usage from '../transactions/usage.js'
import * as usageRollups from '../transactions/usage-rollups.js'
import { Usage } from './usage.js'
import { RollUps } from './writer.js'

const HOUR_MS = 60 * 60 * 1_000
const NOW = 500_000 * HOUR_MS

it('series are rolled up again after the clock was ahead for a while', async () => {
  const rolledUpTo: number[] = []
  const run = async (operation: unknown, { endedBefore }: { endedBefore: number }) => {
    if (operation === usageRollups.expire) return 'done'
    rolledUpTo.push(endedBefore)
    return { kind: 'done' }
  }
  const rollUps = new RollUps({ store: { run } as unknown as Store, logger: silentLogger })
  rollUps.check(NOW + 1_000 * HOUR_MS, true)
  await waitFor(() => rolledUpTo.length === 2, { what: 'both tiers' })
  rollUps.check(NOW, true)
  rollUps.check(NOW + 1, true)
  await waitFor(() => rolledUpTo.length === 4, { what: 'both tiers again' })
  await rollUps.stop()
  expect(rolledUpTo.slice(2)).toEqual([NOW, NOW])
})

it('the roll-up deletes nothing by age for a day after the clock was set ahead by days, unless it is set back', async () => {
  const expired: number[] = []
  let works = 0
  const run = async (operation: unknown, args: { days: number }) => {
    if (operation === usageRollups.expire) expired.push(args.days)
    else works++
    return operation === usageRollups.expire ? 'done' : { kind: 'done' }
  }
  const rollUps = new RollUps({ store: { run } as unknown as Store, logger: silentLogger })
  const expiresAt = async (nowMs: number) => {
    const [before, worked] = [expired.length, works]
    rollUps.check(nowMs, true)
    await waitFor(() => works === worked + 2, { what: 'both tiers' })
    await yieldToEventLoop()
    return expired.length > before
  }
  expect(await expiresAt(NOW)).toBe(true)
  const ahead = NOW + 72 * HOUR_MS
  rollUps.jumped(72 * HOUR_MS, ahead)
  expect([await expiresAt(ahead), await expiresAt(ahead + 23 * HOUR_MS)]).toEqual([false, false])
  expect(await expiresAt(ahead + 24 * HOUR_MS)).toBe(true)
  rollUps.jumped(72 * HOUR_MS, ahead + 25 * HOUR_MS)
  expect(await expiresAt(ahead + 25 * HOUR_MS)).toBe(false)
  rollUps.jumped(-72 * HOUR_MS, NOW + 1)
  expect(await expiresAt(NOW + 1)).toBe(true)
  await rollUps.stop()
})

it('usage notices that the clock was set ahead by days', async () => {
  const steady = new ManualClock(NOW)
  let aheadMs = 0
  const clock: Clock = { now: () => steady.now() + aheadMs, after: (ms, callback) => steady.after(ms, callback) }
  const { logger, lines } = recordedLog(['warn'])
  const run = async (operation: unknown) => {
    if (operation === usage.load) return { standings: [], month: [] }
    return operation === usageRollups.expire ? 'done' : { kind: 'done' }
  }
  const counted = new Usage({
    store: { run } as unknown as Store,
    clock,
    logger,
    plans: DEFAULT_PLANS,
    flushMs: 1_000,
    directory: { follow: () => () => undefined },
    suspended: NOBODY_SUSPENDED,
    sample: async () => undefined,
    inTurn: (_, work) => work(),
    publish: async () => undefined,
    changePlan: async () => undefined,
  })
  await counted.start()
  steady.advance(1_000)
  await counted.flushed
  expect(lines).toEqual([])
  aheadMs = 72 * HOUR_MS
  steady.advance(1_000)
  await counted.stop()
  expect(lines).toMatchObject([{ event: 'usage_retention_waits', fields: { byMs: 72 * HOUR_MS } }])
})
