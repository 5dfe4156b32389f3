import { beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import * as accountsTransactions from '../accounts/transactions/accounts.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { type BulkUnderTest, startBulk } from './testing/harness.js'
import { finishRun, startRuns } from './testing/runs.js'

let accounts = 0
const newAccount = () => `actions-${++accounts}`
const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'

describeOnSampledStore('bulk actions', (openStore) => {
  let store: Store
  let service: BulkUnderTest
  beforeAll(async () => {
    store = await openStore()
    service = await startBulk(store)
  })
  const get = async (account: string, path: string) => {
    const answer = await service.ask(account, 'GET', path)
    expect(answer.status).toBe(200)
    return answer.body as Record<string, unknown> & { cursor?: string; outcomes: { outcome: string }[] }
  }
  const finished = (account: string, actionId: string) =>
    waitFor(
      async () => {
        const action = await get(account, `${ACTIONS}/${actionId}`)
        return action.state === 'finished' && action
      },
      { what: 'the action to finish' },
    )

  it('answers an async cancel at once and reports its progress until the end', async () => {
    const account = newAccount()
    await startRuns(store, account, 2_500, { labels: '|a|' })
    const before = Date.now()
    const answer = await service.ask(account, 'DELETE', RUNS, { async: true, label: 'a' })
    expect(answer).toEqual({ status: 202, body: { actionId: expect.stringMatching(/^bulk_/), matched: 2_500 } })
    const { actionId } = answer.body as { actionId: string }
    const action = await finished(account, actionId)
    expect(action).toEqual({
      actionId,
      kind: 'cancelRuns',
      state: 'finished',
      selector: { label: ['a'] },
      createdBy: `${account}@example.test`,
      matched: 2_500,
      done: 2_500,
      cancelled: 2_500,
      failed: 0,
      outcomes: { cancelled: 2_500, alreadyFinished: 0, notFound: 0, failed: 0 },
      createdAt: expect.any(Number),
      finishedAt: expect.any(Number),
      undo: `${ACTIONS}/${actionId}/undo`,
    })
    expect(action.createdAt).toBeGreaterThanOrEqual(before)
  })

  it('finishes an async action without items at once', async () => {
    const account = newAccount()
    const answer = await service.ask(account, 'DELETE', `${RUNS}?async=true`)
    expect(answer).toMatchObject({ status: 202, body: { matched: 0 } })
    const { actionId } = answer.body as { actionId: string }
    expect(await get(account, `${ACTIONS}/${actionId}`)).toMatchObject({ state: 'finished', matched: 0, done: 0 })
  })

  it('lists every outcome once, page by page, unknown ids last', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 30)
    await finishRun(store, account, ids[7] ?? '')
    const selector = { workflowRunIds: [...ids, 'unknown-1', 'unknown-2'], report: true }
    const { actionId } = await service.cancel(account, selector)
    const all: unknown[] = []
    let cursor: string | undefined
    do {
      const page = await get(account, `${ACTIONS}/${actionId}/outcomes?count=7${cursor ? `&cursor=${cursor}` : ''}`)
      expect(page.outcomes.length).toBeLessThanOrEqual(7)
      all.push(...page.outcomes)
      cursor = page.cursor
    } while (cursor !== undefined)
    const ended = 'The run has already ended (RUN_SUCCESS) and cannot be cancelled.'
    expect(all).toEqual([
      ...ids.map((workflowRunId, index) =>
        index === 7
          ? { workflowRunId, outcome: 'alreadyFinished', error: ended }
          : { workflowRunId, outcome: 'cancelled' },
      ),
      { workflowRunId: 'unknown-1', outcome: 'notFound', error: 'No run of this account has this id.' },
      { workflowRunId: 'unknown-2', outcome: 'notFound', error: 'No run of this account has this id.' },
    ])
  })

  it('filters outcomes across chunks', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 2_300)
    await finishRun(store, account, ids[3] ?? '')
    await finishRun(store, account, ids[2_200] ?? '')
    await service.cancel(account, { workflowRunIds: [ids[1_100]] })
    const { actionId } = await service.cancel(account, { workflowRunIds: ids, report: true })
    const page = await get(
      account,
      `${ACTIONS}/${actionId}/outcomes?outcome=alreadyFinished&outcome=notFound&count=1000`,
    )
    expect(page.cursor).toBeUndefined()
    expect(page.outcomes).toMatchObject([
      { workflowRunId: ids[3] },
      { workflowRunId: ids[1_100], error: 'The run was already cancelled.' },
      { workflowRunId: ids[2_200] },
    ])
  })

  it('lists the actions of an account, newest first, page by page', async () => {
    const account = newAccount()
    const made: (string | undefined)[] = []
    for (let index = 0; index < 5; index++) made.push((await service.cancel(account, { report: true })).actionId)
    await service.cancel(`${account}-neighbour`, {})
    const first = await get(account, `${ACTIONS}?count=3`)
    const second = await get(account, `${ACTIONS}?count=3&cursor=${first.cursor}`)
    expect(second.cursor).toBeUndefined()
    const listed = [...(first.bulkActions as object[]), ...(second.bulkActions as object[])]
    expect(listed).toMatchObject([...made].reverse().map((actionId) => ({ actionId })))
  })

  it('shortens a long list of ids, and lists all of them as outcomes', async () => {
    const account = newAccount()
    const workflowRunIds = Array.from({ length: 3_000 }, (_, index) => `unknown-${index}`)
    const { actionId } = await service.cancel(account, { workflowRunIds, report: true })
    const action = await get(account, `${ACTIONS}/${actionId}`)
    expect(action.selector).toEqual({
      workflowRunIds: workflowRunIds.slice(0, 100),
      workflowRunIdsTotal: 3_000,
    })
    expect(action).toMatchObject({ matched: 3_000, outcomes: { notFound: 3_000 } })
  })

  it('hides actions from other accounts', async () => {
    const account = newAccount()
    const { actionId } = await service.cancel(account, { report: true })
    for (const path of [`${ACTIONS}/${actionId}`, `${ACTIONS}/${actionId}/outcomes`]) {
      expect(await service.ask(`${account}-neighbour`, 'GET', path)).toEqual({
        status: 404,
        body: { error: expect.stringContaining(`There is no bulk action ${actionId}`) },
      })
    }
  })

  it('lists actions by their state and kind', async () => {
    const account = newAccount()
    await service.cancel(account, {})
    await startRuns(store, account, 2)
    const going = await service.ask(account, 'DELETE', RUNS, { async: true, ratePerSecond: 1 })
    const { actionId } = going.body as { actionId: string }
    await service.ask(account, 'POST', `${ACTIONS}/${actionId}/pause`)
    const idsOf = async (query: string) => {
      const { body } = await service.ask(account, 'GET', `${ACTIONS}?${query}`)
      return (body as { bulkActions: { actionId: string }[] }).bulkActions.map((action) => action.actionId)
    }
    expect(await idsOf('state=paused')).toEqual([actionId])
    expect(await idsOf('state=paused&state=finished')).toHaveLength(2)
    expect(await idsOf('state=finished&count=1')).not.toContain(actionId)
    expect(await idsOf('kind=resumeRuns')).toEqual([])
    expect(await idsOf('kind=cancelRuns&state=paused')).toEqual([actionId])
  })

  it.each([
    `${ACTIONS}?state=lost`,
    `${ACTIONS}?kind=cancelEverything`,
    `${ACTIONS}?cursor=x`,
    `${ACTIONS}?cursor=1-2`,
    `${ACTIONS}?count=0`,
    `${ACTIONS}?count=1001`,
    `${ACTIONS}?limit=5`,
  ])('refuses %s', async (path) => {
    expect(await service.ask(newAccount(), 'GET', path)).toMatchObject({ status: 400 })
  })

  it.each(['cursor=5', 'cursor=a-b', 'outcome=lost', 'count=-1'])('refuses outcomes?%s', async (query) => {
    const account = newAccount()
    const { actionId } = await service.cancel(account, { report: true })
    expect(await service.ask(account, 'GET', `${ACTIONS}/${actionId}/outcomes?${query}`)).toMatchObject({ status: 400 })
  })

  it('writes one audit entry per action: actor, selector, counts', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 3)
    await finishRun(store, account, ids[2] ?? '')
    const { actionId } = await service.cancel(account, { workflowRunIds: ids, report: true })
    await service.cancel(account, { dryRun: true })
    await service.ask(account, 'DELETE', RUNS, { lable: 'a' })
    const entries = await store.run(accountsTransactions.auditLog, { accountId: account, limit: 10 })
    expect(entries).toHaveLength(1)
    expect(entries[0]).toMatchObject({
      actor: `${account}@example.test`,
      source: 'QUEUE_TOKEN',
      action: 'Cancel Workflow Runs',
      entity: actionId,
      ip: '127.0.0.1',
    })
    expect(JSON.parse(entries[0]?.details ?? '')).toEqual({
      selector: { workflowRunIds: ids },
      matched: 3,
      cancelled: 2,
      failed: 1,
    })
  })
})
