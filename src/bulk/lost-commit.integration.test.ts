import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { type CuttableProxy, cuttableProxy } from '../store/testing/cuttable-proxy.js'
import { describeOnStore } from '../store/testing/index.js'
import { type BulkServer, startBulkServer } from './testing/harness.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'

interface Action {
  readonly state: string
  readonly matched: number
  readonly outcomes: { readonly cancelled: number }
}

describeOnStore('postgres', 'bulk actions and runs after a lost commit', (openStore, on) => {
  let proxy: CuttableProxy
  let server: BulkServer
  beforeAll(async () => {
    const place = await on.newPlace()
    const url = new URL(place.location)
    proxy = await cuttableProxy(Number(url.port))
    url.port = String(proxy.port)
    server = await startBulkServer(await openStore({ ...place, location: url.href }))
  })
  afterAll(async () => {
    await server.stop()
    await proxy.close()
  })

  const trigger = async (label: string): Promise<string> => {
    const headers = { 'upstash-label': label, 'upstash-delay': '30s' }
    const { body } = await server.ask('POST', '/v2/trigger/http://127.0.0.1:9/x', {}, headers)
    return (body as { workflowRunId: string }).workflowRunId
  }
  const newest = async (): Promise<Action | undefined> =>
    ((await server.ask('GET', ACTIONS)).body as { bulkActions: Action[] }).bulkActions[0]
  const finished = () =>
    waitFor(
      async () => {
        const action = await newest()
        return action?.state === 'finished' && action
      },
      { what: 'the action to be finished' },
    )
  const nothingHeld = () =>
    waitFor(() => server.queue.load.held === 0, { what: 'the messages of the runs to be dropped' })

  it('finishes an action whose creation was never confirmed', async () => {
    for (let run = 0; run < 3; run++) await trigger('created')
    const lost = proxy.loseNextCommit()
    expect((await server.ask('DELETE', RUNS, { label: 'created' })).status).toBe(503)
    await lost
    expect(await finished()).toMatchObject({ matched: 3, outcomes: { cancelled: 3 } })
    await nothingHeld()
  })

  it('drops the messages of runs whose cancel ended the action', async () => {
    for (let run = 0; run < 3; run++) await trigger('ended')
    let commits = 0
    // The first commit stores the action, the second decides its only batch.
    proxy.loseCommits(() => ++commits === 2)
    expect((await server.ask('DELETE', RUNS, { label: 'ended' })).status).toBe(503)
    expect(await finished()).toMatchObject({ matched: 3, outcomes: { cancelled: 3 } })
    await nothingHeld()
  })

  it('drops the messages of a single run, and confirms the repeated cancel', async () => {
    const runId = await trigger('single')
    const lost = proxy.loseNextCommit()
    expect((await server.ask('DELETE', `${RUNS}/${runId}?cancel=true`)).status).toBe(503)
    await lost
    expect(await server.ask('DELETE', `${RUNS}/${runId}?cancel=true`)).toMatchObject({ status: 200 })
    expect(server.queue.load.held).toBe(0)
  })

  it('lifts a fence whose end was never confirmed', async () => {
    for (let run = 0; run < 3; run++) await trigger('fenced')
    const cancel = { label: 'fenced', ratePerSecond: 1, fenceUntil: Date.now() + 3_600_000, async: true }
    const { body } = await server.ask('DELETE', RUNS, cancel)
    const action = `${ACTIONS}/${(body as { actionId: string }).actionId}`
    const isFenced = async () => (await trigger('fenced')) === undefined
    expect(await isFenced()).toBe(true)
    // So that the next commit is that of the abort.
    expect(await server.ask('POST', `${action}/pause`)).toMatchObject({ status: 200 })
    const lost = proxy.loseNextCommit()
    expect((await server.ask('POST', `${action}/abort`)).status).toBe(503)
    await lost
    expect(await server.ask('GET', action)).toMatchObject({ body: { state: 'aborted' } })
    await waitFor(async () => !(await isFenced()), { what: 'the end of the fence' })
  })
})
