import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { newId } from '../base/index.js'
import { type Sink, startSink } from '../queue/testing/sink.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore, describeOnStore } from '../store/testing/index.js'
import { raw } from '../store/testing/inspect.js'
import * as runsCancel from '../workflow/transactions/runs-cancel.js'
import * as runsLogs from '../workflow/transactions/runs-logs.js'
import * as runsPause from '../workflow/transactions/runs-pause.js'
import * as runsSubmit from '../workflow/transactions/runs-submit.js'
import { type BulkServer, gatedStore, startBulkServer } from './testing/harness.js'
import * as bulkAction from './transactions/bulk-action.js'
import * as bulkPaused from './transactions/bulk-paused.js'
import * as bulkSelect from './transactions/bulk-select.js'
import * as bulkUndo from './transactions/bulk-undo.js'

const ACTIONS = '/v2/workflows/bulkActions'
const RUNS = '/v2/workflows/runs'

interface SeenAction {
  readonly actionId: string
  readonly matched: number
  readonly outcomes: Readonly<Record<string, number>>
}

interface SeenRun {
  readonly workflowRunId: string
  readonly paused?: { readonly at: number }
  readonly because?: readonly { readonly kind: string; readonly text: string }[]
}

const ACCOUNT = 'acc_held'

/** A run that has not been delivered yet. */
async function startedRun(store: Store) {
  const at = 1_700_000_000_000
  const dueAt = at + 3_600_000
  const columns = {
    url: 'http://held.test/w',
    host: 'held.test',
    path: '/w',
    labels: '',
    flow_key: null,
    caller_ip: '',
  }
  const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
  const first = { kind: 'step' as const, messageId: newId('msg_', at), body: new Uint8Array(), dueAt, delivery }
  const run = { ...columns, run_id: 'wfr_held', contact: 'known' as const }
  const start = { kind: 'start' as const, run, first: { ...first, meta: JSON.stringify({ delivery }) } }
  await store.run(runsSubmit.submit, { accountId: ACCOUNT, submissions: [start], at })
  const page = { accountId: ACCOUNT, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 1 }
  const { runs } = await store.run(runsLogs.logPage, page)
  return { url: columns.url, seq: runs[0]?.seq ?? 0, dueAt, at }
}

describeOnSampledStore('pause of a workflow', (openStore) => {
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
  const urlOf = (name: string) => `${sink.url}/${name}`
  const ask = async <Body>(method: string, path: string, body?: unknown, status = 200): Promise<Body> => {
    const answer = await server.ask(method, path, body)
    expect(answer).toMatchObject({ status })
    return answer.body as Body
  }
  const change = async (what: 'pause' | 'resume', name: string, more: object = {}) => {
    const body = { workflowUrl: urlOf(name), ...more }
    const { actionId, ...answer } = await ask<SeenAction>('POST', `/v2/workflows/${what}`, body, 202)
    const end = async () => {
      const action = await ask<SeenAction & { state: string }>('GET', `${ACTIONS}/${actionId}`)
      return action.state === 'finished' && action
    }
    const { outcomes } = await waitFor(end, { what: 'the action to finish' })
    return { ...answer, outcomes }
  }
  const trigger = async (count: number, name: string, delay = '0s'): Promise<string[]> => {
    const items = Array.from({ length: count }, () => ({
      destination: urlOf(name),
      headers: { 'Upstash-Delay': delay },
    }))
    const runs = await ask<{ workflowRunId: string }[]>('POST', '/v2/batch/trigger', items, 201)
    return runs.map(({ workflowRunId }) => workflowRunId)
  }
  const runsOf = async (name: string): Promise<SeenRun[]> =>
    (await ask<{ runs: SeenRun[] }>('GET', `/v2/workflows/logs?workflowUrl=${urlOf(name)}&count=100`)).runs
  const seen = (name: string) => sink.received.filter(({ target }) => target === `/${name}`)
  const paused = async (): Promise<string[]> => {
    const { workflows } = await ask<{ workflows: { workflowUrl: string }[] }>('GET', '/v2/workflows/paused')
    return workflows.map(({ workflowUrl }) => workflowUrl)
  }

  const isIdle = async (): Promise<boolean> => {
    const { bulkActions } = await ask<{ bulkActions: { state: string }[] }>('GET', ACTIONS)
    return bulkActions.every(({ state }) => state === 'finished')
  }

  it('holds the active runs and the runs that start later, until it is resumed', async () => {
    await trigger(3, 'order', '1h')
    const first = await change('pause', 'order', { reason: 'maintenance' })
    expect(first).toMatchObject({
      matched: 3,
      outcomes: { paused: 3 },
      paused: { reason: 'maintenance', clock: 'keep' },
    })
    const [alone = ''] = await trigger(1, 'order')
    await trigger(2, 'order')
    // A run of another workflow is delivered meanwhile.
    await trigger(1, 'orders')
    await waitFor(() => seen('orders').length > 0, { what: 'the other workflow' })
    expect(seen('order')).toEqual([])
    const held = await runsOf('order')
    expect(held).toHaveLength(6)
    for (const { because } of held) expect(because?.[0]).toMatchObject({ kind: 'paused', ofWorkflow: true })
    expect(held[0]?.because?.[0]?.text).toContain('its workflow was paused by test@example.com')
    expect(await paused()).toEqual([urlOf('order')])
    // One run can be resumed alone; a repeated pause holds it again, and keeps the time and the reason of the first pause.
    await ask('POST', `${RUNS}/${alone}/resume`)
    const again = await change('pause', 'order', { reason: 'another', clock: 'hold' })
    expect(again).toMatchObject({ paused: { reason: 'maintenance', clock: 'keep' } })
    const end = await change('resume', 'order')
    expect(end.matched).toBeGreaterThanOrEqual(5)
    expect(await paused()).toEqual([])
    const delivered = () => new Set(seen('order').map(({ headers }) => headers['upstash-workflow-runid'])).size
    await waitFor(() => delivered() === 3, { what: 'the deliveries' })
    expect(await change('resume', 'order')).not.toHaveProperty('pausedAt')
  })

  it('holds runs that are restarted or brought back, and does not resume runs that were paused alone', async () => {
    const [one = '', two = '', gone = ''] = await trigger(3, 'again', '1h')
    await ask('POST', `${RUNS}/${one}/pause`)
    await ask('DELETE', `${RUNS}/${gone}`)
    expect(await change('pause', 'again')).toMatchObject({ matched: 1, outcomes: { paused: 1 } })
    await ask('POST', `${RUNS}/${gone}/undo`, { clock: 'now' })
    const restarted = await ask<SeenRun>('POST', `${RUNS}/${two}/restart`, { fromStep: 1 })
    const held = await runsOf('again')
    expect(held.map((run) => run.paused !== undefined)).toEqual([true, true, true, true])
    expect(await change('resume', 'again')).toMatchObject({ matched: 3, outcomes: { unpaused: 3 } })
    const state = new Map((await runsOf('again')).map((run) => [run.workflowRunId, run.paused !== undefined]))
    expect(state.get(one)).toBe(true)
    expect([two, gone].map((id) => state.get(id))).toEqual([false, false])
    const delivered = () => new Set(seen('again').map(({ headers }) => headers['upstash-workflow-runid']))
    await waitFor(() => delivered().size === 2, { what: 'the deliveries' })
    expect(delivered()).toEqual(new Set([gone, restarted.workflowRunId]))
  })

  it('does not hold a run that was cancelled during the pause and is brought back after the resume', async () => {
    const [alone = ''] = await trigger(1, 'back', '1h')
    await ask('POST', `${RUNS}/${alone}/pause`)
    await change('pause', 'back')
    const [held = ''] = await trigger(1, 'back')
    for (const id of [alone, held]) await ask('DELETE', `${RUNS}/${id}`)
    await change('resume', 'back')
    for (const id of [alone, held]) await ask('POST', `${RUNS}/${id}/undo`)
    const state = new Map((await runsOf('back')).map((run) => [run.workflowRunId, run.paused !== undefined]))
    expect([alone, held].map((id) => state.get(id))).toEqual([true, false])
    await waitFor(() => seen('back').length > 0, { what: 'the delivery' })
    // The failure function of the run is called at the same address, so only the run id counts.
    expect(new Set(seen('back').map(({ headers }) => headers['upstash-workflow-runid']))).toEqual(new Set([held]))
  })

  it('holds the clock of a run from the time when it is brought back, not from the pause of its workflow', async () => {
    const { url, seq, dueAt, at } = await startedRun(store)
    await store.run(runsCancel.cancelRuns, { seqs: [seq], at: at + 10 })
    const [items] = bulkSelect.packChunks([seq], 1)
    const who = { actor: 'a', source: 'QUEUE_TOKEN', ip: '::1' }
    const more = {
      selector: '{}',
      reason: null,
      ratePerSecond: null,
      settings: null,
      fence: null,
      absent: [],
      chunks: items ? [items] : [],
      at: at + 1_000,
    }
    const kind = 'undoCancelRuns' as const
    const action = await store.run(bulkAction.createAction, {
      ...who,
      ...more,
      kind,
      accountId: ACCOUNT,
      actionId: newId('bulk_', at),
    })
    const workflow = { url, at: at + 500, pause: { by: 'a', clock: 'hold' as const, ofWorkflow: true as const } }
    const batch = { actionSeq: action.seq, chunk: 0, from: 0, to: 1, at: at + 1_000 }
    await store.run(bulkUndo.undoRunsBatch, { ...batch, clock: 'hold', paused: [workflow] })
    const audit = {
      log_id: newId('log_', at),
      account_id: ACCOUNT,
      ...who,
      action: 'r',
      entity: 'e',
      details: '{}',
      at,
    }
    const resumed = await store.run(runsPause.resumeRun, {
      accountId: ACCOUNT,
      runId: 'wfr_held',
      audit,
      at: at + 3_000,
    })
    // Cancelled for 990 ms, and then paused for 2,000 ms.
    expect(resumed).toMatchObject({ kind: 'resumed', offers: [{ next_at: dueAt + 2_990 }] })
  })

  it('includes runs that are triggered at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const triggers = Array.from({ length: 8 }, () => trigger(1, 'race', '1h'))
      await change('pause', 'race')
      await Promise.all(triggers)
      const held = await runsOf('race')
      expect(held.filter((run) => run.paused === undefined)).toEqual([])
      const more = trigger(1, 'race', '1h')
      await change('resume', 'race')
      await more
      expect((await runsOf('race')).filter((run) => run.paused !== undefined)).toEqual([])
    }
  })

  it('keeps holding the runs that a resume has not reached yet when the workflow is paused again', async () => {
    await trigger(3, 'twice', '1h')
    await change('pause', 'twice')
    await server.stop()
    let goOn: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (goOn = resolve))
    server = await startBulkServer(gatedStore(store, (name) => (name === 'bulk.unpauseRunsBatch' ? gate : undefined)))
    await ask('POST', '/v2/workflows/resume', { workflowUrl: urlOf('twice') }, 202)
    const again = change('pause', 'twice')
    await waitFor(async () => (await paused()).includes(urlOf('twice')), { what: 'the second pause' })
    goOn()
    await again
    const states = async () => (await runsOf('twice')).map((run) => run.paused !== undefined)
    await waitFor(isIdle, { what: 'the end of the resume' })
    expect(await states()).toEqual([true, true, true])
    expect(await change('resume', 'twice')).toMatchObject({ matched: 3, outcomes: { unpaused: 3 } })
    expect(await states()).toEqual([false, false, false])
  })

  it('survives a restart of the server', async () => {
    await change('pause', 'kept')
    await server.stop()
    server = await startBulkServer(store)
    const [runId] = await trigger(1, 'kept')
    expect(await runsOf('kept')).toMatchObject([{ workflowRunId: runId, paused: { clock: 'keep' } }])
    await change('resume', 'kept')
    await waitFor(() => seen('kept').length > 0, { what: 'the delivery' })
  })

  it('refuses texts that are not URLs, and URLs that are too long', async () => {
    await ask('POST', '/v2/workflows/pause', { workflowUrl: 'order' }, 400)
    await ask('POST', '/v2/workflows/pause', { workflowUrl: `https://a.test/${'a'.repeat(3_000)}` }, 400)
    const wide = Array.from({ length: 1_000 }, (_, index) => String.fromCodePoint(0x4e00 + index)).join('')
    await ask('POST', '/v2/workflows/pause', { workflowUrl: `https://a.test/${wide}` }, 400)
    await ask('POST', '/v2/workflows/pause', {}, 400)
    await ask('POST', '/v2/workflows/resume', { workflowUrl: urlOf('x'), clock: 'hold' }, 400)
  })
})

describeOnStore('postgres', 'pause of a workflow', (openStore, on) => {
  it('is stored although another pause came first and ended before this one could read it', async () => {
    const place = await on.newPlace()
    const store = await openStore(place)
    // The first insert finds a row that is gone at the next statement.
    await raw(place).execute(`
      CREATE SEQUENCE inserts;
      CREATE FUNCTION lose_first() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF nextval('inserts') = 1 THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER lose_first BEFORE INSERT ON paused_workflows FOR EACH ROW EXECUTE FUNCTION lose_first()`)
    const row = { account_id: ACCOUNT, url: 'http://held.test/w', paused_at: 1, pause: '{}' }
    const who = { actor: 'a', source: 'QUEUE_TOKEN', ip: '::1' }
    const audit = {
      log_id: newId('log_', 1),
      account_id: ACCOUNT,
      ...who,
      action: 'p',
      entity: 'e',
      details: '{}',
      at: 1,
    }
    expect(await store.run(bulkPaused.pause, { row, most: 1, audit })).toEqual(row)
    expect(await store.run(bulkPaused.paused, { accountId: ACCOUNT })).toEqual([row])
  })
})
