import { beforeAll, beforeEach, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { notify as notifyAll } from '../runs/notify.js'
import * as runsNotified from './runs-notified.js'
import * as runsNotify from './runs-notify.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'
import * as runsWait from './runs-wait.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }

const start = (runId: string): Submission => ({
  kind: 'start',
  run: { run_id: runId, contact: 'known', ...columns },
  first: {
    kind: 'step',
    messageId: newId('msg_', AT),
    body: new Uint8Array(),
    dueAt: AT + 1e9,
    delivery,
    meta: JSON.stringify({ delivery }),
  },
})

describeOnEveryStore('events', (openStore) => {
  let store: Store
  let accountId: string

  beforeAll(async () => {
    store = await openStore()
  })

  beforeEach(() => {
    accountId = newId('acc_', AT)
  })

  const notify = (eventId: string, more: object = {}) =>
    store.run(runsNotify.notify, { accountId, eventId, data: Buffer.from('12345'), at: AT, ...more })
  const listed = (filter: runsNotified.NotifiedArgs['filter'] = {}, limit = 100) =>
    store.run(runsNotified.notified, { accountId, filter, before: Number.MAX_SAFE_INTEGER, limit })
  const wait = (runId: string, eventId: string, stepName = 'wait') =>
    store.run(runsWait.wait, {
      accountId,
      runId,
      eventId,
      messageId: newId('msg_', AT),
      deadline: AT + 1e9,
      at: AT,
      record: { step: { stepName }, url: columns.url, timeoutUrl: columns.url, headers: {} },
    })

  it('are noted with their effect, also if no run waited', async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `run-${String(index).padStart(2, '0')}`)
    await store.run(runsSubmit.submit, { accountId, submissions: ids.map(start), at: AT })
    for (const id of ids) await wait(id, 'paid')
    await notify('paid')
    await notify('paid', { at: AT + 1 })
    await notify('later', { runId: 'run-03', at: AT + 2 })
    expect(await listed()).toMatchObject([
      { eventId: 'later', source: 'token', outcome: 'kept', woken: 0, runIds: ['run-03'], bytes: 5, at: AT + 2 },
      { eventId: 'paid', outcome: 'nobody', woken: 0, runIds: [], at: AT + 1 },
      { eventId: 'paid', outcome: 'woke', woken: 12, runIds: ids.slice(0, 10), at: AT },
    ])
    expect(await listed({ eventId: 'paid', outcome: 'woke' })).toHaveLength(1)
    expect(await listed({ prefix: 'la' })).toHaveLength(1)
    expect(await listed({ from: AT + 1, to: AT + 1 })).toMatchObject([{ outcome: 'nobody' }])
    accountId = newId('acc_', AT)
    expect(await listed()).toEqual([])
  })

  it('reach many runs batch by batch, each once, as one event', async () => {
    const ids = ['many-1', 'many-2', 'many-3', 'many-4', 'many-5']
    await store.run(runsSubmit.submit, { accountId, submissions: ids.map(start), at: AT })
    for (const id of ids) await wait(id, 'all')
    const queue = { offer: () => undefined, drop: () => undefined }
    const event = { accountId, eventId: 'all', data: Buffer.from('12345'), most: 2 }
    const batches: string[][] = []
    for await (const { released } of notifyAll({ store, queue, clock: new ManualClock(AT) }, event)) {
      batches.push(released.map(({ runId }) => runId))
      await wait(ids[0] ?? '', 'all', `again ${batches.length}`)
    }
    expect(batches).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])
    expect(await listed()).toMatchObject([{ eventId: 'all', outcome: 'woke', woken: 5, runIds: ids.slice(0, 2) }])
  })

  it('reach one run that waits in many branches batch by batch, smaller ones if their data is large', async () => {
    await store.run(runsSubmit.submit, { accountId, submissions: [start('branches')], at: AT })
    for (const name of ['a', 'b', 'c']) await wait('branches', 'all', name)
    const queue = { offer: () => undefined, drop: () => undefined }
    const data = Buffer.alloc(3 * 2 ** 20, 'x')
    const event = { accountId, runId: 'branches', eventId: 'all', data }
    const batches: number[] = []
    for await (const { kind, released } of notifyAll({ store, queue, clock: new ManualClock(AT) }, event)) {
      batches.push(released.length)
      expect(kind).toBe('notified')
    }
    expect(batches).toEqual([2, 1])
    expect(await listed()).toMatchObject([{ outcome: 'woke', woken: 3 }])
  })

  it('wake only runs of their account, and are kept for one run, each for one wait', async () => {
    const accounts = [accountId, newId('acc_', AT)]
    for (accountId of accounts) await store.run(runsSubmit.submit, { accountId, submissions: [start('same')], at: AT })
    for (accountId of accounts) await wait('same', 'paid')
    // The first step of the run is not woken.
    expect(await notify('paid')).toMatchObject({ released: [{ runId: 'same' }], offers: [{ account_id: accountId }] })
    for (const eventId of ['later', 'later', 'else'])
      expect((await notify(eventId, { runId: 'same' })).kind).toBe('kept')
    accountId = accounts[0] ?? ''
    expect((await wait('same', 'later')).kind).toBe('waiting')
    expect((await notify('paid', { runId: 'same' })).released).toHaveLength(1)
    accountId = accounts[1] ?? ''
    const kinds: string[] = []
    for (const eventId of ['later', 'later', 'later', 'else'])
      kinds.push((await wait('same', eventId, `wait ${kinds.length}`)).kind)
    expect(kinds).toEqual(['notified', 'notified', 'waiting', 'notified'])
  })

  it('are not noted for a stranger who calls a webhook that does not exist', async () => {
    await notify('hook', { runId: 'no-such-run', by: 'webhook' })
    expect(await listed()).toEqual([])
    await notify('hook', { runId: 'no-such-run' })
    expect(await listed()).toMatchObject([{ outcome: 'nobody' }])
  })

  it('are deleted when they are old, and beyond the number of an account', async () => {
    const first = accountId
    for (let index = 0; index < 7; index++) await notify(`event-${index}`, { at: AT + index })
    accountId = newId('acc_', AT)
    await notify('of another account', { at: AT + 7 })
    const trim = (after: string) => store.run(runsNotified.trimNotified, { after, keep: 4, limit: 2 })
    for (let after: string | undefined = ''; after !== undefined; ) after = (await trim(after))?.after
    expect(await listed()).toHaveLength(1)
    accountId = first
    expect((await listed()).map(({ eventId }) => eventId)).toEqual(['event-6', 'event-5', 'event-4', 'event-3'])
    const sweep = (after: number) =>
      store.run(runsNotified.sweepNotified, { after, before: AT + 5, now: AT + 9, limit: 1 })
    for (let after: number | undefined = 0; after !== undefined; ) after = await sweep(after)
    expect((await listed()).map(({ eventId }) => eventId)).toEqual(['event-6', 'event-5'])
  })
})
