import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { systemClock } from '../../base/index.js'
import { type Sink, startSink } from '../../queue/testing/sink.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { type BulkServer, startBulkServer } from '../testing/harness.js'

const ACTIONS = '/v2/workflows/bulkActions'

interface SeenAction {
  readonly actionId: string
  readonly matched: number
  readonly outcomes: Readonly<Record<string, number>>
}

describeOnSampledStore('bulk actions of every kind', (openStore) => {
  let server: BulkServer
  let sink: Sink
  beforeAll(async () => {
    sink = await startSink()
    sink.answer = ({ target }) => ({ status: target.startsWith('/dead') ? 500 : 200 })
    server = await startBulkServer(await openStore())
  })
  afterAll(async () => {
    await server.stop()
    await sink.close()
  })
  const list = async <Entry>(path: string, member: string): Promise<Entry[]> =>
    ((await server.ask('GET', path)).body as Record<string, Entry[]>)[member] ?? []
  const start = (kind: string, selector: object, headers = {}) =>
    server.ask('POST', ACTIONS, { kind, selector, reason: 'a test' }, headers)
  const finished = async (kind: string, selector: object, headers = {}): Promise<SeenAction> => {
    const answer = await start(kind, selector, headers)
    expect(answer.status).toBe(202)
    const { actionId } = answer.body as SeenAction
    return waitFor(
      async () => {
        const { body } = await server.ask('GET', `${ACTIONS}/${actionId}`)
        return (body as { state: string }).state === 'finished' && (body as SeenAction)
      },
      { what: `${kind} to finish` },
    )
  }
  const deadRuns = (label: string) =>
    list<{ dlqId: string; workflowRunId: string }>(`/v2/workflows/dlq?label=${label}`, 'messages')
  const deadLetters = (label: string) =>
    list<{ dlqId: string; messageId: string }>(`/v2/dlq?label=${label}`, 'messages')
  const failRuns = async (count: number, label: string, more: Readonly<Record<string, string>> = {}) => {
    const headers = { 'Upstash-Label': label, 'Upstash-Retries': '0', ...more }
    const items = Array.from({ length: count }, () => ({ destination: `${sink.url}/dead`, headers }))
    expect((await server.ask('POST', '/v2/batch/trigger', items)).status).toBe(201)
    return waitFor(
      async () => {
        const found = await deadRuns(label)
        return found.length === count && found
      },
      { what: 'the runs to fail' },
    )
  }
  const failMessages = async (count: number, label: string) => {
    const headers = { 'upstash-label': label, 'upstash-retries': '0' }
    const items = Array.from({ length: count }, () => ({ destination: `${sink.url}/dead`, headers, body: 'x' }))
    expect((await server.ask('POST', '/v2/batch', items)).status).toBe(200)
    return waitFor(
      async () => {
        const found = await deadLetters(label)
        return found.length === count && found
      },
      { what: 'the messages to fail' },
    )
  }

  it('cancels messages', async () => {
    const headers = { 'upstash-label': 'late', 'upstash-delay': '1h' }
    const items = Array.from({ length: 1_100 }, () => ({ destination: `${sink.url}/x`, headers, body: 'x' }))
    const published = (await server.ask('POST', '/v2/batch', items)).body as { messageId: string }[]
    const ids = published.slice(0, 2).map(({ messageId }) => messageId)
    const named = await finished('cancelMessages', { messageIds: [...ids, 'msg_nobody'] })
    expect(named).toMatchObject({ matched: 3, outcomes: { cancelled: 2, alreadyFinished: 0, notFound: 1, failed: 0 } })
    const { actionId, ...rest } = await finished('cancelMessages', { label: 'late' })
    expect(rest).toMatchObject({ kind: 'cancelMessages', matched: 1_098, cancelled: 1_098, reason: 'a test' })
    const page = await list<object>(`${ACTIONS}/${actionId}/outcomes?count=1`, 'outcomes')
    expect(page).toEqual([{ messageId: expect.stringMatching(/^msg_/), outcome: 'cancelled' }])
    expect((await server.ask('GET', `/v2/messages/${ids[0]}`)).status).toBe(404)
    expect(await finished('cancelMessages', { messageIds: ids })).toMatchObject({ outcomes: { alreadyFinished: 2 } })
    expect(await finished('cancelMessages', { messageIds: [] })).toMatchObject({ matched: 0 })
  })

  it('cancels many messages as an action, and few without one', async () => {
    const headers = { 'upstash-label': 'many', 'upstash-delay': '1h' }
    const items = Array.from({ length: 1_300 }, () => ({ destination: `${sink.url}/x`, headers, body: 'x' }))
    await server.ask('POST', '/v2/batch', items)
    const cancel = (query: string) => server.ask('DELETE', `/v2/messages?label=many${query}`)
    const newest = async () => (await list<SeenAction>(`${ACTIONS}?count=1`, 'bulkActions'))[0]
    const before = (await newest())?.actionId
    expect(await cancel('&count=5')).toEqual({ status: 200, body: { cancelled: 5 } })
    expect((await newest())?.actionId).toBe(before)
    expect(await cancel('')).toEqual({ status: 200, body: { cancelled: 1_295 } })
    expect(await newest()).toMatchObject({ kind: 'cancelMessages', matched: 1_295, selector: { labels: ['many'] } })
    expect(await cancel('')).toEqual({ status: 200, body: { cancelled: 0 } })
  })

  it('restarts, resumes and deletes failed runs', async () => {
    const [first, ...others] = await failRuns(5, 'broken')
    const one = await finished('restartRuns', { dlqIds: [first?.dlqId, '1-1'] }, { 'upstash-delay': '1h' })
    expect(one).toMatchObject({ matched: 2, outcomes: { restarted: 1, notFound: 1 } })
    expect(await deadRuns('broken')).toHaveLength(4)
    const runs = await list<{ workflowRunId: string }>('/v2/workflows/logs?label=broken&state=RUN_STARTED', 'runs')
    expect(runs).toHaveLength(1)
    const resumed = await finished('resumeRuns', { label: 'broken', count: 2 }, { 'upstash-delay': '1h' })
    expect(resumed).toMatchObject({ kind: 'resumeRuns', matched: 2, outcomes: { resumed: 2 } })
    const left = others[3]
    expect(await deadRuns('broken')).toMatchObject([{}, { dlqId: left?.dlqId }])
    expect(await finished('deleteDeadRuns', { label: 'broken' })).toMatchObject({
      matched: 2,
      outcomes: { deleted: 2 },
    })
    expect(await deadRuns('broken')).toEqual([])
    expect(await finished('cancelRuns', { label: 'broken' })).toMatchObject({ matched: 3, outcomes: { cancelled: 3 } })
    const [cancelled] = await list<object>('/v2/workflows/logs?label=broken&state=RUN_CANCELED&count=1', 'runs')
    expect(cancelled).toMatchObject({ canceledBy: { reason: 'a test', actor: 'test@example.com' } })
  })

  it('calls only failed failure functions again', async () => {
    const alarm = (path: string) => ({ 'Upstash-Failure-Callback': `${sink.url}${path}` })
    await failRuns(3, 'alarmed', alarm('/dead-alarm'))
    await failRuns(1, 'alarmed-well', alarm('/alarm'))
    interface Letter {
      readonly dlqId: string
      readonly workflowRunId: string
      readonly failureCallbackInfo?: { readonly state: string }
    }
    const inState = (state: string | undefined, count: number, labels = 'alarmed') =>
      waitFor(
        async () => {
          const letters = await list<Letter>(`/v2/workflows/dlq?label=${labels}`, 'messages')
          const found = letters.filter(({ failureCallbackInfo }) => failureCallbackInfo?.state === state)
          return found.length === count && found
        },
        { what: `${count} failure functions to be ${state}` },
      )
    const failed = await inState('CALLBACK_FAIL', 3)
    const [well] = await inState('CALLBACK_SUCCESS', 1, 'alarmed-well')
    const ids = [failed[0], well].map((letter) => letter?.dlqId)
    const kind = 'retryFailureCallbacks'

    const look = await server.ask('POST', ACTIONS, { kind, selector: { dlqIds: ids }, dryRun: true })
    expect(look.body).toMatchObject({ matched: 1, sample: [failed[0]?.workflowRunId] })
    const all = await server.ask('POST', ACTIONS, {
      kind,
      selector: { label: ['alarmed', 'alarmed-well'] },
      dryRun: true,
    })
    expect(all.body).toMatchObject({ matched: 3, preview: failed.map(({ dlqId }) => ({ dlqId })) })

    const before = sink.received.filter(({ target }) => target === '/dead-alarm').length
    const named = await finished(kind, { dlqIds: [...ids, '1-1'] })
    expect(named).toMatchObject({
      kind,
      matched: 3,
      outcomes: { retried: 1, alreadyFinished: 1, notFound: 1, failed: 0 },
    })
    const page = await list<object>(`${ACTIONS}/${named.actionId}/outcomes`, 'outcomes')
    expect(page).toEqual([
      { workflowRunId: failed[0]?.workflowRunId, outcome: 'retried' },
      {
        workflowRunId: well?.workflowRunId,
        outcome: 'alreadyFinished',
        error: expect.stringContaining('CALLBACK_SUCCESS'),
      },
      { dlqId: '1-1', outcome: 'notFound', error: expect.stringContaining('No dead letter') },
    ])
    await inState('CALLBACK_FAIL', 3)
    expect(sink.received.filter(({ target }) => target === '/dead-alarm')).toHaveLength(before + 1)

    const limited = await finished(kind, { dlqIds: failed.map(({ dlqId }) => dlqId), count: 2 })
    expect(limited).toMatchObject({ outcomes: { retried: 2 } })
    await inState('CALLBACK_FAIL', 3)
    sink.answer = ({ target }) => ({ status: target === '/dead' ? 500 : 200 })
    expect(await finished(kind, { label: 'alarmed' })).toMatchObject({ matched: 3, outcomes: { retried: 3 } })
    await inState('CALLBACK_SUCCESS', 3)
    expect(await finished(kind, { label: 'alarmed' })).toMatchObject({ matched: 0 })
    expect((await start(kind, { failureFunctionState: ['CALLBACK_SUCCESS'] })).status).toBe(400)
    expect(await deadRuns('alarmed')).toHaveLength(3)
    sink.answer = ({ target }) => ({ status: target.startsWith('/dead') ? 500 : 200 })
  })

  it('does not resume a run that a fence blocks', async () => {
    const [first] = await failRuns(3, 'fenced')
    await failRuns(1, 'free')
    const fence = { label: 'fenced', fenceUntil: systemClock.now() + 3_600_000, report: true }
    const fenced = await server.ask('DELETE', '/v2/workflows/runs', fence)
    const { actionId } = fenced.body as { actionId: string }
    const delay = { 'upstash-delay': '1h' }
    const resume = () => server.ask('POST', `/v2/workflows/dlq/resume/${first?.dlqId}`, undefined, delay)
    expect(await resume()).toMatchObject({ status: 409, body: { error: expect.stringContaining(actionId) } })
    const restartAll = await server.ask('POST', '/v2/workflows/dlq/restart', undefined, delay)
    expect(restartAll).toMatchObject({ status: 409 })
    expect(await deadRuns('free')).toHaveLength(1)

    const both = await finished('resumeRuns', { label: ['fenced', 'free'] }, delay)
    expect(both).toMatchObject({ matched: 4, failed: 3, outcomes: { resumed: 1, failed: 3 } })
    const outcomes = await list<object>(`${ACTIONS}/${both.actionId}/outcomes?outcome=failed`, 'outcomes')
    expect(outcomes).toHaveLength(3)
    expect(outcomes[0]).toMatchObject({ outcome: 'failed', error: expect.stringContaining('fence') })
    expect(await deadRuns('fenced')).toHaveLength(3)
    await server.ask('DELETE', `${ACTIONS}/${actionId}/fence`)
    expect(await finished('restartRuns', { label: 'fenced' }, delay)).toMatchObject({ outcomes: { restarted: 3 } })
    expect(await finished('cancelRuns', { label: ['fenced', 'free'] })).toMatchObject({ matched: 4 })
  })

  it('resends and deletes dead letters', async () => {
    const letters = await failMessages(6, 'lost')
    const again = await finished('retryDeadLetters', { label: 'lost', count: 2 }, { 'upstash-delay': '1h' })
    expect(again).toMatchObject({ matched: 2, outcomes: { retried: 2 } })
    expect(await deadLetters('lost')).toHaveLength(4)
    const dlqIds = letters.map(({ dlqId }) => dlqId)
    const rest = await finished('deleteDeadLetters', { dlqIds })
    expect(rest).toMatchObject({ matched: 6, outcomes: { deleted: 4, notFound: 2 } })
    expect(await finished('cancelMessages', { label: 'lost' })).toMatchObject({ outcomes: { cancelled: 2 } })
  })

  it('previews the first items of every kind with dryRun', async () => {
    const look = async (kind: string, selector: object) => {
      const { status, body } = await server.ask('POST', ACTIONS, { kind, selector, dryRun: true })
      expect(status).toBe(200)
      return body as { matched: number; sample: string[]; preview: object[] }
    }
    const url = `${sink.url}/dead`
    const shared = { url, labels: ['looked'], createdAt: expect.any(Number) }
    const runs = await failRuns(2, 'looked')
    const run = ({ workflowRunId, dlqId }: { workflowRunId: string; dlqId: string }) => ({
      workflowRunId,
      dlqId,
      ...shared,
    })
    for (const kind of ['resumeRuns', 'restartRuns', 'deleteDeadRuns']) {
      const sample = runs.map(({ workflowRunId }) => workflowRunId)
      expect(await look(kind, { label: 'looked' })).toEqual({ matched: 2, sample, preview: runs.map(run) })
      const last = runs.slice(1)
      expect(await look(kind, { dlqIds: [last[0]?.dlqId, '1-1'] })).toMatchObject({
        matched: 1,
        preview: last.map(run),
      })
    }
    const letters = await failMessages(2, 'looked')
    for (const kind of ['retryDeadLetters', 'deleteDeadLetters']) {
      const preview = letters.map(({ messageId, dlqId }) => ({ messageId, dlqId, ...shared }))
      const sample = letters.map(({ messageId }) => messageId)
      expect(await look(kind, { label: 'looked' })).toEqual({ matched: 2, sample, preview })
    }
    const headers = { 'upstash-label': 'looked', 'upstash-delay': '1h' }
    const items = Array.from({ length: 25 }, () => ({ destination: `${sink.url}/x`, headers }))
    const ids = ((await server.ask('POST', '/v2/batch', items)).body as { messageId: string }[]).map(
      (one) => one.messageId,
    )
    const many = await look('cancelMessages', { label: 'looked' })
    expect([many.matched, many.sample]).toEqual([25, ids.slice(0, 20)])
    expect(many.preview[0]).toEqual({ ...shared, messageId: ids[0], url: `${sink.url}/x` })
    const { messageId: ended } = letters[0] ?? { messageId: '' }
    expect(await look('cancelMessages', { messageIds: [ids[3], ended, 'msg_nobody'] })).toMatchObject({
      sample: [ids[3]],
    })
    const named = await finished('cancelMessages', { messageIds: [...ids, ...ids, ended], count: 3 })
    expect(named).toMatchObject({ outcomes: { cancelled: 3, alreadyFinished: 1 } })
    expect(await look('cancelMessages', { messageIds: ids })).toMatchObject({ matched: 22 })
  })

  it('counts each of very many ids once, however often it is given', async () => {
    const published = await server.ask('POST', '/v2/batch', [
      { destination: `${sink.url}/x`, headers: { 'upstash-delay': '1h' } },
    ])
    const [{ messageId } = { messageId: '' }] = published.body as { messageId: string }[]
    const strangers = Array.from({ length: 1_500 }, (_, index) => `msg_nobody${index}`)
    const messageIds = [messageId, ...strangers, messageId, ...strangers]
    const action = await finished('cancelMessages', { messageIds })
    expect(action).toMatchObject({ matched: 1_501, outcomes: { cancelled: 1, notFound: 1_500, alreadyFinished: 0 } })
  })

  it('changes nothing with dryRun, and refuses unknown fields', async () => {
    await failRuns(1, 'kept')
    const dryRun = (kind: string, selector: object) => server.ask('POST', ACTIONS, { kind, selector, dryRun: true })
    const none = { matched: 0, sample: [], preview: [] }
    expect(await dryRun('cancelRuns', { label: 'kept' })).toEqual({ status: 200, body: none })
    const wrong: [string, object][] = [
      ['resumeRuns', { labeel: 'kept' }],
      ['resumeRuns', { cursor: '1-1' }],
      ['cancelMessages', { dlqIds: ['1-1'] }],
      ['deleteDeadLetters', { workflowUrl: 'x' }],
      ['retryDeadLetters', { count: -1 }],
      ['cancelRuns', { labeel: 'kept' }],
      ['cancelRuns', { label: 'kept', dryRun: true }],
      ['cancelRuns', { label: 'kept', fenceUntil: Date.now() + 60_000 }],
      ['cancelEverything', {}],
      ['cancelMessages', { label: [] }],
      ['cancelMessages', { url: [] }],
      ['deleteDeadLetters', { messageId: [] }],
      ['deleteDeadLetters', { responseStatus: [] }],
      ['deleteDeadRuns', { label: [] }],
      ['deleteDeadRuns', { label: '' }],
      ['deleteDeadRuns', { workflowRunId: [''] }],
      ['deleteDeadRuns', { workflowUrl: '' }],
      ['resumeRuns', { failureFunctionState: [] }],
      ['resumeRuns', { failureFunctionState: ['NONSENSE'] }],
      ['deleteDeadRuns', { fromDate: 1_700_000_000 }],
      ['deleteDeadLetters', { fromDate: 1_700_000_000 }],
      ['cancelMessages', { toDate: 1_700_000_000_000_000 }],
    ]
    for (const [kind, selector] of wrong) expect([kind, (await start(kind, selector)).status]).toEqual([kind, 400])
    const fence = { kind: 'resumeRuns', fenceUntil: Date.now() + 60_000 }
    expect((await server.ask('POST', ACTIONS, fence)).status).toBe(400)
    expect((await start('retryDeadLetters', {}, { 'upstash-retries': 'many' })).status).toBe(400)
    expect(await deadRuns('kept')).toHaveLength(1)
  })
})
