import { beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsAwaited from './runs-awaited.js'
import * as runsCancel from './runs-cancel.js'
import * as runsFinish from './runs-finish.js'
import * as runsLogs from './runs-logs.js'
import * as runsNotify from './runs-notify.js'
import * as runsRead from './runs-read.js'
import type { NewElement, NewRun, ParentLink } from './runs-rows.js'
import * as runsSettle from './runs-settle.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'
import * as runsWait from './runs-wait.js'

const { cancelRuns } = runsCancel
const { delivery, find } = runsRead
const { expireWait, notify } = runsNotify
const { finishRun } = runsFinish
const { logPage } = runsLogs
const { settleRun } = runsSettle
const { submit } = runsSubmit
const { wait } = runsWait
const { waiters } = runsAwaited
const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '|a|', flow_key: null, caller_ip: '::1' }
const settings = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }

const run = (runId: string, contact: NewRun['contact'] = 'known'): NewRun => ({ run_id: runId, contact, ...columns })
const element = (text: string, dueAt = AT): NewElement => ({
  kind: 'step',
  messageId: newId('msg_', AT),
  body: Buffer.from(text),
  meta: null,
  dueAt,
})
const first = (): NewElement => ({
  ...element('payload'),
  meta: JSON.stringify({ delivery: settings }),
  delivery: settings,
})
const start = (runId: string, parent?: ParentLink): Submission => ({
  kind: 'start',
  run: run(runId),
  first: first(),
  ...(parent && { parent }),
})
const append = (runId: string, text: string): Submission => ({ kind: 'append', runId, element: element(text) })
const linkTo = (runId: string): ParentLink => ({
  runId,
  messageId: newId('msg_', AT),
  url: columns.url,
  createdAt: AT,
  step: { stepId: 1, stepName: 'child' },
})

describeOnEveryStore('transactions of runs', (openStore) => {
  let store: Store
  let accountId: string

  beforeAll(async () => {
    store = await openStore()
  })
  /** Each test has its own account. */
  const setUp = () => {
    accountId = newId('acc_', AT)
    return accountId
  }
  const send = (...submissions: Submission[]) => store.run(submit, { accountId, submissions, at: AT })
  const seqOf = async (runId: string): Promise<number> => (await store.run(find, { accountId, runId }))?.seq ?? 0
  const stateOf = async (runId: string) => (await store.run(find, { accountId, runId }))?.state
  const listOf = async (runId: string) => {
    const filter = { runIds: [runId] }
    const page = await store.run(logPage, { accountId, filter, before: Number.MAX_SAFE_INTEGER, limit: 1 })
    return { ...page, texts: page.elements.map(({ body }) => Buffer.from(body).toString()) }
  }
  const cancel = async (...runIds: string[]) =>
    store.run(cancelRuns, { seqs: await Promise.all(runIds.map(seqOf)), at: AT + 1 })

  describe('submit', () => {
    it('starts a run once, even for concurrent requests', async () => {
      setUp()
      const answers = await Promise.all(Array.from({ length: 8 }, () => send(start('r'))))
      const kinds = answers.flatMap((answer) =>
        answer.kind === 'accepted' ? answer.results.map(({ kind }) => kind) : [],
      )
      expect(kinds.filter((kind) => kind === 'started')).toHaveLength(1)
      expect(kinds.filter((kind) => kind === 'exists')).toHaveLength(7)
      expect(await send(start('s'), start('s'))).toMatchObject({ results: [{ kind: 'started' }, { kind: 'exists' }] })
      expect((await listOf('r')).pending).toHaveLength(1)
    })

    it('gives every element its own position, so that one list is the first to hold them all', async () => {
      setUp()
      await send(start('r'))
      const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => send(append('r', `step ${index}`))))
      const offers = answers.flatMap((answer) => (answer.kind === 'accepted' ? answer.offers : []))
      const seq = await seqOf('r')
      const lists = await Promise.all(
        offers.map(({ message_id }) => store.run(delivery, { seq, messageId: message_id, most: 1_000_000 })),
      )
      expect(lists.map((one) => one?.list.length).sort((a = 0, b = 0) => a - b)).toEqual(
        Array.from({ length: 12 }, (_, index) => index + 2),
      )
      for (const [index, one] of lists.entries()) expect(one?.list.at(-1)?.message_id).toBe(offers[index]?.message_id)
      // Larger than asked for: not read.
      const messageId = offers[0]?.message_id ?? ''
      expect(await store.run(delivery, { seq, messageId, most: 10 })).toMatchObject({ list: [], run: { run_id: 'r' } })
    })

    it('reads only the beginnings of the later elements of a large run for its log', async () => {
      setUp()
      await send(start('r'))
      for (const text of ['a', 'b', 'c']) await send(append('r', text.repeat(5_000)))
      const page = { accountId, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 1 }
      const lengths = async (maxBytes: number) =>
        (await store.run(logPage, { ...page, maxBytes })).elements.map(({ body }) => body.byteLength).slice(1)
      expect(await lengths(20_000)).toEqual([5_000, 5_000, 5_000])
      expect(await lengths(12_000)).toEqual([5_000, 5_000, 1_024])
      expect(await lengths(0)).toEqual([1_024, 1_024, 1_024])
    })

    it('leaves out what surrounds the later elements of a run with long headers in its log', async () => {
      setUp()
      await send(start('r'))
      const meta = JSON.stringify({ delivery: { headers: 'h'.repeat(60_000) } })
      const steps = Array.from({ length: 80 }, (_, step) => {
        const text = `step ${step}`
        return { ...append('r', text), element: { ...element(text), meta } } as Submission
      })
      await send(...steps)
      const page = { accountId, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 1 }
      const { elements } = await store.run(logPage, page)
      const metas = elements.slice(1).map((one) => one.meta)
      // 4 MiB.
      expect(metas.filter((one) => one === meta)).toHaveLength(69)
      expect(metas.slice(69)).toEqual(Array(11).fill(null))
      expect(elements.map(({ body }) => body.byteLength).slice(-1)).toEqual([7])
    })

    it('stores nothing when the message of a step is refused, however the others of its time end', async () => {
      setUp()
      await send(start('r'), start('s'))
      const refused = {
        ...append('r', 'refused'),
        element: { ...element('refused'), delivery: { ...settings, labels: 'a\0' } },
      }
      const answers = await Promise.allSettled([send(append('s', 'kept')), send(refused as Submission)])
      expect(answers[0]).toMatchObject({ status: 'fulfilled', value: { kind: 'accepted' } })
      expect(answers[1]).toMatchObject({ status: 'rejected', reason: { code: 'invalid_request' } })
      expect((await listOf('r')).texts).toEqual(['payload'])
      expect((await listOf('s')).texts).toEqual(['payload', 'kept'])
    })

    it('refuses the whole request when one of its runs has ended or does not exist', async () => {
      setUp()
      await send(start('r'), start('gone'))
      await cancel('gone')
      expect(await send(append('r', 'x'), start('new'), append('gone', 'y'))).toEqual({
        kind: 'ended',
        runId: 'gone',
        state: 'RUN_CANCELED',
      })
      expect(await send(append('r', 'x'), append('nobody', 'y'))).toEqual({ kind: 'missing', runId: 'nobody' })
      expect((await listOf('r')).texts).toEqual(['payload'])
      expect(await stateOf('new')).toBeUndefined()
    })

    it('delivers the payload again when an SDK confirms the run, and only once', async () => {
      setUp()
      await send({ kind: 'start', run: run('r', 'unknown'), first: first() })
      const other = { ...first(), body: Buffer.from('other') }
      const confirm = { kind: 'confirm', ifUnknown: 'refuse', run: run('r'), first: other } as const
      expect(await send(confirm)).toMatchObject({
        results: [{ kind: 'confirmed' }],
        offers: [{ message_id: confirm.first.messageId }],
      })
      expect(await send(confirm)).toMatchObject({
        results: [{ kind: 'exists', messageId: confirm.first.messageId }],
        offers: [],
      })
      expect((await listOf('r')).texts).toEqual(['payload'])
      await cancel('r')
      expect(await send(confirm)).toMatchObject({ results: [{ kind: 'exists' }], offers: [] })
    })

    it('starts a run at its confirmation only if the caller allows it', async () => {
      setUp()
      const confirm = { kind: 'confirm', run: run('r'), first: first() } as const
      const refused = await send(start('other'), { ...confirm, ifUnknown: 'refuse' })
      expect(refused).toEqual({ kind: 'missing', runId: 'r' })
      expect(await stateOf('other')).toBeUndefined()
      expect(await send({ ...confirm, ifUnknown: 'start' })).toMatchObject({ results: [{ kind: 'started' }] })
    })
  })

  describe('cancelRuns', () => {
    it('cancels active runs, deletes their pending messages, and counts no run twice', async () => {
      setUp()
      await send(start('a'), start('b'), start('done'), start('other'))
      await send(append('a', 'x'))
      await store.run(finishRun, { accountId, runId: 'done', response: 'ok', at: AT })
      const both = await Promise.all([cancel('a', 'b', 'done'), cancel('b', 'a')])
      expect(both.flatMap(({ cancelled }) => cancelled).sort()).toEqual([await seqOf('a'), await seqOf('b')].sort())
      expect([await stateOf('a'), await stateOf('done'), await stateOf('other')]).toEqual([
        'RUN_CANCELED',
        'RUN_SUCCESS',
        'RUN_STARTED',
      ])
      expect((await listOf('a')).pending).toEqual([])
      expect((await listOf('other')).pending).toHaveLength(1)
    })

    it('notifies the runs that invoked a cancelled one, unless they are cancelled with it', async () => {
      setUp()
      await send(start('parent'), start('lost'))
      const link = linkTo('parent')
      await send(start('child', link), start('child of lost', linkTo('lost')))
      const { offers } = await cancel('child', 'child of lost', 'lost')
      expect(offers).toMatchObject([{ message_id: link.messageId, group_key: await seqOf('parent'), next_at: AT + 1 }])
      expect((await listOf('parent')).texts.map((text) => text.replaceAll('\\', ''))).toEqual([
        'payload',
        '{"stepId":1,"stepName":"child","out":"{"isCanceled":true,"isFailed":false}"}',
      ])
    })

    it('wins over every later outcome', async () => {
      setUp()
      const started = await send(start('r'))
      const message = started.kind === 'accepted' ? started.offers[0] : undefined
      await cancel('r')
      const attempt = { startedAt: AT, status: 500, headers: '{}', body: null, error: null }
      const settled = await store.run(settleRun, {
        runSeq: await seqOf('r'),
        message: {
          seq: message?.seq ?? 0,
          retried: 0,
          at: AT,
          attempt,
          end: { kind: 'delivered', keep: false },
          follow: [],
        },
        effect: { kind: 'fail', failing: { failure: { status: 500 }, dlqId: 'd', callback: element('callback') } },
      })
      expect(settled).toEqual({ kind: 'gone' })
      expect(await store.run(finishRun, { accountId, runId: 'r', response: '', at: AT })).toEqual({
        kind: 'already',
        state: 'RUN_CANCELED',
      })
      expect(await stateOf('r')).toBe('RUN_CANCELED')
    })
  })

  it('fails a run, and deletes its pending messages and waits', async () => {
    setUp()
    const started = await send(start('r'))
    await send(append('r', 'asleep'))
    const message = started.kind === 'accepted' ? started.offers[0] : undefined
    const callback: NewElement = { ...element('callback'), kind: 'failureCall', delivery: settings }
    const attempt = { startedAt: AT, status: 500, headers: '{}', body: null, error: null }
    const settled = await store.run(settleRun, {
      runSeq: await seqOf('r'),
      message: {
        seq: message?.seq ?? 0,
        retried: 0,
        at: AT + 5,
        attempt,
        end: { kind: 'delivered', keep: false },
        follow: [],
      },
      effect: { kind: 'fail', failing: { failure: { status: 500 }, dlqId: 'd-1', callback } },
    })
    expect(settled).toMatchObject({ kind: 'settled', runEnded: true, offers: [{ message_id: callback.messageId }] })
    const { runs, pending } = await listOf('r')
    expect(runs).toMatchObject([
      { state: 'RUN_FAILED', finished_at: AT + 5, failure_state: 'CALLBACK_INPROGRESS', dlq_id: 'd-1' },
    ])
    expect(pending.map(({ message_id }) => message_id)).toEqual([callback.messageId])
  })

  describe('waits', () => {
    const waitFor = (runId: string, eventId: string) => {
      const record = { step: { stepId: 1 }, url: columns.url, timeoutUrl: columns.url, headers: {} }
      return store.run(wait, {
        accountId,
        runId,
        eventId,
        messageId: newId('msg_', AT),
        record,
        deadline: AT + 1_000,
        at: AT,
      })
    }
    const say = (eventId: string, runId?: string) =>
      store.run(notify, {
        accountId,
        eventId,
        data: Buffer.from('data'),
        at: AT + 5,
        ...(runId !== undefined && { runId }),
      })

    it('end once, by the first of concurrent notifications or by the deadline', async () => {
      setUp()
      await send(start('r'))
      await waitFor('r', 'e')
      const {
        waits: [waiting],
      } = await store.run(waiters, { accountId, eventId: 'e', after: 0, limit: 10 })
      const seq = await seqOf('r')
      const ended = await Promise.all([
        say('e').then(({ released }) => released.length),
        say('e').then(({ released }) => released.length),
        store.run(expireWait, { runSeq: seq, messageId: waiting?.message_id ?? '', at: AT }).then(Number),
      ])
      expect(ended.reduce((sum, count) => sum + count, 0)).toBe(1)
      expect((await listOf('r')).texts).toHaveLength(2)
    })

    it('make the message of their deadline due at once', async () => {
      setUp()
      await send(start('r'))
      await waitFor('r', 'e')
      const { offers, drop, released } = await say('e')
      expect(offers).toMatchObject([
        { message_id: released[0]?.wait.message_id, next_at: AT + 5, body: null, body_bytes: 0 },
      ])
      expect(drop).toEqual(offers.map((offer) => offer.seq))
      expect((await listOf('r')).texts[1]).toBe(
        `{"stepId":1,"waitEventId":"e","out":"${Buffer.from('data').toString('base64')}"}`,
      )
    })

    it('are registered once, and find events that were kept for their run', async () => {
      setUp()
      await send(start('r'))
      expect(await say('e')).toMatchObject({ kind: 'notified', released: [] })
      expect(await waitFor('r', 'e')).toMatchObject({ kind: 'waiting' })
      expect(await waitFor('r', 'e')).toMatchObject({ kind: 'known' })
      expect(await say('other', 'r')).toMatchObject({ kind: 'kept' })
      expect(await waitFor('r', 'other')).toMatchObject({ kind: 'notified' })
      expect(await say('other', 'nobody')).toMatchObject({ kind: 'unknown-run' })
      await cancel('r')
      expect(await waitFor('r', 'late')).toEqual({ kind: 'ended', state: 'RUN_CANCELED' })
      expect(await store.run(waiters, { accountId, eventId: 'e', after: 0, limit: 10 })).toEqual({ waits: [] })
    })

    it('are listed in pages of limited size', async () => {
      setUp()
      await send(start('r'), start('s'), start('t'))
      for (const runId of ['r', 's', 't']) await waitFor(runId, 'e')
      const pages: number[] = []
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page: { waits: readonly object[]; next?: number } = await store.run(waiters, {
          accountId,
          eventId: 'e',
          after,
          limit: 10,
          maxBytes: 250,
        })
        pages.push(page.waits.length)
        after = page.next
      }
      expect(pages).toEqual([2, 1])
    })

    it('accept webhook calls only for events that their run created, up to a limit', async () => {
      setUp()
      await send(start('r'), start('s'))
      const call = (runId: string, eventId: string, bytes = 10) =>
        store.run(notify, { accountId, runId, eventId, data: Buffer.alloc(bytes), by: 'webhook', at: AT })
      expect(await call('r', 'evt_1')).toMatchObject({ kind: 'unknown-run' })
      await send({ kind: 'append', runId: 'r', element: { ...element('step'), webhook: 'evt_1' } })
      expect(await call('r', 'evt_1')).toMatchObject({ kind: 'kept' })
      expect(await call('s', 'evt_1')).toMatchObject({ kind: 'unknown-run' })
      expect(await call('r', 'evt_1', 16 * 2 ** 20)).toMatchObject({ kind: 'full' })
      await Promise.all(Array.from({ length: 999 }, () => say('early', 'r')))
      expect(await call('r', 'evt_1')).toMatchObject({ kind: 'full' })
      expect(await say('early', 'r')).toMatchObject({ kind: 'full' })
      expect(await say('early', 's')).toMatchObject({ kind: 'kept' })
      await cancel('r')
      expect(await call('r', 'evt_1')).toMatchObject({ kind: 'unknown-run' })
    })
  })
})
