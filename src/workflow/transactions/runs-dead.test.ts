import { beforeAll, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsAwaited from './runs-awaited.js'
import * as runsCallbacks from './runs-callbacks.js'
import * as runsDead from './runs-dead.js'
import * as runsFinish from './runs-finish.js'
import * as runsLogs from './runs-logs.js'
import * as runsNotify from './runs-notify.js'
import * as runsRead from './runs-read.js'
import * as runsRetention from './runs-retention.js'
import type { DeadRun, Revival, RunRevision } from './runs-revive.js'
import * as runsRevive from './runs-revive.js'
import type { NewElement, NewRun, ParentLink } from './runs-rows.js'
import * as runsSettle from './runs-settle.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'
import * as runsWait from './runs-wait.js'

const { deleteDeadRuns } = runsDead
const { find } = runsRead
const { finishRun } = runsFinish
const { logPage } = runsLogs
const { notify } = runsNotify
const { retryCallback } = runsCallbacks
const { revivable, revive } = runsRevive
const { settleRun } = runsSettle
const { submit } = runsSubmit
const { sweepRuns } = runsRetention
const { wait } = runsWait
const { waiters } = runsAwaited
const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '|a|', flow_key: null, caller_ip: '::1' }
const settings = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
const NO_REVISION: RunRevision = { config: {}, headers: {} }

const run = (runId: string): NewRun => ({ run_id: runId, contact: 'known', ...columns })
const element = (text: string, dueAt = AT): NewElement => ({
  kind: 'step',
  messageId: newId('msg_', AT),
  body: Buffer.from(text),
  meta: null,
  dueAt,
})
const start = (runId: string, parent?: ParentLink): Submission => {
  const first = { ...element('payload'), meta: JSON.stringify({ delivery: settings }), delivery: settings }
  return { kind: 'start', run: run(runId), first, ...(parent && { parent }) }
}

describeOnEveryStore('dead letters of runs', (openStore) => {
  let store: Store
  let accountId: string

  beforeAll(async () => {
    store = await openStore()
  })
  const send = async (...submissions: Submission[]): Promise<readonly PendingRow[]> => {
    const result = await store.run(submit, { accountId, submissions, at: AT })
    return result.kind === 'accepted' ? result.offers : expect.fail(`refused: ${result.kind}`)
  }
  const append = (runId: string, text: string, dueAt?: number) =>
    send({ kind: 'append', runId, element: element(text, dueAt) })
  const fail = async (
    message: PendingRow,
    at: number,
    callback?: NewElement,
    failure: { status: number; [more: string]: unknown } = { status: 503 },
  ) => {
    const attempt = { startedAt: at, status: 503, headers: '{}', body: null, error: null }
    await store.run(settleRun, {
      runSeq: message.group_key ?? 0,
      message: { seq: message.seq, retried: 0, at, attempt, end: { kind: 'delivered', keep: false }, follow: [] },
      effect: {
        kind: 'fail',
        failing: { failure, dlqId: `${at}-${message.seq}`, ...(callback && { callback }) },
      },
    })
  }
  const selector = (filter: object = {}) => ({ accountId, filter, order: 'earliestFirst' as const, limit: 10 })
  const letters = async (filter: object = {}): Promise<DeadRun[]> => (await store.run(revivable, selector(filter))).runs
  const logOf = async (runId: string) => {
    const filter = { runIds: [runId] }
    const page = await store.run(logPage, { accountId, filter, before: Number.MAX_SAFE_INTEGER, limit: 1 })
    return {
      texts: page.elements.map(({ body }) => Buffer.from(body).toString()),
      pending: page.pending.map(({ message_id, next_at, max_retries }) => ({ message_id, next_at, max_retries })),
      waits: page.waits.map(({ event_id }) => event_id),
    }
  }
  const again = (revivals: readonly Revival[]) =>
    store.run(revive, { accountId, revivals, dueAt: AT + 50, at: AT + 50 })
  const resumption = (dead: DeadRun, runId: string, revision = NO_REVISION): Revival => ({
    kind: 'resume',
    seq: dead.seq,
    run: run(runId),
    meta: dead.meta ?? '',
    revision,
  })

  it('keeps a run as long as the one that resumed it, which still gets what is sent to its webhooks', async () => {
    accountId = newId('acc_', AT)
    await send(start('old'))
    const [failing] = await send({ kind: 'append', runId: 'old', element: { ...element('hook'), webhook: 'hook' } })
    if (failing) await fail(failing, AT + 10)
    const [dead] = await letters()
    await again(dead ? [resumption(dead, 'new')] : [])
    const sweep = () =>
      store.run(sweepRuns, { after: 0, finishedBefore: AT + 1_000_000, now: AT + 1_000_000, limit: 1_000 })
    await sweep()
    const call = { accountId, runId: 'old', eventId: 'hook', by: 'webhook' as const, data: Buffer.from('x'), at: AT }
    expect(await store.run(notify, call)).toMatchObject({ kind: 'kept' })
    await store.run(finishRun, { accountId, runId: 'new', response: '', at: AT + 60 })
    await sweep()
    await sweep()
    const found = ['old', 'new'].map((runId) => store.run(find, { accountId, runId }))
    expect(await Promise.all(found)).toEqual([undefined, undefined])
  })

  it('resumes with the list, the pending messages, the waits and the invoked runs', async () => {
    accountId = newId('acc_', AT)
    await send(start('dead'))
    const [failing] = await append('dead', 'failing')
    const [asleep] = await append('dead', 'asleep', AT + 1_000_000)
    const record = { step: { stepId: 4 }, url: columns.url, timeoutUrl: columns.url, headers: {} }
    const waiting = { accountId, runId: 'dead', eventId: 'event', messageId: newId('msg_', AT), record }
    await store.run(wait, { ...waiting, deadline: AT + 9_000, at: AT })
    const link = { runId: 'dead', messageId: newId('msg_', AT), url: columns.url, createdAt: AT, step: { stepId: 5 } }
    await send(start('child', link))
    if (failing) await fail(failing, AT + 10)
    expect(await store.run(waiters, { accountId, eventId: 'event', after: 0, limit: 10 })).toEqual({ waits: [] })
    await store.run(finishRun, { accountId, runId: 'child', response: 'grown', at: AT + 20 })

    const [dead] = await letters()
    expect(dead).toMatchObject({ run_id: 'dead' })
    const { revived, offers } = await again(dead ? [resumption(dead, 'alive', { ...NO_REVISION, maxRetries: 9 })] : [])
    expect(revived).toEqual([{ seq: dead?.seq, runId: 'alive' }])
    const alive = await logOf('alive')
    const news = '{"stepId":5,"out":"{\\"body\\":\\"grown\\",\\"isCanceled\\":false,\\"isFailed\\":false}"}'
    expect(alive.texts).toEqual(['payload', 'failing', 'asleep', news])
    expect(alive.waits).toEqual(['event'])
    expect(alive.pending).toEqual(
      expect.arrayContaining([
        { message_id: failing?.message_id, next_at: AT + 50, max_retries: 9 },
        { message_id: asleep?.message_id, next_at: AT + 1_000_000, max_retries: 9 },
        { message_id: waiting.messageId, next_at: AT + 9_000, max_retries: 3 },
      ]),
    )
    expect(offers.map(({ message_id }) => message_id).sort()).toEqual(
      alive.pending.map(({ message_id }) => message_id).sort(),
    )
    expect(await store.run(notify, { accountId, eventId: 'event', data: Buffer.from('x'), at: AT })).toMatchObject({
      released: [{ runId: 'alive' }],
    })
    expect(await letters()).toEqual([])
    expect(dead && (await again([resumption(dead, 'twice')]))).toEqual({ revived: [], offers: [] })
    expect(await store.run(find, { accountId, runId: 'twice' })).toBeUndefined()
  })

  it('restarts with the payload alone, even after a long list', async () => {
    accountId = newId('acc_', AT)
    await send(start('dead'))
    const [failing] = await append('dead', 'failing')
    if (failing) await fail(failing, AT + 10)
    const [dead] = await letters()
    const messageId = newId('msg_', AT)
    const opening = { ...settings, max_retries: 1 }
    const restarted = { seq: dead?.seq ?? 0, run: run('alive'), meta: dead?.meta ?? '', messageId, opening }
    await again([{ kind: 'restart', ...restarted }])
    expect(await logOf('alive')).toEqual({
      texts: ['payload'],
      pending: [{ message_id: messageId, next_at: AT + 50, max_retries: 1 }],
      waits: [],
    })
  })

  it('pages in the order of failures, and lets only one of concurrent requests delete or revive a letter', async () => {
    accountId = newId('acc_', AT)
    const failures = [30, 10, 20]
    for (const [index, at] of failures.entries()) {
      const [message] = await send(start(`run-${index}`))
      if (message) await fail(message, AT + at)
    }
    const first = await store.run(revivable, { ...selector(), limit: 2 })
    expect([first.runs.map(({ run_id }) => run_id), first.next?.at]).toEqual([['run-1', 'run-2'], AT + 20])
    const second = await store.run(revivable, { ...selector(), ...(first.next && { after: first.next }), limit: 2 })
    expect([second.runs.map(({ run_id }) => run_id), second.next]).toEqual([['run-0'], undefined])
    const filters = { runIdPrefixes: ['run-'], statuses: [503], labels: ['a'], urls: [columns.url], from: AT + 15 }
    expect((await letters(filters)).map(({ run_id }) => run_id)).toEqual(['run-2', 'run-0'])
    const [dead] = await letters()
    const outcomes = await Promise.all([
      store.run(deleteDeadRuns, selector({ dlqIds: [dead?.dlq_id] })).then(({ runs }) => runs.length),
      again(dead ? [resumption(dead, 'alive')] : []).then(({ revived }) => revived.length),
    ])
    expect(outcomes.sort()).toEqual([0, 1])
  })

  it('reads of dead letters that are revived only why they failed', async () => {
    accountId = newId('acc_', AT)
    const [message] = await send(start('dead'))
    if (message) await fail(message, AT, undefined, { status: 503, body: 'x'.repeat(100_000), reason: 'unknown-sdk' })
    const dead = await letters()
    expect(dead).toMatchObject([{ run_id: 'dead', reason: 'unknown-sdk' }])
    expect(JSON.stringify(dead).length).toBeLessThan(2_000)
  })

  it('retries a failure callback only after it has failed', async () => {
    accountId = newId('acc_', AT)
    const [message] = await send(start('dead'))
    const callback = { ...element('callback'), kind: 'failureCall' as const }
    const meta = JSON.stringify({ delivery: settings })
    if (message) await fail(message, AT, { ...callback, meta, delivery: settings })
    const args = { accountId, dlqId: `${AT}-${message?.seq}`, at: AT }
    expect(await store.run(retryCallback, args)).toMatchObject({ kind: 'refused' })
    expect(await store.run(retryCallback, { ...args, dlqId: '1-1' })).toEqual({ kind: 'missing' })
    expect(await store.run(runsCallbacks.cancelCallback, args)).toMatchObject({ kind: 'changed' })
    expect((await logOf('dead')).pending).toEqual([])
  })
})
