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

  it('of infinity never delays a command', () => {
    const rate = new CommandRate(Number.POSITIVE_INFINITY, new ManualClock())
    for (let i = 0; i < 1000; i++) expect(rate.take()).toBe(true)
    expect(rate.acquire(1_000_000)).toBeUndefined()
  })
})
