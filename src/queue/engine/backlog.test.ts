import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PendingRow } from '../../store/operations/messages.js'
import { Backlog, type BacklogLimits, type Load } from './backlog.js'
import { type Entry, isBefore, laneOf } from './entry.js'
import { FlowControl } from './flow-control.js'

const LIMITS: BacklogLimits = {
  windowMs: 1_000,
  loadLimit: 10,
  mostOfHost: 15,
  flowLoadLimit: 4,
  mostOfFlow: 8,
  capacity: 40,
  sendingPerHost: 3,
}

function row(seq: number, nextAt: number, host = 'a', groupKey: number | null = null): PendingRow {
  return {
    seq,
    message_id: `msg_${seq}`,
    account_id: 'acc',
    kind: 'http',
    group_key: groupKey,
    url: `http://${host}/`,
    method: 'POST',
    headers: '{}',
    body: null,
    body_bytes: 0,
    config: '{}',
    max_retries: 3,
    retried: 0,
    next_at: nextAt,
    created_at: 0,
    labels: '',
    flow_key: null,
    caller_ip: null,
    host,
    topic: null,
    endpoint: null,
    queue: null,
    slot_seq: null,
    schedule_id: null,
  }
}

const excepted = (load: Load & { kind: 'all' }): string[] => [
  ...load.exceptHosts,
  ...load.exceptFlows.map((flow) => `flow ${flow}`),
]

/** What the store would answer to a load. */
function rowsFor(load: Load, stored: readonly PendingRow[]): PendingRow[] {
  const at = (candidate: PendingRow) => ({ nextAt: candidate.next_at, seq: candidate.seq })
  return stored
    .filter((candidate) => isBefore(load.after, at(candidate)))
    .filter((candidate) =>
      load.kind === 'all'
        ? candidate.next_at <= load.until && !excepted(load).includes(laneOf(candidate))
        : laneOf(candidate) === load.lane && !isBefore(load.until, at(candidate)),
    )
    .sort((a, b) => (isBefore(at(a), at(b)) ? -1 : 1))
    .slice(0, load.limit)
}

function drainLoads(backlog: Backlog, stored: readonly PendingRow[], now: number): void {
  for (let load = backlog.nextLoad(now); load; load = backlog.nextLoad(now)) {
    backlog.loaded(load, rowsFor(load, stored), now)
  }
}

function taken(backlog: Backlog): number[] {
  const seqs: number[] = []
  for (let entry = backlog.take(); entry; entry = backlog.take()) seqs.push(entry.seq)
  return seqs
}

describe('the backlog', () => {
  it('gives out what is due, in the order of falling due', () => {
    const backlog = new Backlog({ ...LIMITS, sendingPerHost: 100 }, new FlowControl())
    drainLoads(backlog, [row(1, 30), row(2, 10), row(3, 20), row(4, 500)], 100)
    expect(taken(backlog)).toEqual([2, 3, 1])
    expect(backlog.wakeAt(100)).toBe(500)
    backlog.advance(500)
    expect(taken(backlog)).toEqual([4])
  })

  it('takes in a new message when it is due soon and leaves it to the store when it is not', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.offer([row(1, 0), row(2, 900), row(3, 5_000)], 0)
    expect(backlog.size).toBe(2)
    expect(taken(backlog)).toEqual([1])
  })

  it('keeps a message that is offered while a load that may miss it is under way', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    const load = backlog.nextLoad(0)
    backlog.offer([row(1, 0)], 0)
    expect(backlog.size).toBe(0)
    backlog.loaded(load as Load, [], 0)
    expect(taken(backlog)).toEqual([1])
  })

  it('lets hosts take turns and gives none more than its share of requests in flight', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.offer(
      [1, 2, 3, 4, 5].map((seq) => row(seq, 0, 'slow')),
      0,
    )
    backlog.offer([row(6, 0, 'quick'), row(7, 0, 'quick')], 0)
    const entries: Entry[] = []
    for (let entry = backlog.take(); entry; entry = backlog.take()) entries.push(entry)
    expect(entries.map((entry) => entry.seq)).toEqual([1, 6, 2, 7, 3])
    backlog.answered(entries[0] as Entry)
    expect(taken(backlog)).toEqual([4])
  })

  it('does not let a host with many messages keep others out of memory', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    const stored = Array.from({ length: 200 }, (_, index) => row(index + 1, 0, 'dead'))
    stored.push(row(201, 1, 'alive'))
    drainLoads(backlog, stored, 10)
    expect(taken(backlog)).toContain(201)
    expect(backlog.size).toBeLessThanOrEqual(LIMITS.capacity)
  })

  it('forgets dropped groups, also those that a load is about to bring, and names what is in flight', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.offer([row(1, 0, 'a', 7), row(2, 0, 'a', 7), row(3, 500, 'a', 7), row(4, 0, 'a', 8)], 0)
    const inFlight = backlog.take()
    expect(backlog.drop({ groupKeys: [7] })).toEqual([inFlight])
    expect(inFlight?.state).toBe('dropped')
    backlog.advance(500)
    expect(taken(backlog)).toEqual([4])
    expect(backlog.size).toBe(1)
  })

  it('gives out every stored message exactly once, whatever the order of offers, loads and retries', () => {
    const message = fc.record({
      nextAt: fc.integer({ min: 0, max: 3_000 }),
      host: fc.constantFrom('a', 'b', 'c'),
      offered: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 150 }), fc.infiniteStream(fc.nat()), (messages, choices) => {
        const choose = (most: number): number => (choices.next().value as number) % most
        const backlog = new Backlog(LIMITS, new FlowControl())
        const stored: PendingRow[] = []
        const waiting = messages.map((each, index) => ({ ...each, row: row(index + 1, each.nextAt, each.host) }))
        // What was there before the start is in the store and never offered.
        for (const each of waiting) if (!each.offered) stored.push(each.row)
        const fresh = waiting.filter((each) => each.offered)
        const given: number[] = []
        const retried = new Set<number>()
        let load: { load: Load; rows: PendingRow[] } | undefined
        for (let now = 0; now < 40_000; now += 50) {
          const next = fresh[0]
          if (next && choose(2) === 0) {
            fresh.shift()
            stored.push(next.row)
            backlog.offer([next.row], now)
          }
          if (load && choose(2) === 0) {
            backlog.loaded(load.load, load.rows, now)
            load = undefined
          }
          const due = load ? undefined : backlog.nextLoad(now)
          if (due) load = { load: due, rows: rowsFor(due, stored) }
          backlog.advance(now)
          for (let entry = backlog.take(); entry; entry = backlog.take()) {
            backlog.answered(entry)
            const at = stored.findIndex((candidate) => candidate.seq === entry.seq)
            expect(at).toBeGreaterThanOrEqual(0)
            if (!retried.has(entry.seq) && choose(4) === 0) {
              retried.add(entry.seq)
              const nextAt = now + choose(3_000)
              stored[at] = { ...(stored[at] as PendingRow), next_at: nextAt, retried: 1 }
              backlog.again(entry, { ...entry.message, nextAt, retried: 1 }, now)
            } else {
              stored.splice(at, 1)
              given.push(entry.seq)
              backlog.release(entry)
            }
          }
          expect(backlog.size).toBeLessThanOrEqual(LIMITS.capacity)
        }
        expect([...given].sort((a, b) => a - b)).toEqual(messages.map((_, index) => index + 1))
        expect(backlog.size).toBe(0)
      }),
      { numRuns: 60 },
    )
  })
})
