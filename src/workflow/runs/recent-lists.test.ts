import { describe, expect, it } from 'vitest'
import { listElement } from '../protocol/outbound.js'
import type { Delivery } from '../transactions/runs-read.js'
import { RecentLists } from './recent-lists.js'

const runOf = (seq: number, run_id = `r${seq}`): Delivery['run'] => {
  return { seq, run_id, account_id: 'acc', url: 'https://x.test/w', state: 'RUN_STARTED', created_at: 1 }
}
const step = (message_id: string, bytes = 1) => ({ message_id, body: Buffer.alloc(bytes, 'x') })
const delivery = {
  url: 'https://x.test/w',
  method: 'POST',
  headers: '{}',
  config: '{}',
  max_retries: 3,
  labels: '',
  host: 'x.test',
  path: '/w',
}
const idsOf = (lists: RecentLists, seq: number, messageId: string) =>
  lists.upTo(seq, messageId)?.list.map((element) => element.messageId)

describe('the cache of lists that have grown lately', () => {
  it('returns the list up to the delivered element', () => {
    const lists = new RecentLists()
    lists.started(runOf(1), step('a'), delivery)
    lists.appended(1, 1, step('b'))
    // This element is none that programs replay.
    lists.appended(1, 2)
    lists.appended(1, 3, step('c'))
    expect(idsOf(lists, 1, 'b')).toEqual(['a', 'b'])
    expect(idsOf(lists, 1, 'c')).toEqual(['a', 'b', 'c'])
    expect(idsOf(lists, 1, 'd')).toBeUndefined()
    expect(idsOf(lists, 2, 'a')).toBeUndefined()
  })

  it('keeps a list only without gaps: otherwise it drops it until it is read again', () => {
    const lists = new RecentLists()
    lists.started(runOf(1), step('a'), delivery)
    lists.appended(1, 2, step('c'))
    expect(idsOf(lists, 1, 'a')).toBeUndefined()
    const read = { run: runOf(1), element: { position: 2, kind: 'step' as const, meta: null }, body: Buffer.alloc(0) }
    const list = [step('a'), step('b'), step('c')]
    lists.loaded({ ...read, list }, list.map(listElement))
    lists.appended(1, 3, step('d'))
    expect(idsOf(lists, 1, 'd')).toEqual(['a', 'b', 'c', 'd'])
    // A shorter list that was read before changes nothing.
    lists.loaded({ ...read, list }, list.map(listElement))
    expect(idsOf(lists, 1, 'd')).toEqual(['a', 'b', 'c', 'd'])
  })

  it('drops a list when its run ends, or when its id is reused', () => {
    const lists = new RecentLists()
    lists.started(runOf(1, 'same'), step('a'), delivery)
    expect(lists.deliveryOf('acc', 'same')?.delivery).toBe(delivery)
    lists.idReused('acc', 'same')
    expect([idsOf(lists, 1, 'a'), lists.deliveryOf('acc', 'same')]).toEqual([undefined, undefined])
    lists.started(runOf(2), step('a'), delivery)
    lists.forget(2)
    expect(idsOf(lists, 2, 'a')).toBeUndefined()
  })

  it('keeps a request that was built ahead until it is sent, if its element got the expected place', () => {
    const lists = new RecentLists()
    const ahead = (messageId: string, runSeq: number | undefined, position: number) => {
      const outbound = { url: 'https://x.test/w', method: 'POST', headers: {}, body: Buffer.alloc(100) }
      return { messageId, runSeq, position, outbound }
    }
    const first = ahead('a', undefined, 0)
    lists.started(runOf(1), step('a'), delivery, first)
    const upcoming = lists.withNext(1, step('b'))
    expect(upcoming).toMatchObject({ runSeq: 1, position: 1, list: [{ messageId: 'a' }, { messageId: 'b' }] })
    // The question has not changed the list.
    expect(idsOf(lists, 1, 'b')).toBeUndefined()
    expect(lists.upTo(1, 'a')?.outbound).toBe(first.outbound)
    expect(lists.upTo(1, 'a')?.outbound).toBeUndefined()
    // Another element has got the place.
    lists.appended(1, 1, step('other'))
    lists.appended(1, 2, step('b'), ahead('b', 1, 1))
    expect(lists.upTo(1, 'b')?.outbound).toBeUndefined()
    // Another run has got the id.
    lists.appended(1, 3, step('c'), ahead('c', 2, 3))
    expect(lists.upTo(1, 'c')?.outbound).toBeUndefined()
    lists.appended(1, 4, step('d'), ahead('d', 1, 4))
    lists.appended(1, 5)
    expect(lists.upTo(1, 'd')?.outbound).toBeUndefined()
    expect(lists.withNext(1, step('long', 40_000))).toBeUndefined()
    expect(lists.withNext(2, step('unknown'))).toBeUndefined()
  })

  it('counts the headers of requests that wait to be sent', () => {
    const lists = new RecentLists()
    const headers = ['upstash-forward-x', 'x'.repeat(100_000)]
    const signed = { messageId: 'a', retried: 0, key: 'k', at: 1, headers }
    const outbound = { url: 'https://x.test/w', method: 'POST', headers: {}, body: undefined, ahead: signed }
    const ahead = { messageId: 'a', runSeq: undefined, position: 0, outbound }
    for (let seq = 1; seq <= 400; seq++) lists.started(runOf(seq), step('a'), delivery, ahead)
    expect([idsOf(lists, 1, 'a'), idsOf(lists, 400, 'a')]).toEqual([undefined, ['a']])
  })

  it('limits its memory: skips large lists, and evicts those that grew longest ago', () => {
    const lists = new RecentLists()
    lists.started(runOf(0), step('a', 300_000), delivery)
    expect(idsOf(lists, 0, 'a')).toBeUndefined()
    for (let seq = 1; seq <= 400; seq++) lists.started(runOf(seq), step('a', 100_000), delivery)
    expect(idsOf(lists, 1, 'a')).toBeUndefined()
    expect(idsOf(lists, 400, 'a')).toEqual(['a'])
    const known = Array.from({ length: 400 }, (_, index) => idsOf(lists, index + 1, 'a')).filter(Boolean)
    expect(known.length * 100_000).toBeLessThan(32 * 2 ** 20)
    expect(known.length).toBeGreaterThan(200)
  })
})
