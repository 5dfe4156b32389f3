import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { ScriptWatch, type ScriptWatchOptions } from './script-watch.js'

const UNKILLABLE = '-UNKILLABLE Sorry the script already executed write commands\r\n-NOTBUSY\r\n'
const KILLED = '+OK\r\n-NOTBUSY\r\n'
const NOT_BUSY = '-NOTBUSY\r\n-NOTBUSY\r\n'
const NEVER = new Promise<string>(() => {})

interface Watched {
  readonly watch: ScriptWatch
  readonly clock: ManualClock
  /** Sets the wall clock ahead. */
  readonly setAhead: (byMs: number) => void
  /** When the watch ended the engine, milliseconds after the beginning. */
  readonly ended: number[]
  readonly asked: string[]
}

/** A watch over an engine with this answer to SCRIPT KILL. */
function watched(
  answer: string | Promise<string>,
  runsScript: ScriptWatchOptions['runsScript'] = () => 'surely',
  stats: (command: string) => string | undefined = () => undefined,
): Watched {
  const clock = new ManualClock()
  const beganAt = clock.now()
  let aheadMs = 0
  const ended: number[] = []
  const asked: string[] = []
  const none = Number.POSITIVE_INFINITY
  const watch = new ScriptWatch(
    { timeoutMs: 250, msPerMinute: 10_000, maxDataBytes: none },
    {
      clock: { now: () => clock.now() + aheadMs, after: (ms, then) => clock.after(ms, then) },
      elapsedMs: () => clock.now() - beganAt,
      runsScript,
      ask: async (command) => {
        const text = stats(command.toString())
        if (text === undefined) throw new Error('the engine does not tell')
        return Buffer.from(`$${text.length}\r\n${text}\r\n`)
      },
      interrupt: async (commands) => {
        asked.push(commands)
        return answer
      },
      restartEngine: () => ended.push(clock.now() - beganAt) > 0,
    },
  )
  const setAhead = (byMs: number): void => {
    aheadMs += byMs
  }
  return { watch, clock, setAhead, ended, asked }
}

/** Lets time pass in steps, so that questions are answered in between. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    clock.advance(10)
    for (let turn = 0; turn < 4; turn++) await Promise.resolve()
  }
}

describe('an engine is ended within about a second', () => {
  it.each([
    ['whose script has written', UNKILLABLE],
    ['whose script catches the error of SCRIPT KILL', KILLED],
    ['that does not answer SCRIPT KILL', NEVER],
  ])('%s', async (_, answer) => {
    const { watch, clock, ended } = watched(answer)
    watch.begin()
    await pass(clock, 900)
    expect(ended).toEqual([])
    await pass(clock, 400)
    expect(ended).toHaveLength(1)
    expect(watch.hasJustEndedEngine).toBe(true)
    expect(watch.usedMs).toBeGreaterThan(900)
  })
})

describe('an engine is not ended', () => {
  it('when the clock is set ahead', async () => {
    const { watch, clock, setAhead, ended, asked } = watched(UNKILLABLE)
    watch.begin()
    setAhead(3_600_000)
    await pass(clock, 200)
    expect(asked).toEqual([])
    await pass(clock, 400)
    expect(asked).not.toEqual([])
    setAhead(3_600_000)
    await pass(clock, 200)
    expect(ended).toEqual([])
  })

  it('once the script has ended', async () => {
    const { watch, clock, ended } = watched(UNKILLABLE)
    const settled = watch.begin()
    await pass(clock, 900)
    settled()
    await pass(clock, 5_000)
    expect(ended).toEqual([])
  })

  it('when each of many scripts takes long', async () => {
    const { watch, clock, ended } = watched(KILLED)
    const scripts = Array.from({ length: 10 }, () => watch.begin())
    for (const settled of scripts) {
      await pass(clock, 700)
      settled()
    }
    expect(ended).toEqual([])
  })

  it('for longer, when it is silent and many scripts are queued', async () => {
    const { watch, clock, ended } = watched(NEVER)
    for (let i = 0; i < 9; i++) watch.begin()
    await pass(clock, 250 + 750 + 7 * 250)
    expect(ended).toEqual([])
    await pass(clock, 500)
    expect(ended).toHaveLength(1)
  })

  it('for longer, when it is silent and may be busy with something else', async () => {
    const { watch, clock, ended } = watched(NEVER, () => 'perhaps')
    watch.begin()
    await pass(clock, 5_000)
    expect(ended).toEqual([])
    await pass(clock, 500)
    expect(ended).toHaveLength(1)
  })

  it('when it is silent but runs no script', async () => {
    const { watch, clock, ended } = watched(NEVER, () => 'no')
    watch.begin()
    await pass(clock, 30_000)
    expect(ended).toEqual([])
  })

  it('when it answers that it runs no script', async () => {
    const { watch, clock, ended } = watched(NOT_BUSY)
    watch.begin()
    await pass(clock, 30_000)
    expect(ended).toEqual([])
  })
})

it('the watch resets the interpreter of an engine when its memory and the data together are too large', async () => {
  let ofScripts = 40_000_000
  const stats = (command: string): string =>
    command.includes('memory') ? `used_memory:30000000\r\nused_memory_vm_eval:${ofScripts}\r\n` : ''
  const { watch, clock, asked } = watched('+OK\r\n', undefined, stats)
  watch.limits = { ...watch.limits, maxDataBytes: 64_000_000 }
  ofScripts = 20_000_000
  watch.begin()()
  await pass(clock, 200)
  expect(asked).toEqual([])
  ofScripts = 40_000_000
  watch.begin()()
  await pass(clock, 200)
  expect(asked).toEqual(['*3\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n$4\r\nSYNC\r\n'])
})
