import { beforeAll, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsFinish from './runs-finish.js'
import * as runsLogs from './runs-logs.js'
import * as runsNotify from './runs-notify.js'
import * as runsRead from './runs-read.js'
import type { NewElement, NewRun, ParentLink } from './runs-rows.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'
import * as runsWait from './runs-wait.js'

const { expireWait, notify } = runsNotify
const { find } = runsRead
const { finishRun } = runsFinish
const { logPage } = runsLogs
const { submit } = runsSubmit
const { wait } = runsWait
const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const settings = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }

const element = (kind: NewElement['kind'], meta: object): NewElement => ({
  kind,
  messageId: newId('msg_', AT),
  body: Buffer.from('{}'),
  meta: JSON.stringify(meta),
  dueAt: AT,
  delivery: settings,
})
const start = (runId: string, parent?: ParentLink): Submission => ({
  kind: 'start',
  run: { run_id: runId, contact: 'known', ...columns } satisfies NewRun,
  first: element('step', { delivery: settings }),
  ...(parent && { parent }),
})
const call = (stepId: number): Submission => ({
  kind: 'append',
  runId: 'r',
  element: element('toCallback', { delivery: settings, callback: { headers: { step: String(stepId) } } }),
  mark: `"step":"${stepId}"`,
})
const invoke = (stepId: number, child: string) =>
  start(child, { runId: 'r', messageId: newId('msg_', AT), url: columns.url, createdAt: AT, step: { stepId } })

describeOnEveryStore('a repeated request of a program', (openStore) => {
  let store: Store
  let accountId: string
  beforeAll(async () => {
    store = await openStore()
  })
  /** Each test has its own account and run. */
  const begin = async () => {
    accountId = newId('acc_', AT)
    await send(start('r'))
  }
  const send = async (...submissions: Submission[]) => {
    const result = await store.run(submit, { accountId, submissions, at: AT })
    return result.kind === 'accepted' ? result.results : result
  }
  const seq = async () => (await store.run(find, { accountId, runId: 'r' }))?.seq ?? 0
  const log = () =>
    store.run(logPage, { accountId, filter: { runIds: ['r'] }, before: Number.MAX_SAFE_INTEGER, limit: 1 })
  const waitFor = async (stepId: number) => {
    const record = { step: { stepId, stepType: 'Wait' }, url: columns.url, timeoutUrl: columns.url, headers: {} }
    const messageId = newId('msg_', AT)
    const args = { accountId, runId: 'r', eventId: 'e', messageId, record, deadline: AT + 1_000, at: AT }
    return { ...(await store.run(wait, args)), asked: messageId }
  }
  const say = (data: string) =>
    store.run(notify, { accountId, runId: 'r', eventId: 'e', data: Buffer.from(data), at: AT })

  it('registers no second wait: the next event is kept for the next step', async () => {
    await begin()
    await say('one')
    await say('two')
    const first = await waitFor(1)
    expect(first.kind).toBe('notified')
    expect(await waitFor(1)).toMatchObject({ kind: 'known', messageId: first.asked })
    expect((await waitFor(11)).kind).toBe('notified')
    const outs = (await log()).elements.slice(1).map(({ body }) => JSON.parse(Buffer.from(body).toString()))
    expect(outs.map(({ stepId, out }) => [stepId, Buffer.from(out, 'base64').toString()])).toEqual([
      [1, 'one'],
      [11, 'two'],
    ])
    const late = await waitFor(2)
    await store.run(expireWait, { runSeq: await seq(), messageId: late.asked, at: AT })
    expect(await waitFor(2)).toMatchObject({ kind: 'known', messageId: late.asked })
    expect((await log()).waits).toEqual([])
  })

  it('makes no second call for a step', async () => {
    await begin()
    const made = call(1)
    expect(await send(made)).toEqual([{ kind: 'appended' }])
    const messageId = made.kind === 'append' ? made.element.messageId : ''
    expect(await send(call(1), call(11))).toEqual([{ kind: 'repeated', messageId }, { kind: 'appended' }])
    expect((await log()).elements.map(({ kind }) => kind)).toEqual(['step', 'toCallback', 'toCallback'])
  })

  it('invokes no second run, even if the first one has ended', async () => {
    await begin()
    const child = invoke(1, 'c')
    expect(await send(child)).toMatchObject([{ kind: 'started', runId: 'c' }])
    const messageId = child.kind === 'start' ? child.first.messageId : ''
    expect(await send(invoke(1, 'd'), invoke(11, 'e'))).toMatchObject([
      { kind: 'repeated', messageId },
      { kind: 'started', runId: 'e' },
    ])
    await store.run(finishRun, { accountId, runId: 'c', response: 'done', at: AT })
    expect(await send(invoke(1, 'f'))).toEqual([{ kind: 'repeated', messageId }])
    expect(await store.run(find, { accountId, runId: 'f' })).toBeUndefined()
  })
})
