import { expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { ScriptWatch } from './script-watch.js'

const SECOND = 1_000
const UNKILLABLE = '-UNKILLABLE Sorry the script already executed write commands\r\n-NOTBUSY\r\n'
const KILLED = '+OK\r\n-NOTBUSY\r\n'

/** A watch over an engine that answers SCRIPT KILL so, and a count of the engines that were ended. */
function watched(answer: () => string): { watch: ScriptWatch; clock: ManualClock; ended: () => number } {
  const clock = new ManualClock()
  let ended = 0
  const watch = new ScriptWatch(
    { timeoutMs: 250, msPerMinute: Number.POSITIVE_INFINITY },
    {
      clock,
      ask: () => Promise.reject(new Error('nobody asks for the time')),
      interrupt: async () => answer(),
      breakOff: () => ended++,
    },
  )
  return { watch, clock, ended: () => ended }
}

/** Lets time pass in steps, so that what was asked is answered in between. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(50)
    await Promise.resolve()
    await Promise.resolve()
  }
}

it('ends the engine of a script that has written and does not end, once', async () => {
  const { watch, clock, ended } = watched(() => UNKILLABLE)
  const settled = watch.begin()
  await pass(clock, 29 * SECOND)
  expect(ended()).toBe(0)
  await pass(clock, 2 * SECOND)
  expect(ended()).toBe(1)
  settled()
  await pass(clock, 40 * SECOND)
  expect(ended()).toBe(1)
})

it('counts the time of each script by itself', async () => {
  const { watch, clock, ended } = watched(() => UNKILLABLE)
  for (let i = 0; i < 4; i++) {
    const settled = watch.begin()
    await pass(clock, 20 * SECOND)
    settled()
  }
  expect(ended()).toBe(0)
})

it('leaves the engine alone where the script can be ended', async () => {
  const { watch, clock, ended } = watched(() => KILLED)
  watch.begin()
  await pass(clock, 60 * SECOND)
  expect(ended()).toBe(0)
})
