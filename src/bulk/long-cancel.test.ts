import { beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import type { Store } from '../store/index.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { type BulkUnderTest, startBulk } from './testing/harness.js'
import { finishRun, startRuns, statesOf } from './testing/runs.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'
/** With these ids, a request has several pages of ids. */
const UNKNOWN = Array.from({ length: 9_000 }, (_, index) => `wfr_unknown${String(index).padStart(12, '0')}`)

let accounts = 0
const newAccount = () => `long-${++accounts}`

/** The known ids at both ends and in the middle of very many unknown ones. */
const spread = (ids: readonly string[]): string[] => [
  ...ids.toReversed(),
  ...UNKNOWN.slice(0, 4_000),
  ...ids,
  ...UNKNOWN.slice(2_000),
  ...ids,
]

describeOnEveryStore('a bulk cancel by very many ids', (openStore) => {
  let store: Store
  let service: BulkUnderTest
  beforeAll(async () => {
    store = await openStore()
    service = await startBulk(store)
  })

  it('gives every run one outcome, however often its id is given', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 6)
    await startRuns(store, account, 2)
    await finishRun(store, account, ids[0] ?? '')
    await service.cancel(account, { workflowRunIds: [ids[1]] })
    const workflowRunIds = spread(ids)
    const answer = await service.cancel(account, { workflowRunIds, report: true })
    const outcomes = { cancelled: 4, alreadyFinished: 2, notFound: UNKNOWN.length, failed: 0 }
    expect(answer).toMatchObject({ cancelled: 4, failed: 1, outcomes })
    expect(await statesOf(store, account, ids)).toEqual(['RUN_SUCCESS', ...Array(5).fill('RUN_CANCELED')])
    const { body } = await service.ask(account, 'GET', `/v2/workflows/bulkActions/${answer.actionId}`)
    const shown = { workflowRunIds: workflowRunIds.slice(0, 100), workflowRunIdsTotal: workflowRunIds.length }
    expect(body).toMatchObject({ matched: ids.length + UNKNOWN.length, selector: shown })
  })

  it('respects count, oldest first, and dryRun', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 5)
    const workflowRunIds = spread(ids)
    const look = await service.cancel(account, { workflowRunIds, dryRun: true })
    expect(look).toEqual({ cancelled: 0, matched: 5, sample: ids })
    expect(await service.cancel(account, { workflowRunIds, count: 2 })).toEqual({ cancelled: 2 })
    const left = Array(3).fill('RUN_STARTED')
    expect(await statesOf(store, account, ids)).toEqual(['RUN_CANCELED', 'RUN_CANCELED', ...left])
  })

  it('can be started by the operation for any kind', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 3)
    const workflowRunIds = spread(ids)
    const start = (request: object) => service.ask(account, 'POST', ACTIONS, { kind: 'cancelRuns', ...request })
    const look = await start({ selector: { workflowRunIds }, dryRun: true })
    expect(look).toMatchObject({ status: 200, body: { matched: 3, sample: ids } })
    const misplaced = await start({ selector: { workflowRunIds, dryRun: true } })
    expect(misplaced).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('`dryRun` is not a filter') },
    })
    const unknown = await start({ selector: { workflowRunIds }, resaon: 'a' })
    expect(unknown).toMatchObject({ status: 400, body: { error: expect.stringContaining('resaon') } })
    expect(await statesOf(store, account, ids)).toEqual(Array(3).fill('RUN_STARTED'))
    const { status, body } = await start({ selector: { workflowRunIds }, reason: 'no longer needed' })
    expect(status).toBe(202)
    const ended = await waitFor(
      async () => {
        const shown = await service.ask(account, 'GET', `${ACTIONS}/${Object(body).actionId}`)
        return Object(shown.body).state === 'finished' && shown.body
      },
      { what: 'the action to end' },
    )
    const outcomes = { cancelled: 3, alreadyFinished: 0, notFound: UNKNOWN.length, failed: 0 }
    expect(ended).toMatchObject({ reason: 'no longer needed', outcomes })
    expect(await statesOf(store, account, ids)).toEqual(Array(3).fill('RUN_CANCELED'))
  })

  it.each([
    ['an empty string', { workflowRunIds: [...UNKNOWN, ''] }, '', '`workflowRunIds[9000]` is an empty string'],
    ['a number', { workflowRunIds: [...UNKNOWN, 7] }, '', '`workflowRunIds[9000]` must be a string'],
    ['more ids than fit into one request', { workflowRunIds: Array(100_001).fill('wfr_1') }, '', 'at most 100000'],
    ['an unknown field', { workflowRunIds: UNKNOWN, lable: 'a' }, '', 'lable'],
    ['other ids in the query', { workflowRunIds: UNKNOWN }, '?workflowRunIds=wfr_1', 'with different values'],
  ])('is refused for %s, and nothing is cancelled', async (_, request, query, problem) => {
    const account = newAccount()
    const [id = ''] = await startRuns(store, account, 1)
    const body = { ...request, workflowRunIds: [id, ...request.workflowRunIds.slice(1)] }
    const answer = await service.ask(account, 'DELETE', RUNS + query, body)
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining(problem) } })
    expect(await statesOf(store, account, [id])).toEqual(['RUN_STARTED'])
  })

  it('reports JSON that is truncated after the list', async () => {
    const text = JSON.stringify({ workflowRunIds: UNKNOWN }).slice(0, -1)
    expect(await service.ask(newAccount(), 'DELETE', RUNS, text)).toMatchObject({ status: 400 })
  })
})
