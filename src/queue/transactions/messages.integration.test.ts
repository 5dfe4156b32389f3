import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { messageRow } from '../testing/rows.js'
import type { NewMessage } from './messages.js'
import * as messagesTransactions from './messages.js'
import * as messagesCancel from './messages-cancel.js'
import * as messagesDue from './messages-due.js'
import * as messagesFilter from './messages-filter.js'
import * as messagesPublish from './messages-publish.js'
import * as messagesRead from './messages-read.js'
import * as messagesRetention from './messages-retention.js'
import * as messagesSettle from './messages-settle.js'

const T = 1_700_000_000_000

describeOnEveryStore('message operations', (openStore) => {
  let store: Store
  let accountId = ''
  let ids = 0

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(() => {
    accountId = `acc_${++ids}`
  })

  const make = (more: Partial<NewMessage> = {}): NewMessage => {
    const message_id = `msg_${String(++ids).padStart(8, '0')}`
    const own = { message_id, account_id: accountId, created_at: T, body: new Uint8Array([1, 2, 3]), max_retries: 3 }
    return messageRow({ ...own, ...more })
  }
  const insert = (...messages: NewMessage[]) => store.run(messagesTransactions.insert, messages)
  const stored = (messages: readonly NewMessage[]) =>
    Promise.all(
      messages.map(({ message_id: messageId }) =>
        store.run(messagesRead.message, { accountId, kind: 'http', messageId }),
      ),
    )
  const attempt = { startedAt: T, status: 500, headers: '{}', body: null, error: null }
  const settling = (seq: number, end: messagesSettle.SettleArgs['end'], retried = 0): messagesSettle.SettleArgs => ({
    seq,
    retried,
    at: T + 5,
    attempt,
    end,
    follow: [],
  })
  const settle = (args: messagesSettle.SettleArgs) => store.run(messagesSettle.settle, args)
  const cancel = async (more: Partial<messagesCancel.PendingSelector> = {}): Promise<number[]> => {
    const all = {
      accountId,
      kind: 'http',
      state: 'pending' as const,
      filter: messagesFilter.ANY_MESSAGE,
      createdUpTo: T,
      after: messagesCancel.FIRST_DUE,
      limit: 100,
    }
    const { places } = await store.run(messagesCancel.selectPending, { ...all, ...more })
    const { seqs } = await store.run(messagesCancel.cancel, {
      seqs: places.map((place) => place.seq),
      at: T,
    })
    return [...seqs]
  }

  it('scans a bounded number of pending messages in one read, however few match', async () => {
    const many = await insert(...Array.from({ length: 4_001 }, (_, index) => make({ next_at: T - 6_000 + index })))
    const [last] = await insert(make({ labels: '|rare|' }))
    const filter = { ...messagesFilter.ANY_MESSAGE, labels: ['rare'] }
    const selector = { accountId, kind: 'http', state: 'pending' as const, filter, createdUpTo: T, limit: 100 }
    const first = await store.run(messagesCancel.selectPending, { ...selector, after: messagesCancel.FIRST_DUE })
    expect(first).toEqual({ places: [], next: { nextAt: T - 2_000, seq: many.at(-1) } })
    const second = await store.run(messagesCancel.selectPending, {
      ...selector,
      after: first.next ?? messagesCancel.FIRST_DUE,
    })
    expect(second.places.map(({ seq }) => seq)).toEqual([last])
    await store.run(messagesCancel.cancel, { seqs: many, at: T })
  })

  it('scans a bounded number of log messages in one read, however few match', async () => {
    const messages = Array.from({ length: 2_001 }, () => make())
    const rare = [messages[1], messages[2_000]].map((message) => ({ ...message, labels: '|rare|' }) as NewMessage)
    const seqs = await insert(...messages.with(1, rare[0] as NewMessage).with(2_000, rare[1] as NewMessage))
    const filter = { ...messagesFilter.ANY_MESSAGE, labels: ['rare'] }
    const args = { accountId, kind: 'http', filter, limit: 100, bodies: 'none' as const }
    for (const order of ['oldestFirst', 'newestFirst'] as const) {
      const found: string[] = []
      let reads = 0
      for (let after: string | undefined; reads === 0 || after !== undefined; reads++) {
        const page: messagesRead.HistoryPage = await store.run(messagesRead.history, { ...args, order, after })
        found.push(...page.histories.map(({ message }) => message.message_id))
        after = page.next
      }
      const ids = rare.map((message) => message.message_id)
      expect(found).toEqual(order === 'oldestFirst' ? ids : ids.toReversed())
      expect(reads).toBe(2)
    }
    await store.run(messagesCancel.cancel, { seqs, at: T })
  })

  it('numbers messages in the order given, few and many', async () => {
    const few = await insert(make(), make())
    const many = await insert(...Array.from({ length: 20 }, () => make()))
    const all = [...few, ...many]
    expect(all).toEqual([...all].sort((a, b) => a - b))
    expect(new Set(all).size).toBe(22)
  })

  it('writes the outcome of an attempt once', async () => {
    const [seq = 0] = await insert(make())
    expect(await settle(settling(seq, { kind: 'retry', nextAt: T + 100 }))).toMatchObject({ kind: 'settled' })
    expect(await settle(settling(seq, { kind: 'retry', nextAt: T + 100 }))).toEqual({ kind: 'gone' })
    expect(await settle(settling(seq, { kind: 'delivered', keep: true }, 1))).toMatchObject({ kind: 'settled' })
    expect(await settle(settling(seq, { kind: 'delivered', keep: true }, 1))).toEqual({ kind: 'gone' })
  })

  it('stores follow-ups together with an outcome, and not when the message is gone', async () => {
    const [seq = 0] = await insert(make())
    const follow = [make({ url: 'http://follow.test/' })]
    const args = { ...settling(seq, { kind: 'failed', dlqId: `${T}-${seq}` }), follow }
    const result = await settle(args)
    expect(result).toMatchObject({ kind: 'settled', followSeqs: [expect.any(Number)] })
    expect(await settle({ ...args, follow: [make()] })).toEqual({ kind: 'gone' })
    const history = await store.run(messagesRead.history, {
      accountId,
      kind: 'http',
      filter: messagesFilter.ANY_MESSAGE,
      order: 'newestFirst',
      after: undefined,
      limit: 10,
      bodies: 'whole',
    })
    expect(history.histories.map(({ message }) => message.url)).toEqual(['http://follow.test/', 'http://x.test/a'])
  })

  it('keeps the newest of many failed attempts, and the beginning of their responses', async () => {
    const [other = 0, seq = 0] = await insert(make(), make())
    await settle(settling(other, { kind: 'retry', nextAt: T }))
    const body = new Uint8Array(70_000).fill(7)
    for (let retried = 0; retried < 103; retried++) {
      const retry = settling(seq, { kind: 'retry', nextAt: T }, retried)
      await settle({ ...retry, attempt: { ...attempt, body: retried < 100 ? null : body } })
    }
    const args = {
      accountId,
      kind: 'http',
      filter: messagesFilter.ANY_MESSAGE,
      order: 'newestFirst' as const,
      after: undefined,
      limit: 2,
    }
    const read = async (bodies: 'whole' | 'none') => {
      const { histories } = await store.run(messagesRead.history, { ...args, bodies })
      return histories.map((history) => history.attempts)
    }
    const [attempts = [], others] = await read('whole')
    expect(others).toMatchObject([{ retried: 0 }])
    expect(attempts.map(({ retried }) => retried)).toEqual(Array.from({ length: 100 }, (_, index) => index + 3))
    expect(attempts.at(-1)?.body).toEqual(body.slice(0, 65_536))
    expect((await read('none'))[0]?.at(-1)).toMatchObject({ retried: 102, body: null })
  })

  it('deletes a delivered message with its attempts when its row need not be kept', async () => {
    const message = make({ kind: 'other' })
    const [seq = 0] = await insert(message)
    await settle(settling(seq, { kind: 'retry', nextAt: T }))
    expect(await settle(settling(seq, { kind: 'delivered', keep: false }, 1))).toMatchObject({ kind: 'settled' })
    const id = { accountId, kind: 'other', messageId: message.message_id }
    expect(await store.run(messagesRead.message, id)).toBeUndefined()
  })

  it('ignores the outcome of a cancelled message', async () => {
    const [seq = 0] = await insert(make())
    expect(await cancel()).toEqual([seq])
    expect(await settle(settling(seq, { kind: 'delivered', keep: true }))).toEqual({ kind: 'gone' })
    expect(await cancel()).toEqual([])
  })

  it('cancels only pending, plain, old enough messages of the account, earliest due first', async () => {
    const [first = 0] = await insert(make())
    await insert(make({ kind: 'workflow' }), make({ created_at: T + 1 }), make({ account_id: 'another' }))
    const [last = 0] = await insert(make())
    expect(await cancel({ limit: 1 })).toEqual([first])
    expect(await cancel()).toEqual([last])
  })

  it.each([
    ['urls', ['http://x.test/a'], ['http://x.test/']],
    ['hosts', ['x.test'], ['X.test']],
    ['paths', ['/b', '/a'], ['/']],
    ['labels', ['one', 'none'], ['on', 'e|t', '%']],
    ['flowKeys', ['flow'], ['flo']],
    ['callerIps', ['10.0.0.1'], ['10.0.0.']],
  ] as const)('filters by %s exactly', async (member, matching, foreign) => {
    const [seq = 0] = await insert(make({ labels: '|one|two|', flow_key: 'flow', caller_ip: '10.0.0.1' }))
    expect(await cancel({ filter: { ...messagesFilter.ANY_MESSAGE, [member]: foreign } })).toEqual([])
    expect(await cancel({ filter: { ...messagesFilter.ANY_MESSAGE, [member]: matching } })).toEqual([seq])
  })

  it('requires all members of a filter, with dates inclusive', async () => {
    const [seq = 0] = await insert(make({ labels: '|a|' }))
    expect(await cancel({ filter: { ...messagesFilter.ANY_MESSAGE, labels: ['a'], hosts: ['y.test'] } })).toEqual([])
    expect(await cancel({ filter: { ...messagesFilter.ANY_MESSAGE, fromDate: T + 1 } })).toEqual([])
    expect(await cancel({ filter: { ...messagesFilter.ANY_MESSAGE, labels: ['a'], fromDate: T, toDate: T } })).toEqual([
      seq,
    ])
  })

  it('reads pending messages in due order, with small bodies only', async () => {
    const host = `h${ids}.test`
    const place = { nextAt: T + 1_000, seq: 0 }
    const large = make({ host, next_at: T + 1_002, body: new Uint8Array(50) })
    const [a, b, c] = await insert(make({ host, next_at: T + 1_001 }), make({ host, next_at: T + 1_001 }), large)
    const args = {
      after: place,
      until: { nextAt: T + 1_002, seq: Number.MAX_SAFE_INTEGER },
      limit: 10,
      largestBody: 10,
      accountId,
      host,
    }
    const { rows, upTo } = await store.run(messagesDue.ofHost, args)
    expect(upTo).toEqual(args.until)
    expect(rows.map((row) => [row.seq, row.body?.length ?? null, row.body_bytes])).toEqual([
      [a, 3, 3],
      [b, 3, 3],
      [c, null, 50],
    ])
    const first = await store.run(messagesDue.ofHost, { ...args, limit: 1 })
    expect(first).toMatchObject({ rows: [{ seq: a }], upTo: { nextAt: T + 1_001, seq: a } })
    const rest = await store.run(messagesDue.ofHost, { ...args, after: first.upTo })
    expect(rest.rows.map((row) => row.seq)).toEqual([b, c])
    expect((await store.run(messagesTransactions.body, { seq: c ?? 0 }))?.body).toHaveLength(50)
  })

  it('reads due messages of all accounts, of one and of a key, without the excluded lanes', async () => {
    const due = { next_at: T + 2_000 }
    const at = { after: { nextAt: T + 1_999, seq: 0 }, until: { nextAt: T + 2_000, seq: Number.MAX_SAFE_INTEGER } }
    const [one, other, keyed, foreign] = await insert(
      make(due),
      make({ ...due, host: 'other.test' }),
      make({ ...due, flow_key: 'k' }),
      make({ ...due, account_id: `${accountId}-foreign` }),
    )
    const range = { ...at, limit: 10, largestBody: 10 }
    const seqs = ({ rows }: { rows: readonly { seq: number }[] }) => rows.map((row) => row.seq)
    const all = (exceptAccounts: string[], exceptLanes: string[]) =>
      store.run(messagesDue.ofAll, { ...range, exceptAccounts, exceptLanes })
    const hostLane = messagesDue.laneOf({ account_id: accountId, flow_key: null, host: 'x.test' })
    const flowLane = messagesDue.laneOf({ account_id: accountId, flow_key: 'k', host: 'x.test' })
    expect(seqs(await all([], []))).toEqual([one, other, keyed, foreign])
    expect(seqs(await all([], [hostLane]))).toEqual([other, keyed, foreign])
    expect(seqs(await all([accountId], []))).toEqual([foreign])
    const own = { ...range, accountId, exceptLanes: [flowLane] }
    expect(seqs(await store.run(messagesDue.ofAccount, own))).toEqual([one, other])
    expect(seqs(await store.run(messagesDue.ofFlow, { ...range, accountId, flowKey: 'k' }))).toEqual([keyed])
    await store.run(messagesCancel.cancel, { seqs: [one, other, keyed, foreign].map(Number), at: T })
  })

  it('scans a bounded number of messages in one read, and answers how far it came', async () => {
    const dull = Array.from({ length: 10_001 }, () => make({ next_at: T + 3_000 }))
    const seqs = await store.run(messagesTransactions.insert, dull)
    const [last = 0] = await insert(make({ next_at: T + 3_000, host: 'far.test' }))
    const range = { after: { nextAt: T + 2_999, seq: 0 }, until: { nextAt: T + 3_000, seq: last }, limit: 10 }
    const args = { ...range, largestBody: 10, accountId, host: 'far.test' }
    const first = await store.run(messagesDue.ofHost, args)
    expect(first).toEqual({ rows: [], upTo: { nextAt: T + 3_000, seq: seqs[10_000] } })
    const second = await store.run(messagesDue.ofHost, { ...args, after: first.upTo })
    expect(second.rows.map((row) => row.seq)).toEqual([last])
    await store.run(messagesCancel.cancel, { seqs: [...seqs, last], at: T })
  })

  describe('deduplication', () => {
    const publish = (key: string, now: number, message = make()) =>
      store.run(messagesPublish.publish, {
        entries: [{ message, dedup: { key, expiresAt: now + 100 } }],
        now,
      })

    it('answers the first message until the key expires', async () => {
      const first = make()
      expect(await publish('k', T, first)).toMatchObject({ duplicateOf: [undefined], seqs: [expect.any(Number)] })
      expect(await publish('k', T + 99)).toEqual({ duplicateOf: [first.message_id], seqs: [], turns: [] })
      expect(await publish('k', T + 100)).toMatchObject({ duplicateOf: [undefined] })
    })

    it('counts equal keys within one request as one', async () => {
      const entries = [1, 2].map(() => ({ message: make(), dedup: { key: 'same', expiresAt: T + 1 } }))
      const published = await store.run(messagesPublish.publish, { entries, now: T })
      expect(published.duplicateOf).toEqual([undefined, entries[0]?.message.message_id])
      expect(published.seqs).toHaveLength(1)
    })
  })

  it('writes concurrent deliveries each with its own response, and none of an earlier attempt', async () => {
    const messages = [make(), make(), make()]
    const seqs = await insert(...messages)
    const bodies = [new Uint8Array([1, 2]), null, new Uint8Array([3])]
    const deliver = (seq: number, index: number) => {
      const attempt = {
        startedAt: T + index,
        status: 200 + index,
        headers: `{"N":["${index}"]}`,
        body: bodies[index] ?? null,
      }
      return store.run(messagesSettle.deliver, { seq, retried: index === 2 ? 1 : 0, at: T + 9, attempt })
    }
    await Promise.all(seqs.map(deliver))
    const [first, second, third] = await stored(messages)
    const delivered = { state: 'delivered', finished_at: T + 9, error: null, dlq_id: null }
    expect(first).toMatchObject({ ...delivered, started_at: T, response_status: 200, response_headers: '{"N":["0"]}' })
    expect([...(first?.response_body ?? [])]).toEqual([1, 2])
    expect(second).toMatchObject({ ...delivered, started_at: T + 1, response_status: 201, response_body: null })
    expect(third).toMatchObject({ state: 'pending', finished_at: null, response_body: null })
  })

  describe('concurrent publications', () => {
    const publish = (messages: readonly NewMessage[], key?: string) =>
      store.run(messagesPublish.publish, {
        entries: messages.map((message) => ({ message, dedup: key === undefined ? null : { key, expiresAt: T + 1 } })),
        now: T,
      })

    it('are stored with their own columns and answered separately', async () => {
      const group_key = ++ids
      const bodies = [new Uint8Array([1]), null, new Uint8Array([2, 3])]
      const plain = bodies.map((body) => make({ body, group_key }))
      const full = make({
        body: new Uint8Array([4]),
        group_key,
        flow_key: 'f',
        caller_ip: '::1',
        topic: 't',
        endpoint: 'e',
        labels: '|a|',
        schedule_id: 's',
        headers: '{"A":["b"]}',
        path: '/b',
        method: 'PUT',
        max_retries: 9,
      })
      const held = make({ queue: 'q', slot_seq: null, group_key })
      const published = await Promise.all([publish(plain), publish([]), publish([full]), publish([held])])
      expect(published.map(({ seqs }) => seqs.length)).toEqual([3, 0, 1, 1])
      expect(published.flatMap(({ turns }) => turns.map((row) => row.message_id))).toEqual([held.message_id])
      const found = await stored([...plain, full, held])
      const [first, second, third, fourth, fifth] = found
      expect([first, second, third].map((row) => row?.body && [...row.body])).toEqual([[1], null, [2, 3]])
      expect(fourth).toMatchObject({ ...full, body: expect.anything() })
      expect([...(fourth?.body ?? [])]).toEqual([4])
      expect(fifth).toMatchObject({ message_id: held.message_id, queue: 'q', state: 'pending' })
      expect(found.map((row) => row?.seq)).toEqual(published.flatMap(({ seqs }) => [...seqs]))
    })

    it('with the same key make one message', async () => {
      const messages = [make(), make(), make()] as const
      const keys = ['k', 'k', undefined]
      const published = await Promise.all(messages.map((message, index) => publish([message], keys[index])))
      const isFresh = published.map(({ seqs }) => seqs.length === 1)
      const winner = isFresh[0] ? 0 : 1
      expect(isFresh).toEqual([winner === 0, winner === 1, true])
      expect(published[1 - winner]?.duplicateOf).toEqual([messages[winner]?.message_id])
    })

    it('are stored although one of them is refused', async () => {
      const messages = [make(), make(), make()] as const
      const keys = [undefined, 'a\0b', 'k']
      const [good, bad, last] = messages.map((message, index) => publish([message], keys[index]))
      await expect(bad).rejects.toMatchObject({ code: 'invalid_request' })
      expect((await Promise.all([good, last])).map((published) => published?.seqs.length)).toEqual([1, 1])
      expect((await stored(messages)).map((row) => row?.state)).toEqual(['pending', undefined, 'pending'])
    })
  })

  it('sweeps messages that ended long enough ago, in steps, and never pending ones', async () => {
    // The clock was ahead when the second one was made.
    const seqs = await insert(make(), make({ created_at: T + 1_000_000 }), make(), make())
    await settle(settling(seqs[0] ?? 0, { kind: 'delivered', keep: true }))
    await settle(settling(seqs[2] ?? 0, { kind: 'failed', dlqId: `${T}-1` }))
    const args = { finishedBefore: T + 6, now: T + 10, limit: 2 }
    for (let after: number | undefined = (seqs[0] ?? 0) - 1; after !== undefined; ) {
      after = await store.run(messagesRetention.sweep, { ...args, after })
    }
    const left = await store.run(messagesRead.history, {
      accountId,
      kind: 'http',
      filter: messagesFilter.ANY_MESSAGE,
      order: 'oldestFirst',
      after: undefined,
      limit: 10,
      bodies: 'none',
    })
    expect(left.histories.map(({ message }) => message.seq)).toEqual([seqs[1], seqs[3]])
  })
})
