import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { FlowKeyRow } from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import { Backlog } from './backlog.js'
import { type Entry, toEntry } from './entry.js'
import { FlowControl } from './flow-control.js'
import { FlowKey } from './flow-key.js'

/** One request at a time by default, so that admitted messages wait for their turn. */
const inFlightLimits = (max: number) => ({
  maxTotal: max,
  maxPerAccount: max,
  maxPerHost: max,
  slowAfterMs: 1e9,
  maxSlow: 0,
})
const LIMITS = { windowMs: 1e9, loadLimit: 100, maxPerHost: 100, flowLoadLimit: 100, maxPerFlowKey: 100, capacity: 500 }

const row = (seq: number): PendingRow => ({
  seq,
  message_id: `msg_${seq}`,
  account_id: 'acc',
  kind: 'http',
  group_key: null,
  url: 'http://a/',
  method: 'POST',
  headers: '{}',
  body: null,
  body_bytes: 0,
  config: '{}',
  max_retries: 0,
  retried: 0,
  next_at: 0,
  created_at: 0,
  labels: '',
  flow_key: 'k',
  caller_ip: null,
  host: 'a',
  topic: null,
  endpoint: null,
  queue: null,
  slot_seq: null,
  schedule_id: null,
  partition: 0,
})
const key = (more: Partial<FlowKeyRow>): FlowKeyRow => ({
  account_id: 'acc',
  flow_key: 'k',
  parallelism: null,
  rate: null,
  period_s: 10,
  paused: 0,
  pinned_parallelism: 0,
  pinned_rate: 0,
  updated_at: 0,
  ...more,
})

/** A backlog that holds some messages of one key. */
function start(messages: number, limits: Partial<FlowKeyRow> = {}, atOnce = 1) {
  const flow = new FlowControl()
  flow.set(key(limits))
  const backlog = new Backlog(
    { ...LIMITS, inFlight: { ...inFlightLimits(atOnce), maxSlowBytes: 0, bytesPerPlace: 1e9 } },
    flow,
  )
  const load = backlog.nextLoad(0)
  if (load) backlog.loaded(load, { rows: [], upTo: load.until }, 0)
  let seq = 0
  const offer = (count: number, now: number): void => {
    for (let made = 0; made < count; made++) backlog.offer([row(++seq)], now)
  }
  offer(messages, 0)
  let open: Entry | undefined
  /** Ends the request in flight and starts the next one. Answers its number. */
  const next = (now: number): number | undefined => {
    if (open) {
      backlog.due.answered(open)
      backlog.release(open)
    }
    backlog.due.advance(now)
    open = backlog.due.take(now)
    return open?.seq
  }
  return { flow, backlog, next, offer, use: (now: number) => flow.use('acc', 'k', now) }
}

describe('flow control', () => {
  it('forgets a paused key once its messages are dropped', () => {
    const { flow, backlog } = start(3, { paused: 1 })
    backlog.due.advance(0)
    backlog.drop({ seqs: [1, 2] })
    flow.forget('acc', 'k')
    expect(flow.hold('acc', 'k', 0)).toEqual({ by: 'pause' })
    backlog.drop({ seqs: [3] })
    flow.forget('acc', 'k')
    expect(flow.hold('acc', 'k', 0)).toBeUndefined()
  })

  it('forgets no key that has a request in flight, or admitted messages that wait again', () => {
    const { flow, next, use } = start(2)
    expect(next(0)).toBe(1)
    flow.forget('acc', 'k')
    expect(use(0).open).toBe(2)
    flow.set(key({ paused: 1 }))
    expect([next(0), use(0).open]).toEqual([undefined, 0])
    flow.forget('acc', 'k')
    expect(flow.hold('acc', 'k', 0)).toEqual({ by: 'pause' })
    flow.set(key({}))
    expect(next(0)).toBe(2)
  })

  it('keeps a deleted key that a message names while the store is read', async () => {
    const flow = new FlowControl()
    const names = ['k', 'other'].map((name) => ['acc', name] as const)
    for (const [, name] of names) flow.set(key({ flow_key: name, paused: 1 }))
    const limited = { ...row(1), config: JSON.stringify({ flow: { parallelism: 1 } }) }
    await flow.reload(async () => {
      flow.note(limited)
      return []
    }, names)
    expect(flow.hold('acc', 'k', 0)).toEqual({ by: 'pause' })
    expect(flow.hold('acc', 'other', 0)).toBeUndefined()
  })

  it('keeps limits that were set while older ones were read from the store', async () => {
    const flow = new FlowControl()
    await flow.reload(async () => {
      flow.set(key({ paused: 1 }))
      return [key({}), key({ flow_key: 'other', paused: 1 })]
    })
    expect(flow.hold('acc', 'k', 0)).toEqual({ by: 'pause' })
    expect(flow.hold('acc', 'other', 0)).toEqual({ by: 'pause' })
    // Only while that read runs.
    await flow.reload(async () => [key({})])
    expect(flow.hold('acc', 'k', 0)).toBeUndefined()
  })

  it('holds admitted messages when their key is paused, and later sends them before newer ones', () => {
    const { flow, next, offer, use } = start(3)
    expect(next(0)).toBe(1)
    flow.set(key({ paused: 1 }))
    offer(1, 1)
    expect(next(1)).toBeUndefined()
    // When their turn came, the admitted messages gave their places back.
    while (next(1) !== undefined);
    flow.set(key({ paused: 0 }))
    expect([next(2), next(2), next(2), next(2)]).toEqual([2, 3, 4, undefined])
    expect(use(2).open).toBe(0)
  })

  it('holds admitted messages when the limits of their key are lowered', () => {
    const { flow, backlog, next, use } = start(3, { parallelism: 3 }, 2)
    expect(next(0)).toBe(1)
    flow.set(key({ parallelism: 1 }))
    expect(backlog.due.take(0)).toBeUndefined()
    expect(use(0).open).toBe(1)
    expect([next(0), next(0), next(0)]).toEqual([2, 3, undefined])
    expect(use(0).open).toBe(0)
  })

  it('sends admitted messages in their order although the limits of their key were lowered before', () => {
    const { flow, next } = start(4, { parallelism: 4 })
    expect(next(0)).toBe(1)
    flow.set(key({ parallelism: 1 }))
    expect([next(0), next(0), next(0)]).toEqual([2, 3, 4])
  })

  it('begins a period when its first message has its turn, not when it is admitted', () => {
    const { next, offer, use } = start(1, { rate: 1 })
    expect(next(9_000)).toBe(1)
    expect(use(9_000)).toMatchObject({ begun: 1, periodStart: 9_000 })
    offer(1, 9_500)
    expect([next(10_000), next(18_999), next(19_000)]).toEqual([undefined, undefined, 2])
  })

  it('counts a request in the period in which it is sent, not in the one in which it was admitted', () => {
    const { next, offer, use } = start(2, { rate: 2 })
    expect(next(0)).toBe(1)
    // The second message was admitted in the first period. Its turn comes in the next one, together with two others.
    offer(2, 9_000)
    expect([next(11_000), next(11_000), next(11_000)]).toEqual([3, 4, undefined])
    expect(use(11_000)).toMatchObject({ begun: 2, periodStart: 11_000 })
    expect([next(20_999), next(21_000)]).toEqual([undefined, 2])
  })

  it('begins a period with its first request, not when the wait list became empty', () => {
    const { backlog, next, offer, use } = start(2, { rate: 1 })
    expect([next(0), next(9_999), next(10_000)]).toEqual([1, undefined, 2])
    expect(next(20_000)).toBeUndefined()
    backlog.due.advance(20_000)
    offer(2, 29_000)
    expect(next(29_000)).toBe(3)
    expect(use(29_000)).toMatchObject({ begun: 1, periodStart: 29_000 })
    expect(next(30_000)).toBeUndefined()
    expect(next(39_000)).toBe(4)
  })

  it('ends a period when the clock is set back, so that it lasts no longer', () => {
    const { next, offer, use } = start(0, { rate: 1 })
    offer(3, 10_000)
    expect([next(10_000), next(10_001)]).toEqual([1, undefined])
    expect([next(5_000), next(5_001)]).toEqual([2, undefined])
    expect(use(5_001)).toMatchObject({ begun: 1, periodStart: 5_000 })
    expect([next(14_999), next(15_000)]).toEqual([undefined, 3])
  })

  it('does not count a message that was cancelled between admission and sending', () => {
    const { backlog, next, offer, use } = start(2, { rate: 2 })
    expect(next(0)).toBe(1)
    backlog.drop({ seqs: [2] })
    expect(use(0)).toMatchObject({ open: 1, begun: 1 })
    offer(1, 1)
    expect(next(1)).toBe(3)
  })

  it('does not count a message twice that was admitted again after a pause of its key', () => {
    const { flow, next, use } = start(3, { rate: 2 })
    expect(next(0)).toBe(1)
    flow.set(key({ rate: 2, paused: 1 }))
    expect(next(1)).toBeUndefined()
    expect(use(1)).toMatchObject({ open: 0, begun: 1 })
    flow.set(key({ rate: 2 }))
    expect([next(2), next(3), next(10_000)]).toEqual([2, undefined, 3])
  })

  it('does not count admissions of a period that its owner has reset', () => {
    const { flow, backlog, next, offer, use } = start(2, { rate: 2 })
    expect(next(0)).toBe(1)
    flow.resetRate('acc', 'k')
    backlog.drop({ seqs: [2] })
    offer(3, 1)
    expect([next(1), next(1), next(1)]).toEqual([3, 4, undefined])
    expect(use(1)).toMatchObject({ open: 0, begun: 2, periodStart: 1 })
  })

  it('looks only at keys that have changed, however many keys have waiting messages', () => {
    const flow = new FlowControl()
    let seq = 0
    const admitTwo = (flow_key: string, limits: Partial<FlowKeyRow>): void => {
      flow.set(key({ flow_key, ...limits }))
      for (const entry of [1, 2].map(() => toEntry({ ...row(++seq), flow_key }, 'offer')))
        if (flow.admit(entry, 0)) flow.mayGoNow(entry, 0)
    }
    for (let at = 0; at < 1_000; at++) {
      admitTwo(`paused ${at}`, { paused: 1 })
      admitTwo(`full ${at}`, { parallelism: 1 })
      admitTwo(`spent ${at}`, { rate: 1 })
    }
    flow.advance(0)
    const looks = vi.spyOn(FlowKey.prototype, 'take')
    onTestFinished(() => looks.mockRestore())
    for (let at = 1; at < 100; at++) expect([flow.advance(at), flow.wakeAt()]).toEqual([[], 10_000])
    expect(looks).not.toHaveBeenCalled()
    flow.set(key({ flow_key: 'paused 7' }))
    flow.resetRate('acc', 'spent 8')
    expect(flow.advance(100).map(({ flow: name }) => name)).toEqual(['acc/paused 7', 'acc/paused 7', 'acc/spent 8'])
    expect(looks.mock.calls.length).toBeLessThan(10)
    expect(flow.advance(10_000)).toHaveLength(999)
  })

  it('does not count a message that had nothing to send', () => {
    const { backlog, offer, use } = start(2, { rate: 1 })
    const entry = backlog.due.take(0)
    if (!entry) throw new Error('no message was admitted')
    backlog.due.unsent(entry)
    backlog.release(entry)
    expect(use(0)).toEqual({ open: 0, begun: 0, periodStart: 0 })
    offer(1, 5)
    backlog.due.advance(5)
    expect(backlog.due.take(5)?.seq).toBe(2)
    expect(use(5)).toEqual({ open: 1, begun: 1, periodStart: 5 })
  })

  it('begins no period with a message that had nothing to send', () => {
    const { backlog, use } = start(2, { rate: 2 }, 2)
    const entry = backlog.due.take(0)
    if (!entry) throw new Error('no message was admitted')
    backlog.due.unsent(entry)
    backlog.release(entry)
    expect(backlog.due.take(5)?.seq).toBe(2)
    expect(use(5)).toEqual({ open: 1, begun: 1, periodStart: 5 })
  })
})
