import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Entry, toEntry } from './entry.js'
import { type InFlightLimits, RoundRobin } from './round-robin.js'

const LIMITS: InFlightLimits = {
  maxTotal: 8,
  maxPerAccount: 6,
  maxPerHost: 4,
  slowAfterMs: 100,
  maxSlow: 16,
  maxSlowBytes: 1_000,
  bytesPerPlace: 500,
}

let seqs = 0

interface DueMessage {
  readonly account?: string
  readonly host?: string
  readonly queue?: string
  readonly bytes?: number
}

function due({ account = 'a', host = 'h', queue, bytes = 0 }: DueMessage): Entry {
  const seq = ++seqs
  const sent = { message_id: `msg_${seq}`, url: `http://${host}/`, method: 'POST', headers: '{}', config: '{}' }
  const none = { group_key: null, flow_key: null, caller_ip: null, topic: null, endpoint: null, slot_seq: null }
  const counts = { max_retries: 3, retried: 0, next_at: 0, created_at: 0, body: null, body_bytes: bytes }
  const whose = {
    partition: 0,
    seq,
    account_id: account,
    kind: 'http',
    labels: '',
    host,
    queue: queue ?? null,
    schedule_id: null,
  }
  return toEntry({ ...sent, ...none, ...counts, ...whose }, 'offer')
}

function takeAll(robin: RoundRobin, now = 0): Entry[] {
  const taken: Entry[] = []
  for (let entry = robin.take(now); entry; entry = robin.take(now)) taken.push(entry)
  return taken
}

const pushMany = (robin: RoundRobin, count: number, where: DueMessage): void => {
  for (let n = 0; n < count; n++) robin.push(due(where))
}
const accounts = (entries: readonly Entry[]) => entries.map((entry) => entry.message.accountId).join('')

describe('the round robin', () => {
  it('alternates between accounts, whatever the number of their messages and hosts', () => {
    const robin = new RoundRobin(LIMITS)
    for (let host = 0; host < 100; host++) pushMany(robin, 100, { account: 'a', host: `h${host}` })
    pushMany(robin, 3, { account: 'b', host: 'h1' })
    expect(accounts(takeAll(robin))).toBe('abababaa')
  })

  it('leaves free places although one account could fill them all', () => {
    const robin = new RoundRobin(LIMITS)
    for (let host = 0; host < 10; host++) pushMany(robin, 10, { account: 'a', host: `h${host}` })
    expect(takeAll(robin)).toHaveLength(LIMITS.maxPerAccount)
    pushMany(robin, 5, { account: 'b' })
    expect(accounts(takeAll(robin))).toBe('bb')
  })

  it('alternates between the queues and hosts of an account', () => {
    const robin = new RoundRobin({ ...LIMITS, maxPerHost: 8 })
    pushMany(robin, 1_000, { queue: 'long' })
    robin.push(due({ queue: 'short' }))
    robin.push(due({}))
    const taken = takeAll(robin)
    expect(taken.slice(0, 3).map((entry) => entry.message.queue)).toEqual(['long', 'short', undefined])
    expect(taken).toHaveLength(LIMITS.maxPerAccount)
  })

  it('shares a full host between accounts', () => {
    const robin = new RoundRobin(LIMITS)
    pushMany(robin, 100, { account: 'a' })
    const first = takeAll(robin)
    expect(accounts(first)).toBe('aaaa')
    pushMany(robin, 2, { account: 'b' })
    expect(takeAll(robin)).toEqual([])
    for (const entry of first) robin.done(entry)
    expect(accounts(takeAll(robin))).toBe('abab')
  })

  it('frees the places of requests that stay open, and says when', () => {
    const robin = new RoundRobin(LIMITS)
    for (const host of ['dead1', 'dead2']) pushMany(robin, 10, { account: host, host })
    expect(takeAll(robin)).toHaveLength(8)
    pushMany(robin, 3, { account: 'b' })
    expect(takeAll(robin, 99)).toEqual([])
    expect(robin.wakeAt()).toBe(100)
    expect(accounts(takeAll(robin, 100))).toBe('bbb')
    expect(robin.quick).toBe(3)
  })

  it('keeps counting open requests with large bodies', () => {
    const robin = new RoundRobin(LIMITS)
    for (const host of ['dead1', 'dead2']) pushMany(robin, 10, { account: host, host, bytes: 300 })
    takeAll(robin)
    pushMany(robin, 8, { account: 'b', host: 'c' })
    expect(takeAll(robin, 100)).toHaveLength(3)
  })

  it('gives a request with a large body several places', () => {
    const robin = new RoundRobin(LIMITS)
    pushMany(robin, 3, { bytes: 900 })
    robin.push(due({ account: 'b', host: 'other' }))
    const taken = takeAll(robin)
    expect(taken.map(({ bodyBytes }) => bodyBytes)).toEqual([900, 0, 900])
    for (const entry of taken) robin.done(entry)
    expect(takeAll(robin)).toHaveLength(1)
  })

  it('lets a request that turns out to be large go on only while there are places', () => {
    const robin = new RoundRobin(LIMITS)
    for (const host of ['one', 'two', 'three', 'four', 'five']) robin.push(due({ host }))
    const [first, second, third, ...small] = takeAll(robin) as [Entry, Entry, Entry, ...Entry[]]
    // The account has six places, of which these take five.
    expect([first, second, third].map((entry) => robin.claim(entry, 900))).toEqual([true, false, false])
    expect(small.map((entry) => robin.claim(entry, 500))).toEqual([true, true])
    for (const entry of [second, third]) {
      robin.done(entry)
      robin.push(entry)
    }
    expect(takeAll(robin)).toEqual([second])
    expect([first, second].map((entry) => robin.claim(entry, 900))).toEqual([true, true])
    robin.done(first)
    expect(takeAll(robin)).toEqual([third])
  })

  it('lets a request become large only within the limits of its host and of all, and while it is in flight', () => {
    const ofHost = new RoundRobin(LIMITS)
    pushMany(ofHost, 4, {})
    const [one, other] = takeAll(ofHost) as [Entry, Entry, ...Entry[]]
    expect(ofHost.claim(one, 900)).toBe(false)
    ofHost.done(other)
    expect([ofHost.claim(other, 1), ofHost.claim(one, 900)]).toEqual([false, true])

    const ofAll = new RoundRobin(LIMITS)
    for (const account of ['a', 'b'])
      for (const host of ['x', 'y']) pushMany(ofAll, 2, { account, host: account + host })
    const [first, last] = takeAll(ofAll).filter(({ host }) => host === 'ax') as [Entry, Entry]
    expect(ofAll.claim(first, 900)).toBe(false)
    ofAll.done(last)
    expect(ofAll.claim(first, 900)).toBe(true)
  })

  it('leaves places although the last request of an account takes many', () => {
    const robin = new RoundRobin({ ...LIMITS, maxTotal: 12, maxPerAccount: 9 })
    for (let host = 0; host < 10; host++) robin.push(due({ host: `h${host}`, bytes: host < 8 ? 0 : 1e9 }))
    expect(takeAll(robin)).toHaveLength(9)
    pushMany(robin, 5, { account: 'b' })
    expect(accounts(takeAll(robin))).toBe('b')
  })

  it('sends no more to hosts with slow requests when there are very many of these', () => {
    const robin = new RoundRobin(LIMITS)
    for (let host = 0; host < 20; host++) pushMany(robin, 10, { host: `dead${host}` })
    let inFlight = 0
    for (let now = 0; now <= 5_000; now += 100) inFlight += takeAll(robin, now).length
    expect(inFlight).toBeLessThanOrEqual(LIMITS.maxSlow + LIMITS.maxPerAccount)
    pushMany(robin, 2, { account: 'b', host: 'alive' })
    expect(accounts(takeAll(robin, 5_100))).toBe('bb')
  })

  it('sends no more to hosts with slow requests when one account has many of these, or all have very many', () => {
    const ofOne = new RoundRobin(LIMITS)
    for (const host of ['dead1', 'dead2']) pushMany(ofOne, 10, { host })
    expect(takeAll(ofOne)).toHaveLength(LIMITS.maxPerAccount)
    expect(takeAll(ofOne, 100)).toEqual([])
    ofOne.push(due({ host: 'alive' }))
    expect(takeAll(ofOne, 100)).toHaveLength(1)

    const ofAll = new RoundRobin(LIMITS)
    for (const [account, count] of [
      ['a', 3],
      ['b', 3],
      ['c', 4],
    ] as const)
      pushMany(ofAll, count, { account, host: account })
    expect(accounts(takeAll(ofAll))).toHaveLength(LIMITS.maxTotal)
    expect(accounts(takeAll(ofAll, 100))).toBe('cc')
    ofAll.push(due({ account: 'a', host: 'a' }))
    expect(takeAll(ofAll, 200)).toEqual([])
  })

  it('never exceeds a limit and sends everything, in any order of ends and drops', () => {
    const step = fc.record({
      account: fc.constantFrom('a', 'b', 'c'),
      host: fc.constantFrom('x', 'y', 'z'),
      queue: fc.constantFrom(undefined, 'q', 'r'),
      drops: fc.boolean(),
      ends: fc.nat(7),
      passes: fc.nat(80),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const limits = { ...LIMITS, maxSlow: 4 }
        const robin = new RoundRobin(limits)
        const inFlight: Entry[] = []
        const waiting = new Set<Entry>()
        let now = 0
        const take = () => {
          for (const entry of takeAll(robin, now)) {
            expect(waiting.delete(entry)).toBe(true)
            inFlight.push(entry)
          }
          expect(robin.quick).toBeLessThanOrEqual(limits.maxTotal)
          expect(inFlight.length).toBeLessThanOrEqual(limits.maxTotal + limits.maxSlow)
          for (const host of ['x', 'y', 'z']) {
            expect(inFlight.filter((entry) => entry.host === host).length).toBeLessThanOrEqual(limits.maxPerHost)
          }
        }
        const end = (index: number) => {
          const [ended] = inFlight.splice(index % inFlight.length, 1)
          if (ended) robin.done(ended)
        }
        for (const { account, host, queue, drops, ends, passes } of steps) {
          const entry = due({ account, host, ...(queue && { queue }) })
          robin.push(entry)
          if (drops) entry.state = 'dropped'
          else waiting.add(entry)
          now += passes
          take()
          if (inFlight.length > 0 && ends > 3) end(ends)
        }
        while (inFlight.length > 0) {
          end(0)
          take()
        }
        expect(waiting.size).toBe(0)
      }),
      { numRuns: 200 },
    )
  })
})
