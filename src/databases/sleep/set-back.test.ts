import { expect, it } from 'vitest'
import { yieldToEventLoop } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { silentLogger } from '../../telemetry/index.js'
import { Sleep, type SleepDeps } from './sleep.js'

const IDLE_MS = 15 * 60_000
const DAY_MS = 86_400_000

it('a database falls asleep after its idle time, although the clock was ahead when it was last used', async () => {
  const time = new ManualClock()
  let setBackMs = 0
  const clock = {
    now: () => time.now() - setBackMs,
    after: (delayMs: number, callback: () => void) => time.after(delayMs, callback),
  }
  const meter = { lastActivityAtMs: clock.now() + 1_000, holds: 0, connections: 1 }
  const done = async () => undefined
  const sleep = new Sleep({
    clock,
    logger: silentLogger,
    mostAwake: 10,
    fleet: { ensure: done, suspend: done, compactLog: done, save: done },
    traffic: { meterOf: () => meter, release: () => true, proceed: () => undefined },
    engines: { specOf: () => ({}), idleMsOf: () => IDLE_MS, servesClients: () => true },
  } as unknown as SleepDeps)
  sleep.wake('db')
  time.advance(2_000)
  setBackMs = DAY_MS
  for (let minute = 0; minute < 40; minute++) {
    time.advance(60_000)
    await yieldToEventLoop()
  }
  expect(sleep.isAwake('db')).toBe(false)
  sleep.stop()
})
