import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PendingRow } from '../transactions/messages.js'
import { type DuePage, laneOf } from '../transactions/messages-due.js'
import { Backlog } from './backlog.js'
import type { Load } from './coverage.js'
import { type Entry, isBefore } from './entry.js'
import { FlowControl } from './flow-control.js'
import { type BacklogLimits, backlogLimits } from './limits.js'

const LIMITS: BacklogLimits = {
  windowMs: 1_000,
  loadLimit: 10,
  maxPerHost: 15,
  flowLoadLimit: 4,
  maxPerFlowKey: 8,
  capacity: 40,
  inFlight: { ...backlogLimits(100).inFlight, maxPerAccount: 100, maxPerHost: 3, maxSlow: 0 },
}
/** Without limits on requests in flight. */
const FREE: BacklogLimits = {
  ...LIMITS,
  inFlight: { ...LIMITS.inFlight, maxTotal: 1_000, maxPerAccount: 1_000, maxPerHost: 1_000 },
}

function row(seq: number, nextAt: number, host = 'a', more: Partial<PendingRow> = {}): PendingRow {
  return {
    seq,
    message_id: `msg_${seq}`,
    account_id: 'acc',
    kind: 'http',
    group_key: null,
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
    partition: 0,
    ...more,
  }
}

function isMeant(load: Load, row: PendingRow): boolean {
  switch (load.kind) {
    case 'all':
      return !load.exceptAccounts.includes(row.account_id) && !load.exceptLanes.includes(laneOf(row))
    case 'account':
      return row.account_id === load.accountId && !load.exceptLanes.includes(laneOf(row))
    case 'lane':
      return laneOf(row) === load.lane
    case 'strays':
      return load.seqs.includes(row.seq)
  }
}

/** The store's page for a load. */
function pageFor(load: Load, stored: readonly PendingRow[]): DuePage {
  const at = (candidate: PendingRow) => ({ nextAt: candidate.next_at, seq: candidate.seq })
  const rows = stored
    .filter((candidate) => isBefore(load.after, at(candidate)) && !isBefore(load.until, at(candidate)))
    .filter((candidate) => isMeant(load, candidate))
    .sort((a, b) => (isBefore(at(a), at(b)) ? -1 : 1))
    .slice(0, load.limit)
  const last = rows.length < load.limit ? undefined : rows.at(-1)
  return { rows, upTo: last ? at(last) : load.until }
}

function drainLoads(backlog: Backlog, stored: readonly PendingRow[], now: number): void {
  for (let load = backlog.nextLoad(now); load; load = backlog.nextLoad(now)) {
    backlog.loaded(load, pageFor(load, stored), now)
  }
}

function taken(backlog: Backlog, now = 0): number[] {
  const seqs: number[] = []
  for (let entry = backlog.due.take(now); entry; entry = backlog.due.take(now)) seqs.push(entry.seq)
  return seqs
}

describe('the backlog', () => {
  it('gives out due messages in due order', () => {
    const backlog = new Backlog(FREE, new FlowControl())
    drainLoads(backlog, [row(1, 30), row(2, 10), row(3, 20), row(4, 500)], 100)
    expect(taken(backlog)).toEqual([2, 3, 1])
    expect(backlog.wakeAt(100)).toBe(500)
    backlog.due.advance(500)
    expect(taken(backlog)).toEqual([4])
  })

  it('holds a new message that is due soon, and leaves a later one in the store', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.offer([row(1, 0), row(2, 900), row(3, 5_000)], 0)
    expect(backlog.size).toBe(2)
    expect(taken(backlog)).toEqual([1])
  })

  it.each([
    ['was delivered', (backlog: Backlog, entry: Entry) => backlog.release(entry)],
    [
      'was dropped',
      (backlog: Backlog, entry: Entry) => void backlog.drop({ seqs: [entry.seq], mayBeOfferedAgain: true }),
    ],
    [
      'waits for its next attempt',
      (backlog: Backlog, entry: Entry) =>
        backlog.reschedule(entry, { ...entry.message, retried: 1, nextAt: 60_000 }, 0),
    ],
  ])('does not send a loaded message again when its offer comes after it %s', (_what, end) => {
    const backlog = new Backlog(FREE, new FlowControl())
    const published = row(1, 0)
    drainLoads(backlog, [published], 0)
    const entry = backlog.due.take(0) as Entry
    backlog.due.answered(entry)
    end(backlog, entry)
    // On a store with several connections, the publisher may be notified of its commit only after all of that.
    backlog.offer([published], 0)
    expect(taken(backlog)).toEqual([])
    // Another due time means another attempt.
    backlog.offer([row(1, 1)], 1)
    expect(taken(backlog, 1)).toEqual([1])
  })

  it.each([
    ['brought back before this node heard of the drop', [], []],
    ['dropped before', [row(1, 0)], [1]],
  ])('asks the store for a dropped message that is offered again: it was %s', (_what, stored, sent) => {
    const backlog = new Backlog(FREE, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.drop({ seqs: [1], inFlight: 'ends' })
    backlog.offer([row(1, 0)], 0, true)
    expect(taken(backlog)).toEqual([])
    drainLoads(backlog, stored, 0)
    expect(taken(backlog)).toEqual(sent)
  })

  it.each(['in flight', 'being stored'])('asks the store about the retry of a message parked while %s', (when) => {
    for (const isResumed of [false, true]) {
      const backlog = new Backlog(FREE, new FlowControl())
      drainLoads(backlog, [row(1, 0)], 0)
      const entry = backlog.due.take(0) as Entry
      if (when === 'in flight') entry.abort = () => undefined
      else backlog.due.answered(entry)
      entry.isAnswered = when !== 'in flight'
      expect(backlog.drop({ seqs: [1], inFlight: 'ends' })).toEqual([])
      if (entry.abort) backlog.due.answered(entry)
      backlog.reschedule(entry, { ...entry.message, retried: 1, nextAt: 20 }, 10)
      // Another node may have resumed the message, and this node gets no drop or offer of it.
      drainLoads(backlog, isResumed ? [row(1, 20)] : [row(1, 4e15)], 10)
      backlog.due.advance(20)
      expect(taken(backlog, 20)).toEqual(isResumed ? [1] : [])
    }
  })

  it('keeps a message that is offered while a load runs that may miss it', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    const load = backlog.nextLoad(0)
    backlog.offer([row(1, 0)], 0)
    expect(backlog.size).toBe(0)
    backlog.loaded(load as Load, pageFor(load as Load, []), 0)
    expect(taken(backlog)).toEqual([1])
  })

  it('alternates between hosts and limits the requests in flight of each', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.offer(
      [1, 2, 3, 4, 5].map((seq) => row(seq, 0, 'slow')),
      0,
    )
    backlog.offer([row(6, 0, 'quick'), row(7, 0, 'quick')], 0)
    const entries: Entry[] = []
    for (let entry = backlog.due.take(0); entry; entry = backlog.due.take(0)) entries.push(entry)
    expect(entries.map((entry) => entry.seq)).toEqual([1, 6, 2, 7, 3])
    backlog.due.answered(entries[0] as Entry)
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

  it('reaches the messages of an account behind a backlog of another that is larger than the memory', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    const stored = Array.from({ length: 10_000 }, (_, index) => row(index + 1, 0, `h${index % 50}`))
    stored.push(row(10_001, 1, 'a', { account_id: 'other' }))
    let loads = 0
    for (let load = backlog.nextLoad(10); load && loads++ < 1_000; load = backlog.nextLoad(10)) {
      backlog.loaded(load, pageFor(load, stored), 10)
    }
    expect(loads).toBeLessThan(100)
    expect(backlog.size).toBeLessThanOrEqual(LIMITS.capacity)
    expect(taken(backlog, 10).slice(0, 2)).toContain(10_001)
  })

  it('holds messages of other accounts although one account fills the memory and is stuck', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    const stored = Array.from({ length: 500 }, (_, index) => row(index + 1, 0, `h${index % 50}`))
    drainLoads(backlog, stored, 0)
    expect(backlog.size).toBe(LIMITS.capacity)
    const others = ['b', 'c', 'd'].map((account_id, index) => row(1_000 + index, 0, 'x', { account_id }))
    backlog.offer(others, 0)
    expect(backlog.size).toBeLessThanOrEqual(LIMITS.capacity)
    expect(taken(backlog).slice(0, 4)).toEqual([1, 1_000, 1_001, 1_002])
  })

  it('loads evicted messages again when there is space', () => {
    const backlog = new Backlog(FREE, new FlowControl())
    const stored = Array.from({ length: 200 }, (_, index) => row(index + 1, 0, `h${index % 50}`))
    drainLoads(backlog, stored, 0)
    const other = row(1_000, 0, 'x', { account_id: 'other' })
    stored.push(other)
    backlog.offer([other], 0)
    const seqs = new Set<number>()
    for (let round = 0; round < 100; round++) {
      for (let entry = backlog.due.take(0); entry; entry = backlog.due.take(0)) {
        seqs.add(entry.seq)
        stored.splice(
          stored.findIndex(({ seq }) => seq === entry.seq),
          1,
        )
        backlog.due.answered(entry)
        backlog.release(entry)
      }
      drainLoads(backlog, stored, 0)
    }
    expect(seqs.size).toBe(201)
  })

  it('does not hold a message that ended after a load had read it as pending', () => {
    const backlog = new Backlog(FREE, new FlowControl())
    drainLoads(backlog, [], 0)
    const later = Array.from({ length: LIMITS.maxPerHost }, (_, index) => row(index + 1, 100))
    backlog.offer(later, 0)
    const sooner = row(100, 50)
    backlog.offer([sooner], 0)
    backlog.drop({ seqs: later.slice(2).map(({ seq }) => seq) })
    const load = backlog.nextLoad(0) as Load
    expect(load.kind).toBe('lane')
    const page = pageFor(load, [sooner, ...later.slice(0, 2)])
    backlog.due.advance(100)
    const ended = backlog.due.take(100) as Entry
    expect(ended.seq).toBe(1)
    backlog.due.answered(ended)
    backlog.release(ended)
    backlog.loaded(load, page, 100)
    expect(taken(backlog, 100).sort()).toEqual([100, 2])
  })

  it('keeps the next attempt of a message when a load brings the attempt before', () => {
    const backlog = new Backlog({ ...FREE, windowMs: 60_000 }, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.recall([{ nextAt: 0, seq: 1 }], 'hint')
    const load = backlog.nextLoad(0) as Load
    backlog.offer([row(1, 0)], 0)
    const entry = backlog.due.take(0) as Entry
    backlog.due.answered(entry)
    backlog.reschedule(entry, { ...entry.message, retried: 1, nextAt: 10_000 }, 0)
    backlog.loaded(load, pageFor(load, [row(1, 0)]), 0)
    expect([backlog.size, backlog.wakeAt(0)]).toEqual([1, 10_000])
  })

  it.each([
    ['by however little', () => undefined],
    ['also when everything is about to be loaded again', (backlog: Backlog) => backlog.rewind('covered')],
  ])('sends a message earlier when another node says that it was brought forward, %s', (_, before) => {
    const backlog = new Backlog(FREE, new FlowControl())
    drainLoads(backlog, [row(1, 900)], 0)
    before(backlog)
    backlog.recall([{ nextAt: 100, seq: 1 }], 'hint')
    drainLoads(backlog, [row(1, 100)], 0)
    expect([backlog.size, backlog.wakeAt(0)]).toEqual([1, 100])
  })

  it('does not hold a message that was cancelled while a load that has read it was running', () => {
    const backlog = new Backlog(FREE, new FlowControl())
    const rows = [row(1, 0), row(2, 0, 'a', { group_key: 7 }), row(3, 0)]
    const load = backlog.nextLoad(0) as Load
    const page = pageFor(load, rows)
    backlog.drop({ seqs: [1] })
    backlog.drop({ groupKeys: [7] })
    backlog.loaded(load, page, 0)
    expect(taken(backlog)).toEqual([3])
  })

  it('forgets the messages of dropped groups, also those that a load is about to bring, and returns those in flight', () => {
    const seven = { group_key: 7 }
    const backlog = new Backlog(LIMITS, new FlowControl())
    drainLoads(backlog, [], 0)
    backlog.offer([row(1, 0, 'a', seven), row(2, 0, 'a', seven), row(3, 500, 'a', seven), row(4, 0)], 0)
    const inFlight = backlog.due.take(0)
    expect(backlog.drop({ groupKeys: [7] })).toEqual([inFlight])
    expect(inFlight?.state).toBe('dropped')
    backlog.due.advance(500)
    expect(taken(backlog)).toEqual([4])
    expect(backlog.size).toBe(1)
  })

  it('gives out every stored message exactly once, whatever the order of offers, loads, retries and holds', () => {
    const message = fc.record({
      nextAt: fc.integer({ min: 0, max: 3_000 }),
      host: fc.constantFrom('a', 'b', 'c'),
      account_id: fc.constantFrom('acc', 'acc', 'other'),
      flow_key: fc.constantFrom(null, null, 'key'),
      offered: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 150 }), fc.infiniteStream(fc.nat()), (messages, choices) => {
        const choose = (most: number): number => (choices.next().value as number) % most
        const backlog = new Backlog(LIMITS, new FlowControl())
        const stored: PendingRow[] = []
        const waiting = messages.map((each, index) => ({
          ...each,
          row: row(index + 1, each.nextAt, each.host, { account_id: each.account_id, flow_key: each.flow_key }),
        }))
        // Messages from before the start are in the store and never offered.
        for (const each of waiting) if (!each.offered) stored.push(each.row)
        const fresh = waiting.filter((each) => each.offered)
        const given: number[] = []
        const retried = new Set<number>()
        let load: { load: Load; page: DuePage } | undefined
        let held = new Set<string>()
        for (let now = 0; now < 40_000; now += 50) {
          if (choose(3) === 0) {
            held = now < 20_000 && choose(2) === 0 ? new Set([choose(2) === 0 ? 'acc' : 'other']) : new Set()
            backlog.hold(held)
          }
          const next = fresh[0]
          if (next && choose(2) === 0) {
            fresh.shift()
            stored.push(next.row)
            backlog.offer([next.row], now)
          }
          if (load && choose(2) === 0) {
            backlog.loaded(load.load, load.page, now)
            load = undefined
          }
          const due = load ? undefined : backlog.nextLoad(now)
          if (due) load = { load: due, page: pageFor(due, stored) }
          backlog.due.advance(now)
          for (let entry = backlog.due.take(now); entry; entry = backlog.due.take(now)) {
            expect(held).not.toContain(entry.message.accountId)
            backlog.due.answered(entry)
            const at = stored.findIndex((candidate) => candidate.seq === entry.seq)
            expect(at).toBeGreaterThanOrEqual(0)
            if (!retried.has(entry.seq) && choose(4) === 0) {
              retried.add(entry.seq)
              const nextAt = now + choose(3_000)
              stored[at] = { ...(stored[at] as PendingRow), next_at: nextAt, retried: 1 }
              backlog.reschedule(entry, { ...entry.message, nextAt, retried: 1 }, now)
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

  it('does not hold a message whose offer comes after its drop', () => {
    const backlog = new Backlog(LIMITS, new FlowControl())
    const load = backlog.nextLoad(0)
    if (load) backlog.loaded(load, { rows: [], upTo: load.until }, 0)
    backlog.drop({ seqs: [1] })
    backlog.drop({ groupKeys: [7] })
    backlog.offer([row(1, 0), row(2, 0, 'a', { group_key: 7 })], 0)
    expect(backlog.size).toBe(0)
    backlog.drop({ seqs: [3], mayBeOfferedAgain: true })
    backlog.drop({ groupKeys: [8], mayBeOfferedAgain: true })
    backlog.offer([row(3, 0), row(4, 0, 'a', { group_key: 8 })], 0)
    expect(backlog.size).toBe(2)
  })
})
