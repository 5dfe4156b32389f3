import { describe, expect, it } from 'vitest'
import { completeUntil, promisedUntil, remember, type Sample } from './complete-until.js'

const at = (second: number, offset: number, replid = 'one'): Sample => ({ at: second * 1_000, replid, offset })

describe('the time until which a copy is complete', () => {
  const samples = [at(1, 100), at(2, 200), at(3, 300)]

  it('is the newest moment whose offset it has reached', () => {
    expect(completeUntil(samples, { replid: 'one', offset: 300 })).toBe(3_000)
    expect(completeUntil(samples, { replid: 'one', offset: 299 })).toBe(2_000)
    expect(completeUntil(samples, { replid: 'one', offset: 99 })).toBeUndefined()
  })

  it('is unknown for a copy with another history', () => {
    expect(completeUntil(samples, { replid: 'two', offset: 10_000 })).toBeUndefined()
    expect(remember(samples, at(4, 50, 'two'))).toEqual([at(4, 50, 'two')])
  })

  it('is not ahead of the clock of the home after that was set back', () => {
    expect(remember(samples, at(2, 400))).toEqual([at(1, 100), at(2, 200), at(2, 400)])
    expect(promisedUntil({ until: undefined, known: 3_000, now: 2_000 })).toBeNull()
    expect(promisedUntil({ until: 2_000, known: 3_000, now: 2_000 })).toBe(2_000)
    expect(promisedUntil({ until: undefined, known: 3_000, now: 4_000 })).toBe(3_000)
  })

  it('is remembered for a minute', () => {
    let many: readonly Sample[] = []
    for (let second = 1; second <= 100; second++) many = remember(many, at(second, second))
    expect([many.length, many[0]?.at]).toEqual([60, 41_000])
  })
})
