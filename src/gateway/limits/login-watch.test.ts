import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { LoginWatch } from './login-watch.js'

/** The wait of the next attempt, milliseconds. */
async function waitOf(watch: LoginWatch, clock: ManualClock, origin = 'here'): Promise<number> {
  const given = watch.turn(origin)
  if (given.kind !== 'later') return given.kind === 'now' ? 0 : Number.POSITIVE_INFINITY
  let isOver = false
  void given.turn.then(() => {
    isOver = true
  })
  for (let ms = 1; ; ms++) {
    clock.advance(1)
    await Promise.resolve()
    if (isOver) return ms
  }
}

describe('a client that guesses passwords', () => {
  it('waits longer with every failure, up to a limit, but not for the first few', async () => {
    const clock = new ManualClock()
    const watch = new LoginWatch(clock)
    const waits: number[] = []
    for (let i = 0; i < 15; i++) {
      waits.push(await waitOf(watch, clock))
      watch.failed('here')
    }
    expect(waits).toEqual([0, 0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000])
    expect(await waitOf(watch, clock, 'there')).toBe(0)
  })

  it('guesses no faster over many connections', async () => {
    const clock = new ManualClock()
    const watch = new LoginWatch(clock)
    for (let i = 0; i < 9; i++) watch.failed('here')
    let made = 0
    let sentAway = 0
    for (let i = 0; i < 50; i++) {
      const given = watch.turn('here')
      if (given.kind === 'later') void given.turn.then(() => made++)
      else if (given.kind === 'refused') sentAway++
    }
    for (let second = 0; second < 8; second++) {
      clock.advance(1000)
      await Promise.resolve()
    }
    // One in 800 ms; an attempt that would have to wait more than 10 seconds is refused.
    expect([made, sentAway]).toEqual([10, 38])
    expect(watch.turn('here')).toEqual({ kind: 'later', turn: expect.any(Promise) })
  })

  it('is forgiven by a success and after a while', async () => {
    const clock = new ManualClock()
    const watch = new LoginWatch(clock)
    for (let i = 0; i < 20; i++) watch.failed('here')
    watch.succeeded('here')
    expect(watch.turn('here')).toEqual({ kind: 'now' })
    for (let i = 0; i < 20; i++) watch.failed('here')
    clock.advance(15 * 60_000 + 1)
    expect(watch.turn('here')).toEqual({ kind: 'now' })
    expect(watch.size).toBe(0)
  })

  it('fills no memory from many addresses', () => {
    const watch = new LoginWatch(new ManualClock())
    for (let i = 0; i < 25_000; i++) watch.failed(`address ${i}`)
    expect(watch.size).toBe(10_000)
  })
})

it('a client does not wait longer when the clock is set back', async () => {
  const [clock, before] = [new ManualClock(), new ManualClock(1_000)]
  let now = clock
  const watch = new LoginWatch({ now: () => now.now(), after: (ms, then) => now.after(ms, then) })
  watch.failed('here')
  now = before
  expect(watch.turn('here')).toEqual({ kind: 'now' })
})
