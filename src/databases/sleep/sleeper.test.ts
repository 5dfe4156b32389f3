import { describe, expect, it } from 'vitest'
import { bedtimeOf, type Candidate, EARLY_IDLE_MS } from './sleeper.js'

const NOW = 1_000_000
const IDLE_MS = 900_000

const idleFor = (databaseId: string, ms: number): Candidate => ({ databaseId, usedAtMs: NOW - ms, idleMs: IDLE_MS })
const idsOf = (candidates: readonly Candidate[]): string[] => candidates.map(({ databaseId }) => databaseId)

describe('bedtime', () => {
  it('comes when a database was not used for its time, and tells when the next one comes', () => {
    const { due, nextAtMs } = bedtimeOf([idleFor('a', IDLE_MS), idleFor('b', IDLE_MS - 1), idleFor('c', 0)], 0, NOW)
    expect([idsOf(due), nextAtMs]).toEqual([['a'], NOW + 1])
  })

  it('has nothing to wait for when no database is idle', () => {
    expect(bedtimeOf([], 3, NOW)).toEqual({ due: [], nextAtMs: undefined })
  })

  it('comes early for as many as are too many, those idle for the longest first, but for none in use', () => {
    const candidates = [
      idleFor('a', 60_000),
      idleFor('b', 90_000),
      idleFor('c', EARLY_IDLE_MS - 1),
      idleFor('d', 70_000),
    ]
    expect(idsOf(bedtimeOf(candidates, 1, NOW).due)).toEqual(['b'])
    expect(idsOf(bedtimeOf(candidates, 2, NOW).due)).toEqual(['b', 'd'])
    const all = bedtimeOf(candidates, 9, NOW)
    expect([idsOf(all.due), all.nextAtMs]).toEqual([['b', 'd', 'a'], NOW + 1])
  })

  it('is not put off by too many for a database whose own time is shorter', () => {
    const short = { databaseId: 's', usedAtMs: NOW - 10, idleMs: 10 }
    expect(idsOf(bedtimeOf([short, idleFor('a', 6_000)], 1, NOW).due)).toEqual(['a', 's'])
  })
})
