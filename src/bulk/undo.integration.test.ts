import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { newId } from '../base/index.js'
import { type Sink, startSink } from '../queue/testing/sink.js'
import type { Store } from '../store/index.js'
import { describeOnEveryStore, type OpenStore } from '../store/testing/index.js'
import * as runsRetention from '../workflow/transactions/runs-retention.js'
import { type BulkServer, startBulkServer } from './testing/harness.js'
import { deleteUndoData } from './testing/older-cancel.js'
import * as bulkAction from './transactions/bulk-action.js'
import { cancelMessagesBatch } from './transactions/bulk-kinds.js'
import { packSeqs } from './transactions/bulk-pack.js'
import * as bulkSelect from './transactions/bulk-select.js'

const ACTIONS = '/v2/workflows/bulkActions'
const RUNS = '/v2/workflows/runs'

interface SeenAction {
  readonly actionId: string
  readonly undo?: string
  readonly matched: number
  readonly outcomes: Readonly<Record<string, number>>
}

interface SeenRun {
  readonly workflowRunId: string
  readonly workflowState: string
  readonly workflowRunCompletedAt?: number
  readonly because?: readonly { readonly kind: string; readonly until?: number; readonly retry?: number }[]
  readonly steps: readonly object[]
}

const MODULES = [new URL('./testing/older-cancel.ts', import.meta.url).href]

describeOnEveryStore('undo of a cancel', suite, MODULES)

function suite(openStore: OpenStore): void {
  let store: Store
  let server: BulkServer
  let sink: Sink
  beforeAll(async () => {
    sink = await startSink()
    sink.answer = () => ({ status: 200 })
    store = await openStore()
    server = await startBulkServer(store)
  })
  afterAll(async () => {
    await server.stop()
    await sink.close()
  })
  const bodyOf = async <Body>(method: string, path: string, body?: unknown): Promise<Body> =>
    (await server.ask(method, path, body)).body as Body
  const finished = async (answer: { status: number; body: unknown }): Promise<SeenAction> => {
    expect(answer).toMatchObject({ status: 202 })
    const path = `${ACTIONS}/${(answer.body as SeenAction).actionId}`
    return waitFor(
      async () => {
        const action = await bodyOf<SeenAction & { state: string }>('GET', path)
        return action.state === 'finished' && action
      },
      { what: 'the action to finish' },
    )
  }
  const trigger = async (count: number, label: string, delay = '1h'): Promise<string[]> => {
    const headers = { 'Upstash-Label': label, 'Upstash-Delay': delay }
    const items = Array.from({ length: count }, () => ({ destination: `${sink.url}/${label}`, headers }))
    const started = await bodyOf<{ workflowRunId: string }[]>('POST', '/v2/batch/trigger', items)
    return started.map(({ workflowRunId }) => workflowRunId)
  }
  const runsOf = async (label: string): Promise<SeenRun[]> =>
    (await bodyOf<{ runs: SeenRun[] }>('GET', `/v2/workflows/logs?label=${label}&count=100`)).runs
  const cancel = (selector: object) => bodyOf<SeenAction>('DELETE', RUNS, { ...selector, report: true })
  const seen = (label: string) => sink.received.filter(({ target }) => target === `/${label}`)

  it('brings runs back where they stood, once, with the original clock', async () => {
    const ids = await trigger(30, 'back')
    const before = await runsOf('back')
    const { actionId, undo } = await cancel({ label: 'back' })
    expect(undo).toBe(`${ACTIONS}/${actionId}/undo`)
    expect(await bodyOf<SeenAction>('GET', `${ACTIONS}/${actionId}`)).toMatchObject({ undo })
    const look = await server.ask('POST', `${ACTIONS}/${actionId}/undo`, { dryRun: true })
    expect(look).toMatchObject({ status: 200, body: { matched: 30 } })
    expect(await finished(await server.ask('POST', undo ?? ''))).toMatchObject({
      kind: 'undoCancelRuns',
      matched: 30,
      outcomes: { undone: 30, failed: 0 },
    })
    const after = await runsOf('back')
    expect(after.map(({ workflowRunId }) => workflowRunId).sort()).toEqual([...ids].sort())
    expect(after.map(({ workflowState }) => workflowState)).toEqual(ids.map(() => 'RUN_STARTED'))
    expect(after[0]?.because).toEqual(before[0]?.because)
    expect(after[0]).not.toHaveProperty('canceledBy')
    expect(after[0]).toMatchObject({ broughtBack: { actor: 'test@example.com' } })
    expect(await finished(await server.ask('POST', undo ?? ''))).toMatchObject({ matched: 0 })
    expect(await cancel({ label: 'back' })).toMatchObject({ cancelled: 30 })
  })

  it('delivers what it brings back, also right after the cancel, each with its own settings', async () => {
    await trigger(3, 'deliver')
    const headers = { 'Upstash-Label': 'deliver', 'Upstash-Delay': '1h', 'Upstash-Forward-Colour': 'green' }
    await bodyOf('POST', '/v2/batch/trigger', [{ destination: `${sink.url}/deliver`, headers }])
    await trigger(2, 'deliver')
    const { actionId } = await cancel({ label: 'deliver' })
    await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`, { clock: 'now' }))
    const runs = (which: (colour: unknown) => boolean) =>
      new Set(seen('deliver').flatMap(({ headers: h }) => (which(h.colour) ? [h['upstash-workflow-runid']] : [])))
    await waitFor(async () => runs(() => true).size >= 6, { what: 'the deliveries' })
    expect([runs((colour) => colour === 'green').size, runs((colour) => colour === undefined).size]).toEqual([1, 5])
  })

  it('brings one run back, and refuses one that is not cancelled', async () => {
    const [runId = ''] = await trigger(1, 'one')
    const path = `${RUNS}/${runId}`
    expect(await server.ask('POST', `${path}/undo`)).toMatchObject({ status: 409 })
    await server.ask('DELETE', path)
    expect(await server.ask('POST', `${path}/undo`, { clock: 'now' })).toMatchObject({
      status: 200,
      body: { workflowRunId: runId, workflowState: 'RUN_STARTED' },
    })
    await waitFor(async () => seen('one').length >= 1, { what: 'the delivery' })
    expect(await server.ask('POST', `${RUNS}/wfr_nobody/undo`)).toMatchObject({ status: 404 })
  })

  it('gives a delivery the retries that it had left, and its failed attempts', async () => {
    sink.answer = ({ target }) => ({ status: target === '/weak' ? 500 : 200, body: 'no luck' })
    const headers = { 'Upstash-Label': 'weak', 'Upstash-Retries': '2', 'Upstash-Retry-Delay': '3600000' }
    await bodyOf('POST', '/v2/batch/trigger', [{ destination: `${sink.url}/weak`, headers }])
    const retried = async (retry: number) => {
      const [run] = await runsOf('weak')
      return run?.because?.[0]?.kind === 'retry' && run.because[0].retry === retry && run
    }
    const before = await waitFor(() => retried(1), { what: 'the first retry' })
    const { actionId } = await cancel({ label: 'weak' })
    await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`))
    const [after] = await runsOf('weak')
    expect(after).toMatchObject({ because: before.because, steps: before.steps })
    expect(JSON.stringify(before.steps)).toContain('no luck')
    await cancel({ label: 'weak' })
    await server.ask('POST', `${RUNS}/${before.workflowRunId}/undo`, { clock: 'now' })
    await waitFor(() => retried(2), { what: 'the second retry' })
    await cancel({ label: 'weak' })
    await server.ask('POST', `${RUNS}/${before.workflowRunId}/undo`, { clock: 'now' })
    await waitFor(async () => (await runsOf('weak'))[0]?.workflowState === 'RUN_FAILED', { what: 'the failure' })
    // A call of the failure function follows.
    const attempts = seen('weak').slice(0, 3)
    expect(attempts.map(({ headers: { 'upstash-retried': n } }) => n)).toEqual(['0', '1', '2'])
    sink.answer = () => ({ status: 200 })
  })

  it('says that a run stays cancelled whose cancel kept nothing, because an older version made it', async () => {
    const [runId = ''] = await trigger(1, 'old')
    const { actionId } = await cancel({ label: 'old' })
    await store.run(deleteUndoData, {})
    const undone = await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`))
    expect(undone).toMatchObject({ matched: 1, outcomes: { undone: 0, failed: 1 } })
    const { outcomes } = await bodyOf<{ outcomes: object[] }>('GET', `${ACTIONS}/${undone.actionId}/outcomes`)
    expect(outcomes).toMatchObject([{ outcome: 'failed', error: expect.stringContaining('did not store') }])
    const alone = await server.ask('POST', `${RUNS}/${runId}/undo`)
    expect(alone).toMatchObject({ status: 409, body: { error: expect.stringContaining('did not store') } })
    expect(await runsOf('old')).toMatchObject([{ workflowState: 'RUN_CANCELED' }])
  })

  it('brings a paused run back paused', async () => {
    const [runId = ''] = await trigger(1, 'paused')
    const path = `${RUNS}/${runId}`
    expect(await server.ask('POST', `${path}/pause`)).toMatchObject({ status: 200 })
    await server.ask('DELETE', path)
    expect(await server.ask('POST', `${path}/undo`, { clock: 'now' })).toMatchObject({ status: 200 })
    const [run] = await runsOf('paused')
    expect(run?.because?.map(({ kind }) => kind)).toEqual(['paused'])
    expect(seen('paused')).toEqual([])
    expect(await server.ask('POST', `${path}/resume`)).toMatchObject({ status: 200 })
    await waitFor(async () => seen('paused').length >= 1, { what: 'the delivery' })
  })

  it('keeps the waits of a run with their deadlines, and events reach them', async () => {
    const [runId = ''] = await trigger(1, 'waits')
    const url = `${sink.url}/waits`
    const step = { stepId: 1, stepName: 'paid?', stepType: 'Wait', waitEventId: 'paid', timeout: '1h', concurrent: 1 }
    const headers = { 'Upstash-Workflow-RunId': runId, 'Upstash-Workflow-Url': url, 'Upstash-Workflow-Init': 'false' }
    await server.ask('POST', '/v2/wait/paid', { url, timeout: '1h', step }, headers)
    const { actionId } = await cancel({ label: 'waits' })
    expect(await bodyOf<object[]>('POST', '/v2/notify/paid', { n: 1 })).toEqual([])
    await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`))
    expect(await bodyOf<object[]>('POST', '/v2/notify/paid', { n: 2 })).toHaveLength(1)
    await waitFor(async () => seen('waits').length >= 1, { what: 'the end of the wait' })
    expect(seen('waits')[0]?.body).toContain('"callType":"step"')
    expect(await cancel({ label: 'waits' })).toMatchObject({ cancelled: 1 })
  })

  it('leaves runs alone that a fence blocks, and those that another cancel cancelled since', async () => {
    const [first = ''] = await trigger(3, 'fenced')
    const fenceUntil = Date.now() + 3_600_000
    const { actionId } = await cancel({ label: 'fenced', fenceUntil })
    const fenced = await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`))
    expect(fenced).toMatchObject({ matched: 3, outcomes: { undone: 0, failed: 3 } })
    await server.ask('DELETE', `${ACTIONS}/${actionId}/fence`)
    await server.ask('POST', `${RUNS}/${first}/undo`)
    await server.ask('DELETE', `${RUNS}/${first}`)
    const rest = await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`))
    expect(rest).toMatchObject({ matched: 2, outcomes: { undone: 2 } })
    expect((await runsOf('fenced')).filter(({ workflowState }) => workflowState === 'RUN_CANCELED')).toHaveLength(1)
  })

  it('does not let retention delete a run that was brought back', async () => {
    const [runId = ''] = await trigger(1, 'kept')
    const { actionId } = await cancel({ label: 'kept' })
    await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`))
    const finishedBefore = Date.now() + 1_000
    let after: number | undefined = 0
    while (after !== undefined)
      after = await store.run(runsRetention.sweepRuns, { after, finishedBefore, now: finishedBefore, limit: 500 })
    expect((await runsOf('kept')).map(({ workflowRunId }) => workflowRunId)).toEqual([runId])
  })

  it('brings messages back, in their queue too', async () => {
    const headers = { 'upstash-label': 'mail', 'upstash-delay': '1h' }
    const items = Array.from({ length: 12 }, () => ({ destination: `${sink.url}/mail`, headers, body: 'hello' }))
    await server.ask('POST', '/v2/batch', items)
    const queued = { destination: `${sink.url}/mail`, queue: 'line', headers, body: 'queued' }
    await server.ask('POST', '/v2/batch', [queued, queued])
    const { actionId } = await finished(
      await server.ask('POST', ACTIONS, { kind: 'cancelMessages', selector: { label: 'mail' } }),
    )
    const undone = await finished(await server.ask('POST', `${ACTIONS}/${actionId}/undo`, { clock: 'now' }))
    expect(undone).toMatchObject({ kind: 'undoCancelMessages', matched: 14, outcomes: { undone: 14 } })
    await waitFor(async () => seen('mail').length === 14, { what: 'the messages' })
    const bodies = seen('mail').map(({ body }) => body)
    expect(bodies.filter((body) => body === 'queued')).toHaveLength(2)
  })

  it('brings back all messages of a cancel whose last batch began before another one', async () => {
    const { accountId } = server
    const headers = { 'upstash-label': 'apart', 'upstash-delay': '1h' }
    const item = { destination: `${sink.url}/apart`, headers }
    const made = await bodyOf<{ messageId: string }[]>('POST', '/v2/batch', [item, item, item, item])
    const [other = '', ...ids] = made.map(({ messageId }) => messageId)
    const found = await store.run(bulkSelect.selectNamedMessages, { accountId, kind: 'http', ids })
    const chunks = found.map(({ seq }) => ({ items: 1, seqs: packSeqs([seq]) }))
    const at = Date.now() - 10_000
    const actionId = newId('bulk_', at)
    const who = { actor: 'a@example.test', source: 'QUEUE_TOKEN', ip: '::1' }
    const how = { kind: 'cancelMessages', selector: '{}', settings: null, reason: null, ratePerSecond: null } as const
    const action = { actionId, accountId, at, chunks, absent: [], fence: null, ...who, ...how }
    const { seq: actionSeq } = await store.run(bulkAction.createAction, action)
    // The clock of a node that has begun may be behind that of another, which goes on.
    for (const [chunk, laterMs] of [-900, 150, 100].entries())
      await store.run(cancelMessagesBatch, { actionSeq, chunk, from: 0, to: 1, at: at + laterMs })
    // What has been brought back since is no message of this cancel.
    expect(await server.ask('DELETE', `/v2/messages/${other}`)).toMatchObject({ status: 200 })
    expect(await server.ask('POST', `/v2/messages/${other}/undo`)).toMatchObject({ status: 200 })
    const undo = () => server.ask('POST', `${ACTIONS}/${actionId}/undo`)
    expect(await finished(await undo())).toMatchObject({ matched: 3, outcomes: { undone: 3 } })
    // One that another request has cancelled since stays cancelled.
    expect(await server.ask('DELETE', `/v2/messages/${ids[0]}`)).toMatchObject({ status: 200 })
    expect(await finished(await undo())).toMatchObject({ matched: 0 })
  })

  it('refuses what it cannot undo', async () => {
    const start = (selector: object, more = {}) =>
      server.ask('POST', ACTIONS, { kind: 'undoCancelRuns', selector, ...more })
    expect(await start({})).toMatchObject({ status: 400 })
    expect(await start({ label: 'x' })).toMatchObject({ status: 400 })
    expect(await start({ workflowRunIds: ['wfr_a'] }, { clock: 'never' })).toMatchObject({ status: 400 })
    expect(await start({ actionId: 'bulk_nobody' })).toMatchObject({ status: 404 })
    await trigger(2, 'slow')
    const slowly = { label: 'slow', async: true, ratePerSecond: 1 }
    const { actionId } = await bodyOf<SeenAction>('DELETE', RUNS, slowly)
    await server.ask('POST', `${ACTIONS}/${actionId}/pause`)
    expect(await server.ask('POST', `${ACTIONS}/${actionId}/undo`)).toMatchObject({ status: 409 })
    await server.ask('POST', `${ACTIONS}/${actionId}/abort`)
  })
}
