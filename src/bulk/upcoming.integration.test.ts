import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { type BulkServer, startBulkServer } from './testing/harness.js'
import { startRuns } from './testing/runs.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'

interface SeenRun {
  readonly workflowState: string
  readonly because?: readonly { readonly kind: string; readonly text: string; readonly place?: number }[]
}

describeOnSampledStore('a run in the set of a pending bulk cancel', (openStore) => {
  let store: Store
  let server: BulkServer
  beforeAll(async () => {
    store = await openStore()
    server = await startBulkServer(store)
  })
  afterAll(() => server.stop())
  const find = async (runId: string) => {
    const { body } = await server.ask('GET', `/v2/workflows/logs?workflowRunId=${runId}`)
    return (body as { runs: SeenRun[] }).runs[0]
  }
  const becauseOf = async (runId = '') => (await find(runId))?.because ?? []
  const cancelsOf = async (runId = '') => (await becauseOf(runId)).filter(({ kind }) => kind === 'bulk-cancel')
  const start = async (selector: object) => {
    const { status, body } = await server.ask('DELETE', RUNS, { async: true, ...selector })
    expect(status).toBe(202)
    return (body as { actionId: string }).actionId
  }
  const act = async (actionId: string, how: string) =>
    (await server.ask('POST', `${ACTIONS}/${actionId}/${how}`)).body as {
      done: number
      matched: number
      pausedAt?: number
    }

  it('shows the cancel and its position until the action is finished or aborted', async () => {
    const ids = await startRuns(store, 'acc_test', 4_200, (index) => ({ labels: index % 2 ? '|odd|' : '|even|' }))
    const odd = ids.filter((_, index) => index % 2 === 1)
    const actionId = await start({ label: 'odd', ratePerSecond: 1, reason: 'wrong price' })
    const running = await waitFor(async () => (await cancelsOf(odd.at(-1)))[0], { what: 'the reason' })
    expect(running).toMatchObject({ actionId, paused: false, ratePerSecond: 1, reason: 'wrong price' })
    expect(running.text).toContain(`will be cancelled by the bulk action ${actionId} ("wrong price"), number `)
    expect(running.text).toContain('at most 1 per second')

    await waitFor(async () => (await find(odd[0] ?? ''))?.workflowState === 'RUN_CANCELED', { what: 'the first turn' })

    const { done, matched, pausedAt } = await act(actionId, 'pause')
    expect(matched).toBe(2_100)
    const [paused, ...others] = await becauseOf(odd.at(-1))
    expect(paused).toMatchObject({
      kind: 'bulk-cancel',
      actionId,
      paused: true,
      since: pausedAt,
      place: matched - done,
    })
    expect(paused?.text).toContain(`the action has been paused since ${new Date(pausedAt ?? 0).toISOString()}`)
    expect(others).toMatchObject([{ kind: 'delayed' }])
    expect(await cancelsOf(odd[2_000])).toMatchObject([{ place: 2_001 - done }])
    expect(await cancelsOf(odd[1_999])).toMatchObject([{ place: 2_000 - done }])
    expect(await cancelsOf(ids[0])).toEqual([])

    // Enough runs are before it that it is not reached during the test.
    const even = ids.slice(0, 100).filter((_, index) => index % 2 === 0)
    const named = await start({ workflowRunIds: [odd[50], ...even], ratePerSecond: 1 })
    const both = await waitFor(
      async () => {
        const found = await cancelsOf(odd[50])
        return found.length === 2 && found
      },
      { what: 'both reasons' },
    )
    expect(both).toMatchObject([{ actionId }, { actionId: named }])
    await act(named, 'abort')
    expect(await cancelsOf(odd[50])).toMatchObject([{ actionId }])
    await act(actionId, 'abort')
    expect(await becauseOf(odd[50])).toMatchObject([{ kind: 'delayed' }])
  })
})
