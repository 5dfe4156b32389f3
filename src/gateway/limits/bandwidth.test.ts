import { expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { DatabaseMeter } from '../../telemetry/index.js'
import { Bandwidth, SLOW_BYTES_PER_SECOND } from './rates.js'

it('the bandwidth does not delay commands below the limit, and slows them down beyond it', async () => {
  const clock = new ManualClock()
  clock.advance(1_000)
  const meter = new DatabaseMeter()
  const bandwidth = new Bandwidth(10_000_000, meter, clock)
  meter.bytesIn = 9_999_999
  expect(bandwidth.waitMs).toBe(0)
  meter.bytesOut = 1
  expect(bandwidth.waitMs).toBe(0)
  meter.bytesOut += 1.5 * SLOW_BYTES_PER_SECOND
  expect(bandwidth.waitMs).toBe(500)
  let isOver = false
  void bandwidth.turn()?.then(() => {
    isOver = true
  })
  clock.advance(499)
  await Promise.resolve()
  expect(isOver).toBe(false)
  clock.advance(1)
  await new Promise((resolve) => setImmediate(resolve))
  expect(isOver).toBe(true)
})

it('the bandwidth checks a long overdraft every second, and forgets it with the month or the limit', () => {
  const clock = new ManualClock()
  clock.advance(1_000)
  const meter = new DatabaseMeter()
  const bandwidth = new Bandwidth(1_000, meter, clock)
  meter.bytesOut = 1_000
  expect(bandwidth.waitMs).toBe(0)
  meter.bytesOut += 100 * SLOW_BYTES_PER_SECOND
  expect(bandwidth.waitMs).toBe(1_000)
  bandwidth.limitBytes = Number.POSITIVE_INFINITY
  expect(bandwidth.waitMs).toBe(0)
  bandwidth.limitBytes = 1_000
  meter.turnMonth(7)
  expect(bandwidth.waitMs).toBe(0)
})

it('the bandwidth adds no wait when the clock is set back', () => {
  const [clock, before] = [new ManualClock(), new ManualClock(1_000)]
  const meter = new DatabaseMeter()
  let now = clock
  const bandwidth = new Bandwidth(1_000, meter, { now: () => now.now(), after: (ms, then) => now.after(ms, then) })
  meter.bytesOut = 1_000
  expect(bandwidth.waitMs).toBe(0)
  now = before
  expect(bandwidth.waitMs).toBe(0)
  meter.bytesOut += 1.5 * SLOW_BYTES_PER_SECOND
  expect(bandwidth.waitMs).toBe(500)
})
