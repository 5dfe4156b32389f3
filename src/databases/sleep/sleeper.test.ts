import { describe, expect, it } from 'vitest'
import { EARLY_IDLE_MS, type SleepCandidate, sleepPlanOf } from './sleeper.js'

const NOW = 1_000_000
const IDLE_MS = 900_000

const idleFor = (databaseId: string, ms: number): SleepCandidate => ({
  databaseId,
  usedAtMs: NOW - ms,
  idleMs: IDLE_MS,
})
const idsOf = (candidates: readonly SleepCandidate[]): string[] => candidates.map(({ databaseId }) => databaseId)

describe('bedtime', () => {
  it('comes when a database was not used for its time, and tells when the next one comes', () => {
    const { due, nextAtMs } = sleepPlanOf([idleFor('a', IDLE_MS), idleFor('b', IDLE_MS - 1), idleFor('c', 0)], 0, NOW)
    expect([idsOf(due), nextAtMs]).toEqual([['a'], NOW + 1])
  })

  it('has nothing to wait for when no database is idle', () => {
    expect(sleepPlanOf([], 3, NOW)).toEqual({ due: [], nextAtMs: undefined })
  })

  it('comes early for as many as are too many, those idle for the longest first, but for none in use', () => {
    const candidates = [
      idleFor('a', 60_000),
      idleFor('b', 90_000),
      idleFor('c', EARLY_IDLE_MS - 1),
      idleFor('d', 70_000),
    ]
    expect(idsOf(sleepPlanOf(candidates, 1, NOW).due)).toEqual(['b'])
    expect(idsOf(sleepPlanOf(candidates, 2, NOW).due)).toEqual(['b', 'd'])
    const all = sleepPlanOf(candidates, 9, NOW)
    expect([idsOf(all.due), all.nextAtMs]).toEqual([['b', 'd', 'a'], NOW + 1])
  })

  it('is not put off by too many for a database whose own time is shorter', () => {
    const short = { databaseId: 's', usedAtMs: NOW - 10, idleMs: 10 }
    expect(idsOf(sleepPlanOf([short, idleFor('a', 6_000)], 1, NOW).due)).toEqual(['a', 's'])
  })
})
