import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { newId } from '../base/index.js'
import * as messages from '../queue/transactions/messages.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import * as runsRead from '../workflow/transactions/runs-read.js'
import { startBulk } from './testing/harness.js'
import { finishRun, startRuns, statesOf } from './testing/runs.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'

describeOnSampledStore('undo of a cancel of runs that invoke each other', (openStore) => {
  const family = async (store: Store, account: string, { between = 0 } = {}) => {
    const [parentId = ''] = await startRuns(store, account, 1)
    if (between > 0) await startRuns(store, account, between)
    const messageId = newId('msg_', Date.now())
    const step = { stepId: 1, stepName: 'invoke', stepType: 'Invoke', concurrent: 1 }
    const parent = { messageId, runId: parentId, url: 'https://x.test/work', createdAt: 1, step }
    const [childId = ''] = await startRuns(store, account, 1, { parent })
    const answers = async () => {
      const run = await store.run(runsRead.find, { accountId: account, runId: parentId })
      const read = { seq: run?.seq ?? 0, messageId, most: 1_000_000 }
      return (await store.run(runsRead.delivery, read)) === undefined ? 0 : 1
    }
    return { parentId, childId, answers }
  }
  const pendingOf = async (store: Store) => {
    const everything = { after: { nextAt: 0, seq: 0 }, until: Number.MAX_SAFE_INTEGER, limit: 1_000, largestBody: 0 }
    return store.run(messages.pending, everything)
  }

  it('reports the end of a run whose parent was cancelled meanwhile', async () => {
    const store = await openStore()
    const bulk = await startBulk(store)
    const { parentId, childId, answers } = await family(store, 'one')
    await bulk.cancel('one', { workflowRunIds: [parentId] })
    await finishRun(store, 'one', childId)
    expect(await answers()).toBe(0)
    expect(await bulk.ask('one', 'POST', `${RUNS}/${parentId}/undo`)).toMatchObject({ status: 200 })
    expect(await answers()).toBe(1)
  })

  it('reports a run that stays cancelled when only the run that invoked it is brought back', async () => {
    const store = await openStore()
    const bulk = await startBulk(store)
    const { parentId, childId, answers } = await family(store, 'alone')
    await bulk.cancel('alone', { workflowRunIds: [parentId, childId] })
    expect(await answers()).toBe(0)
    expect(await bulk.ask('alone', 'POST', `${RUNS}/${parentId}/undo`)).toMatchObject({ status: 200 })
    expect(await answers()).toBe(1)
  })

  it('reports a run that stays cancelled because a fence blocks it when both are brought back', async () => {
    const store = await openStore()
    const bulk = await startBulk(store)
    const { parentId, childId, answers } = await family(store, 'fenced')
    const { actionId } = await bulk.cancel('fenced', { workflowRunIds: [parentId, childId], report: true })
    await bulk.cancel('fenced', { workflowRunIds: [childId], fenceUntil: Date.now() + 3_600_000 })
    expect(await bulk.ask('fenced', 'POST', `${ACTIONS}/${actionId}/undo`)).toMatchObject({ status: 202 })
    await waitFor(async () => (await answers()) === 1, { what: 'the report' })
    expect(await statesOf(store, 'fenced', [parentId, childId])).toEqual(['RUN_STARTED', 'RUN_CANCELED'])
  })

  it('reports a run that stays cancelled when the undo of both is aborted', async () => {
    const store = await openStore()
    const bulk = await startBulk(store)
    const { parentId, childId, answers } = await family(store, 'aborted', { between: 30 })
    const { actionId } = await bulk.cancel('aborted', { report: true })
    const { body } = await bulk.ask('aborted', 'POST', `${ACTIONS}/${actionId}/undo`, { ratePerSecond: 1 })
    const isBack = async () => (await statesOf(store, 'aborted', [parentId]))[0] === 'RUN_STARTED'
    await waitFor(isBack, { what: 'the parent to be back' })
    expect(await answers()).toBe(0)
    const undo = `${ACTIONS}/${(body as { actionId: string }).actionId}`
    expect(await bulk.ask('aborted', 'POST', `${undo}/abort`)).toMatchObject({ status: 200 })
    expect(await statesOf(store, 'aborted', [childId])).toEqual(['RUN_CANCELED'])
    expect(await answers()).toBe(1)
  })

  it('does not notify a parent twice', async () => {
    const store = await openStore()
    const bulk = await startBulk(store)
    const { childId, answers } = await family(store, 'two')
    await bulk.cancel('two', { workflowRunIds: [childId] })
    expect(await answers()).toBe(1)
    await bulk.ask('two', 'POST', `${RUNS}/${childId}/undo`)
    const before = (await pendingOf(store)).length
    await finishRun(store, 'two', childId)
    expect(await pendingOf(store)).toHaveLength(before)
  })

  it('holds the clocks of runs if asked', async () => {
    const store = await openStore()
    const bulk = await startBulk(store)
    const at = Date.now() - 10_000
    const [runId] = await startRuns(store, 'held', 1, { dueAt: at + 3_600_000 })
    const [before] = await pendingOf(store)
    await bulk.cancel('held')
    await bulk.ask('held', 'POST', `${RUNS}/${runId}/undo`, { clock: 'hold' })
    const [after] = await pendingOf(store)
    expect(after?.message_id).toBe(before?.message_id)
    expect(after?.next_at).toBeGreaterThanOrEqual(before?.next_at ?? 0)
    expect(after).toMatchObject({ url: before?.url, config: before?.config, headers: before?.headers })
  })

  it('continues after a restart, and brings each run back once', async () => {
    const store = await openStore()
    const first = await startBulk(store)
    const ids = await startRuns(store, 'many', 40)
    const { actionId = '' } = await first.cancel('many', { report: true })
    const started = await first.ask('many', 'POST', `${ACTIONS}/${actionId}/undo`, { ratePerSecond: 10 })
    const undo = `${ACTIONS}/${(started.body as { actionId: string }).actionId}`
    await first.stop()
    const second = await startBulk(store)
    await second.ask('many', 'PATCH', undo, { ratePerSecond: null })
    const ended = await waitFor(
      async () => {
        const { body } = await second.ask('many', 'GET', undo)
        return (body as { state: string }).state === 'finished' && body
      },
      { what: 'the undo to finish' },
    )
    expect(ended).toMatchObject({ matched: 40, outcomes: { undone: 40, alreadyFinished: 0, failed: 0 } })
    expect(new Set(await statesOf(store, 'many', ids))).toEqual(new Set(['RUN_STARTED']))
    expect(await pendingOf(store)).toHaveLength(40)
    expect(await second.cancel('many')).toMatchObject({ cancelled: 40 })
  })
})
