import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Store } from '../../store/index.js'
import { QueueMeter, silentLogger } from '../../telemetry/index.js'
import * as schedules from '../transactions/schedules.js'
import { Scheduler } from './scheduler.js'

const PAUSE_MS = 1_000
const KEY = { accountId: 'acc', scheduleId: 'spoilt' }

it('the scheduler does not count the failures of a deleted schedule for a new one with the same id', async () => {
  const clock = new ManualClock()
  let isThere = true
  let tries = 0
  let looksWithout = 0
  const skipped: (string | null)[] = []
  const run = async (operation: unknown, { error }: { error: string | null }) => {
    if (operation === schedules.due) {
      if (!isThere) looksWithout++
      return isThere ? [{ ...KEY, target: 'http://x.test', bytes: 1 }] : []
    }
    if (operation === schedules.ifDue) {
      tries++
      const row = { account_id: KEY.accountId, schedule_id: KEY.scheduleId, cron: '* * * * *', next_at: clock.now() }
      return { ...row, created_at: 1, last_at: null, destination: 'http://x.test', headers: 'no JSON' }
    }
    if (operation === schedules.fire) skipped.push(error)
    return operation === schedules.fire ? { offers: [], dropped: [] } : operation === schedules.next ? null : []
  }
  const scheduler = new Scheduler({
    store: { run } as unknown as Store,
    clock,
    logger: silentLogger,
    drop: async () => undefined,
    offer: () => undefined,
    meter: new QueueMeter(),
    partitionFor: () => undefined,
    isLeader: () => true,
    isHeld: () => false,
    dailyMessagesOf: () => undefined,
  })
  /** Lets the pause after a failure pass until the condition holds. */
  const until = (condition: () => boolean, what: string) =>
    waitFor(
      () => {
        if (condition()) return true
        clock.advance(PAUSE_MS)
        return false
      },
      { what },
    )
  await scheduler.start()
  await until(() => tries === 4, 'all tries but the last')
  isThere = false
  await until(() => looksWithout > 0, 'a look without it')
  isThere = true
  scheduler.fireDue()
  await until(() => skipped.length > 0, 'the fire to be skipped')
  expect([tries, skipped]).toEqual([9, [expect.stringContaining('cannot be stored')]])
  await scheduler.stop()
})
