import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { CommandRate } from './rates.js'

const takeAll = (rate: CommandRate): number => {
  let taken = 0
  while (rate.take()) taken++
  return taken
}

describe('a command rate', () => {
  it('allows a burst of a tenth of a second, and then no more than the rate', () => {
    const clock = new ManualClock()
    const rate = new CommandRate(1000, clock)
    expect(takeAll(rate)).toBe(100)
    clock.advance(30)
    expect(takeAll(rate)).toBe(30)
    clock.advance(60_000)
    expect(takeAll(rate)).toBe(100)
  })

  it('serves waiting commands in order, and none before them', () => {
    const clock = new ManualClock()
    const rate = new CommandRate(100, clock)
    takeAll(rate)
    const served: string[] = []
    const again = (name: string): void =>
      rate.wait(1, () => {
        served.push(name)
        again(name)
      })
    again('a')
    again('b')
    expect(rate.take()).toBe(false)
    clock.advance(60)
    expect(served).toEqual(['a', 'b', 'a', 'b', 'a', 'b'])
  })

  it('lets a group overdraw, and makes the commands behind it wait', () => {
    const clock = new ManualClock()
    const rate = new CommandRate(100, clock)
    expect(rate.acquire(30)).toBeUndefined()
    let served = false
    void rate.acquire(1)?.then(() => {})
    rate.wait(1, () => (served = true))
    clock.advance(200)
    expect(served).toBe(false)
    clock.advance(30)
    expect(served).toBe(true)
  })

  it('that is raised shortens the wait of commands behind an overdraft', () => {
    const clock = new ManualClock()
    const rate = new CommandRate(100, clock)
    expect(rate.acquire(1_000)).toBeUndefined()
    let served = false
    rate.wait(1, () => (served = true))
    rate.perSecond = 10_000
    clock.advance(110)
    expect(served).toBe(true)
  })

  it('that is lowered takes back what is left of the burst', () => {
    const rate = new CommandRate(1000, new ManualClock())
    rate.perSecond = 20
    expect(takeAll(rate)).toBe(2)
  })

  it('below ten a second still allows a command', () => {
    const clock = new ManualClock()
    const rate = new CommandRate(5, clock)
    expect(takeAll(rate)).toBe(1)
    clock.advance(200)
    expect(takeAll(rate)).toBe(1)
  })

  it('lets no command pass those that wait, takes all tokens of a group, and counts what waits', () => {
    const clock = new ManualClock()
    const meter = { delayedForRate: 0 }
    const rate = new CommandRate(100_000, clock, meter)
    takeAll(rate)
    const served: string[] = []
    rate.wait(50_000, () => served.push('group'))
    rate.wait(1, () => served.push('next'))
    clock.advance(1)
    expect([rate.take(), served]).toEqual([false, []])
    clock.advance(1)
    expect(served).toEqual(['group'])
    clock.advance(400)
    expect(served).toEqual(['group'])
    clock.advance(100)
    expect([served, meter.delayedForRate]).toEqual([['group', 'next'], 2])
  })

  it('serves thousands of waiting commands in order', () => {
    const clock = new ManualClock()
    const rate = new CommandRate(1_000, clock)
    takeAll(rate)
    const served: number[] = []
    for (let waiter = 0; waiter < 2_500; waiter++) rate.wait(1, () => served.push(waiter))
    for (let second = 0; second < 3; second++) clock.advance(1_000)
    expect(served).toEqual(Array.from({ length: 2_500 }, (_, waiter) => waiter))
  })

  it('adds no wait when the clock is set back', () => {
    const [clock, before] = [new ManualClock(), new ManualClock(1_000)]
    let now = clock
    const rate = new CommandRate(100, { now: () => now.now(), after: (ms, then) => now.after(ms, then) })
    takeAll(rate)
    now = before
    expect(rate.take()).toBe(false)
    before.advance(10)
    expect(rate.take()).toBe(true)
  })

  it('of infinity never delays a command', () => {
    const rate = new CommandRate(Number.POSITIVE_INFINITY, new ManualClock())
    for (let i = 0; i < 1000; i++) expect(rate.take()).toBe(true)
    expect(rate.acquire(1_000_000)).toBeUndefined()
  })
})
