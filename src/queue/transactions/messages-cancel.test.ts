import { beforeAll, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { messageRow } from '../testing/rows.js'
import type { DuePlace, NewMessage } from './messages.js'
import * as messagesCancel from './messages-cancel.js'
import { FIRST_DUE, type PendingPage, type PendingSelector } from './messages-cancel.js'
import { ANY_MESSAGE } from './messages-filter.js'
import * as messagesPublish from './messages-publish.js'

const T = 1_700_000_000_000
/** More than one read scans. */
const MANY = 4_001

const make = (number: number, more: Partial<NewMessage> = {}): NewMessage =>
  messageRow({
    account_id: 'acc',
    message_id: `msg_${String(number).padStart(6, '0')}`,
    max_retries: 3,
    next_at: T + 10_000 - number,
    created_at: T,
    url: 'http://x.test/',
    path: '/',
    ...more,
  })
type Selected = Partial<Pick<PendingSelector, 'accountId' | 'state' | 'filter' | 'limit'>>

describeOnEveryStore('selecting pending messages', (openStore) => {
  let store: Store
  const publish = async (messages: readonly NewMessage[]): Promise<readonly number[]> => {
    const entries = messages.map((message) => ({ message, dedup: null }))
    return (await store.run(messagesPublish.publish, { entries, now: T })).seqs
  }
  const select = async (more: Selected) => {
    const found: number[] = []
    let [after, reads]: [DuePlace | undefined, number] = [FIRST_DUE, 0]
    while (after) {
      const usual = { accountId: 'acc', kind: 'http', state: 'pending' as const, filter: ANY_MESSAGE, limit: 5_000 }
      const selector: PendingSelector = { ...usual, createdUpTo: T, after, ...more }
      const page: PendingPage = await store.run(messagesCancel.selectPending, selector)
      found.push(...page.places.map(({ seq }) => seq))
      after = page.next
      reads++
    }
    return { found, reads }
  }
  const filter = (more: Partial<typeof ANY_MESSAGE>) => ({ filter: { ...ANY_MESSAGE, ...more } })

  let keyed: readonly number[]
  let queued: readonly number[]
  let turns: readonly number[]
  beforeAll(async () => {
    store = await openStore()
    await publish(Array.from({ length: MANY }, (_, index) => make(index)))
    await publish(Array.from({ length: MANY }, (_, index) => make(index, { account_id: 'other', flow_key: 'k' })))
    keyed = await publish([6_000, 6_001, 6_002].map((number) => make(number, { flow_key: 'k' })))
    const waiting = [7_000, 7_001, 7_002, 7_003].map((number) => make(number, { queue: 'q' }))
    turns = await publish([make(7_100, { queue: 'p', flow_key: 'k' }), make(7_101, { queue: 'p', flow_key: 'k' })])
    queued = await publish(waiting)
  })

  it('walks only the messages of a flow-control key, in due order', async () => {
    const [pending, held] = [turns[0], turns[1]]
    expect(await select(filter({ flowKeys: ['k'] }))).toEqual({ found: [pending, ...keyed.toReversed()], reads: 1 })
    expect(await select({ state: 'held', ...filter({ flowKeys: ['k'] }) })).toEqual({ found: [held], reads: 1 })
    const none = { found: [], reads: 1 }
    expect(await select(filter({ flowKeys: ['none'] }))).toEqual(none)
    expect(await select(filter({ flowKeys: ['k'], labels: ['none'] }))).toEqual(none)
    const many = { flowKeys: ['k'], hosts: ['x.test'], urls: ['http://x.test/'] }
    expect((await select(filter({ ...many, paths: ['/'] }))).found).toHaveLength(4)
    expect((await select(filter({ ...many, paths: ['/other'] }))).found).toEqual([])
  })

  it('walks the held messages of one queue, in order of arrival', async () => {
    const [, ...held] = queued
    expect(await select({ state: 'held', ...filter({ queues: ['q'] }) })).toEqual({ found: held, reads: 1 })
    const pages = await select({ state: 'held', ...filter({ queues: ['q'] }), limit: 2 })
    expect(pages).toEqual({ found: held, reads: 2 })
    expect(await select({ state: 'held', ...filter({ queues: ['q', 'p'] }) })).toMatchObject({
      found: expect.arrayContaining([...held, turns[1] ?? 0]),
    })
  })

  it('walks only the messages of its account', async () => {
    for (const more of [{}, filter({ flowKeys: ['k'] }), filter({ queues: ['q'] })])
      for (const state of ['pending', 'held'] as const)
        expect(await select({ accountId: 'nobody', state, ...more })).toMatchObject({ found: [] })
    const { found, reads } = await select(filter({ urls: ['http://x.test/'] }))
    expect([found.length, reads]).toEqual([MANY + keyed.length + 2, 2])
    expect(await select(filter({ urls: ['http://y.test/'] }))).toEqual({ found: [], reads: 2 })
  })

  it('ends each message once when cancels of the same messages overlap, in any order', async () => {
    const seqs = await publish(Array.from({ length: 500 }, (_, index) => make(20_000 + index, { account_id: 'met' })))
    const orders = [seqs, seqs.toReversed(), seqs, seqs.toReversed()]
    const cancel = (order: readonly number[]) => store.run(messagesCancel.cancel, { seqs: order, at: T })
    const ended = (await Promise.all(orders.map(cancel))).flatMap((one) => one.seqs)
    expect(ended.sort((a, b) => a - b)).toEqual(seqs)
  })
})
