import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { type Sink, startSink } from '../queue/testing/sink.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { type BulkServer, startBulkServer } from './testing/harness.js'

const ACTIONS = '/v2/workflows/bulkActions'

interface SeenAction {
  readonly actionId: string
  readonly matched: number
  readonly outcomes: Readonly<Record<string, number>>
}

interface SeenRun {
  readonly workflowRunId: string
  readonly because?: readonly { readonly kind: string }[]
}

describeOnSampledStore('pause of many runs', (openStore) => {
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
  const act = async (kind: string, selector: object, more: object = {}): Promise<SeenAction> => {
    const { actionId } = await bodyOf<SeenAction>('POST', ACTIONS, { kind, selector, ...more })
    const read = async () => {
      const action = await bodyOf<SeenAction & { state: string }>('GET', `${ACTIONS}/${actionId}`)
      return action.state === 'finished' && action
    }
    return waitFor(read, { what: 'the action to finish' })
  }
  const trigger = async (count: number, label: string, delay: string): Promise<string[]> => {
    const headers = { 'Upstash-Label': label, 'Upstash-Delay': delay }
    const items = Array.from({ length: count }, () => ({ destination: `${sink.url}/${label}`, headers }))
    return (await bodyOf<SeenRun[]>('POST', '/v2/batch/trigger', items)).map(({ workflowRunId }) => workflowRunId)
  }
  const runsOf = async (label: string): Promise<SeenRun[]> =>
    (await bodyOf<{ runs: SeenRun[] }>('GET', `/v2/workflows/logs?label=${label}&count=100`)).runs
  const seen = (label: string) => sink.received.filter(({ target }) => target === `/${label}`)

  it('holds due deliveries, says so for each run, and sends them after the resume', async () => {
    const ids = await trigger(40, 'many', '2s')
    const look = await server.ask('POST', ACTIONS, { kind: 'pauseRuns', selector: { label: 'many' }, dryRun: true })
    expect(look).toMatchObject({ status: 200, body: { matched: 40 } })
    const url = { workflowUrl: `${sink.url}/many`, workflowUrlExactMatch: true }
    const paused = await act('pauseRuns', url, { reason: 'maintenance', pauseClock: 'keep' })
    expect(paused).toMatchObject({ matched: 40, outcomes: { paused: 40, alreadyFinished: 0, failed: 0 } })
    // Others that are due at the same time are delivered.
    await trigger(1, 'other', '2s')
    await waitFor(() => seen('other').length > 0, { what: 'the other run' })
    expect(seen('many')).toEqual([])
    for (const run of await runsOf('many')) expect(run.because?.[0]).toMatchObject({ kind: 'paused' })

    const again = await act('pauseRuns', { workflowRunIds: [...ids.slice(0, 2), 'wfr_none'] })
    expect(again).toMatchObject({ matched: 3, outcomes: { paused: 0, alreadyFinished: 2, notFound: 1 } })
    const { outcomes } = await bodyOf<{ outcomes: object[] }>('GET', `${ACTIONS}/${again.actionId}/outcomes`)
    expect(outcomes[0]).toMatchObject({ outcome: 'alreadyFinished', error: 'The run is already paused.' })

    await trigger(3, 'many', '1h')
    const look2 = await server.ask('POST', ACTIONS, { kind: 'pauseRuns', selector: { label: 'many' }, dryRun: true })
    expect(look2).toMatchObject({ status: 200, body: { matched: 3 } })
    expect(await act('unpauseRuns', { label: 'many' })).toMatchObject({
      matched: 40,
      outcomes: { unpaused: 40 },
    })
    // Each run fails then, because its endpoint is no workflow, and its failure function is called.
    const delivered = () => new Set(seen('many').map(({ headers }) => headers['upstash-workflow-runid'])).size
    await waitFor(() => delivered() === 40, { what: 'the deliveries' })
  })

  it('holds the clocks of runs that were paused at different times', async () => {
    const [one = '', two = ''] = await trigger(2, 'clocks', '1h')
    await act('pauseRuns', { workflowRunIds: [one] }, { pauseClock: 'hold' })
    await act('pauseRuns', { workflowRunIds: [two] }, { pauseClock: 'keep' })
    expect(await act('unpauseRuns', { workflowRunIds: [one, two] })).toMatchObject({ outcomes: { unpaused: 2 } })
    for (const run of await runsOf('clocks')) expect(run.because?.[0]).not.toMatchObject({ kind: 'paused' })
  })

  it('refuses settings that belong to other kinds of actions', async () => {
    const start = (body: object) => server.ask('POST', ACTIONS, body)
    const until = Date.now() + 60_000
    for (const wrong of [
      { kind: 'pauseRuns', selector: {}, fenceUntil: until },
      { kind: 'unpauseRuns', selector: {}, pauseClock: 'hold' },
      { kind: 'cancelRuns', selector: {}, pauseClock: 'hold' },
      { kind: 'pauseRuns', selector: { dlqIds: ['x'] } },
      { kind: 'pauseRuns', selector: {}, pauseClock: 'later' },
    ]) {
      expect(await start(wrong)).toMatchObject({ status: 400 })
    }
  })
})
