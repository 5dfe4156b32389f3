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

describe('the decision which databases fall asleep', () => {
  it('has the databases whose idle time is over, and the time of the next one', () => {
    const { due, nextAtMs } = sleepPlanOf([idleFor('a', IDLE_MS), idleFor('b', IDLE_MS - 1), idleFor('c', 0)], 0, NOW)
    expect([idsOf(due), nextAtMs]).toEqual([['a'], NOW + 1])
  })

  it('is empty when no database is idle', () => {
    expect(sleepPlanOf([], 3, NOW)).toEqual({ due: [], nextAtMs: undefined })
  })

  it('takes as many as are too many early, the longest idle first, but none in use', () => {
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

  it('keeps a shorter idle time of a database when there are too many', () => {
    const short = { databaseId: 's', usedAtMs: NOW - 10, idleMs: 10 }
    expect(idsOf(sleepPlanOf([short, idleFor('a', 6_000)], 1, NOW).due)).toEqual(['a', 's'])
  })
})
