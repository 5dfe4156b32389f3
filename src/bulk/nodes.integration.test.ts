import { afterEach, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { systemClock } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { LocalCluster, type LocalNode } from '../cluster/testing/local-cluster.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import { describeOnStore } from '../store/testing/index.js'
import type { Starting } from '../workflow/index.js'
import { type BulkUnderTest, startBulk } from './testing/harness.js'
import { countEnded, failMessages, failRuns, pendingMessages, startRuns, statesOf } from './testing/runs.js'
import { decidedItems } from './transactions/bulk-action.js'
import * as bulkRead from './transactions/bulk-read.js'

const ACTIONS = '/v2/workflows/bulkActions'
const RUNS = '/v2/workflows/runs'
const HOUR_MS = 3_600_000
const unavailable = () => new HomeportError('store_unavailable', {})

describeOnStore('postgres', 'bulk actions on two nodes', (openStore) => {
  let store: Store
  let cluster: LocalCluster
  let nodes: [LocalNode, LocalNode]
  let account = ''
  let accounts = 0
  /** Called before each operation of the first node. */
  let gate: (operation: string) => Promise<void> | void = () => undefined
  /** The first node waits for it after each batch. */
  let dropped: Promise<void> = Promise.resolve()
  /** Ends the halt of the first node. */
  let release: () => void = () => undefined
  let a: BulkUnderTest
  let b: BulkUnderTest

  beforeEach(async () => {
    store ??= await openStore()
    cluster = new LocalCluster()
    nodes = [cluster.add(), cluster.add()]
    account = `acc_${++accounts}`
    gate = () => undefined
    dropped = Promise.resolve()
    const held = { gate: (operation: string) => gate(operation), onDrop: () => dropped }
    a = await startBulk(store, systemClock, { cluster: nodes[0], ...held })
    b = await startBulk(store, systemClock, { cluster: nodes[1] })
  })
  afterEach(async () => {
    release()
    await Promise.all([a.stop(), b.stop()])
  })

  const row = async (actionId: string) => {
    const found = await store.run(bulkRead.action, { accountId: account, actionId })
    if (!found) throw new Error(`no action ${actionId}`)
    return found
  }
  const begin = async (at: BulkUnderTest, body: object = {}): Promise<string> => {
    const answer = await at.ask(account, 'POST', ACTIONS, { kind: 'cancelRuns', ...body })
    expect(answer).toMatchObject({ status: 202 })
    return (answer.body as { actionId: string }).actionId
  }
  /** The first node stops in the middle of an action. */
  const halt = (after: number, batch = 'bulk.cancelBatch') => {
    let batches = 0
    const halted = new Promise<void>((resolve) => (release = resolve))
    gate = (operation) => (operation === batch && ++batches > after ? halted : undefined)
    return () => batches > after
  }
  const finished = (actionId: string) =>
    waitFor(async () => (await row(actionId)).state === 'finished', { what: 'the end of the action' })

  it('continue an action whose node dies in the middle: counts are exact, each run is dropped', async () => {
    const ids = await startRuns(store, account, 4_000)
    halt(2)
    const actionId = await begin(a)
    await waitFor(async () => (await row(actionId)).succeeded > 0, { what: 'some batches' })
    expect((await row(actionId)).state).toBe('running')
    await cluster.declareDead(nodes[0], nodes[1])
    await waitFor(async () => (await row(actionId)).state === 'finished', { what: 'the end on the other node' })
    expect(await row(actionId)).toMatchObject({ matched: 4_000, succeeded: 4_000, owner: nodes[1].incarnation })
    expect(await countEnded(store, account, ids)).toBe(4_000)
    expect(new Set(b.dropped).size).toBe(4_000)
  })

  it('continue an undo whose node dies in the middle: each run is brought back once', async () => {
    const ids = await startRuns(store, account, 400)
    const cancelled = await begin(b)
    await finished(cancelled)
    halt(1, 'bulk.undoRunsBatch')
    const undo = await a.ask(account, 'POST', `${ACTIONS}/${cancelled}/undo`, { ratePerSecond: 400 })
    expect(undo).toMatchObject({ status: 202 })
    const { actionId } = undo.body as { actionId: string }
    await waitFor(async () => (await row(actionId)).succeeded > 0, { what: 'its first batch' })
    expect((await row(actionId)).succeeded).toBeLessThan(400)
    await cluster.declareDead(nodes[0], nodes[1])
    await finished(actionId)
    expect(await row(actionId)).toMatchObject({ matched: 400, succeeded: 400, owner: nodes[1].incarnation })
    expect(new Set(await statesOf(store, account, ids))).toEqual(new Set(['RUN_STARTED']))
    release()
  })

  it('continue an action that a dead node stored, although nobody was notified of it', async () => {
    const clock = new ManualClock(Date.now())
    await b.stop()
    b = await startBulk(store, clock, { cluster: nodes[1] })
    const ids = await startRuns(store, account, 50)
    await cluster.declareDead(nodes[0], nodes[1])
    halt(0)
    const actionId = await begin(a)
    expect(await row(actionId)).toMatchObject({ owner: nodes[0].incarnation, state: 'running' })
    clock.advance(10_000)
    await finished(actionId)
    expect(await row(actionId)).toMatchObject({ succeeded: 50, owner: nodes[1].incarnation })
    expect(await countEnded(store, account, ids)).toBe(50)
  })

  it('pause a workflow and resume it from any node: runs that start at another one are paused, too', async () => {
    const workflowUrl = 'https://x.test/work'
    await startRuns(store, account, 20)
    const paused = await a.ask(account, 'POST', '/v2/workflows/pause', { workflowUrl })
    expect(paused.status).toBeLessThan(300)
    await finished((paused.body as { actionId: string }).actionId)
    const c = await startBulk(store, systemClock, { cluster: cluster.add() })
    const pausedAt = (at: BulkUnderTest) =>
      at.bulk.gate.pass(account, [starting('wfr_new')], Date.now(), async (workflows) =>
        workflows.map(({ url }) => url),
      )
    for (const node of [a, b, c]) expect(await pausedAt(node)).toEqual([workflowUrl])
    const resumed = await b.ask(account, 'POST', '/v2/workflows/resume', { workflowUrl })
    const { actionId } = resumed.body as { actionId: string }
    await finished(actionId)
    expect((await row(actionId)).succeeded).toBe(20)
    for (const node of [a, b, c]) expect(await pausedAt(node)).toEqual([])
    await c.stop()
  })

  it('ignore decisions of a node that was declared dead', async () => {
    const ids = await startRuns(store, account, 500)
    const isHalted = halt(0)
    const actionId = await begin(a, { ratePerSecond: 100 })
    await waitFor(isHalted, { what: 'its first batch' })
    await cluster.declareDead(nodes[0], nodes[1])
    await waitFor(async () => (await row(actionId)).owner === nodes[1].incarnation, { what: 'the new owner' })
    release()
    await waitFor(async () => (await row(actionId)).succeeded >= 20, { what: 'progress' })
    await b.ask(account, 'POST', `${ACTIONS}/${actionId}/abort`)
    const { matched, succeeded, skipped } = await row(actionId)
    expect(succeeded + skipped).toBe(matched)
    expect(await countEnded(store, account, ids)).toBe(succeeded)
  })

  it('keep the drafts and actions of a node that lives when another one starts', async () => {
    await startRuns(store, account, 50)
    const actionId = await begin(a, { ratePerSecond: 1 })
    const c = await startBulk(store, systemClock, { cluster: cluster.add() })
    expect(await row(actionId)).toMatchObject({ owner: nodes[0].incarnation, state: 'running' })
    await c.stop()
    await b.ask(account, 'POST', `${ACTIONS}/${actionId}/abort`)
  })

  it('continue the actions in a copied store that belong to a node of another cluster with the same number', async () => {
    await startRuns(store, account, 50)
    const actionId = await begin(a, { ratePerSecond: 10 })
    await a.stop()
    expect(await row(actionId)).toMatchObject({ owner: nodes[0].incarnation, state: 'running' })
    a = await startBulk(store, systemClock, { cluster: nodes[0] })
    await finished(actionId)
    expect(await row(actionId)).toMatchObject({ succeeded: 50, owner: nodes[0].incarnation })
  })

  it('pause, resume and abort from any node', async () => {
    await startRuns(store, account, 400)
    const actionId = await begin(a, { ratePerSecond: 50 })
    await waitFor(async () => (await row(actionId)).succeeded > 0, { what: 'its first batch' })
    expect((await b.ask(account, 'POST', `${ACTIONS}/${actionId}/pause`)).status).toBe(200)
    const paused = await row(actionId)
    const resumed = await b.ask(account, 'POST', `${ACTIONS}/${actionId}/resume`)
    expect(resumed).toMatchObject({ status: 200, body: { state: 'running' } })
    await waitFor(async () => (await row(actionId)).succeeded > paused.succeeded, {
      what: 'progress on the other node',
    })
    expect(await a.ask(account, 'POST', `${ACTIONS}/${actionId}/abort`)).toMatchObject({ body: { state: 'aborted' } })
    const { matched, succeeded, skipped } = await row(actionId)
    expect(succeeded + skipped).toBe(matched)
  })

  it.each([0, 1])('answer an abort at node %i when every node has dropped what was cancelled', async (index) => {
    await startRuns(store, account, 400)
    dropped = new Promise((resolve) => (release = resolve))
    const actionId = await begin(a, { ratePerSecond: 50 })
    await waitFor(() => a.dropped.length > 0, { what: 'the first batch' })
    let status = 0
    const aborting = (index === 0 ? a : b).ask(account, 'POST', `${ACTIONS}/${actionId}/abort`)
    const answered = aborting.then((answer) => (status = answer.status))
    await waitFor(async () => (await row(actionId)).state === 'aborted', { what: 'the commit' })
    for (let each = 0; each < 10; each++) await b.ask(account, 'GET', `${ACTIONS}/${actionId}`)
    expect(status).toBe(0)
    release()
    expect(await answered).toBe(200)
  })

  it('continue an action whose resume was stored just before its node could not read the store', async () => {
    await startRuns(store, account, 2)
    const actionId = await begin(a, { ratePerSecond: 1 })
    expect(await a.ask(account, 'POST', `${ACTIONS}/${actionId}/pause`)).toMatchObject({ status: 200 })
    const failing = new Set(['bulk.action'])
    gate = (operation) => (failing.delete(operation) ? Promise.reject(unavailable()) : undefined)
    expect(await a.ask(account, 'POST', `${ACTIONS}/${actionId}/resume`)).toMatchObject({ status: 503 })
    await finished(actionId)
    expect(await row(actionId)).toMatchObject({ succeeded: 2, owner: nodes[0].incarnation })
  })

  const SHARED = 120
  it.each([
    ['cancelRuns', 'bulk.cancelBatch', startRuns],
    ['restartRuns', 'bulk.reviveRunsBatch', failRuns],
    ['retryDeadLetters', 'bulk.retryDeadLettersBatch', failMessages],
  ] as const)(
    'do each item once if two do the same (%s), and one of them dies in the middle',
    async (kind, name, make) => {
      await make(store, account, SHARED)
      let isShared = (): void => undefined
      const shared = new Promise<void>((resolve) => (isShared = resolve))
      const halted = new Promise<void>((resolve) => (release = resolve))
      let batches = 0
      gate = (operation) => (operation === name ? (batches++ === 0 ? shared : halted) : undefined)
      const actions = [await begin(a, { kind, ratePerSecond: 300 }), await begin(b, { kind, ratePerSecond: 100 })]
      const rows = () => Promise.all(actions.map(row))
      isShared()
      await waitFor(async () => (await rows()).every(({ succeeded }) => succeeded > 0), { what: 'batches of both' })
      // Not in a set.
      await make(store, account, 1)
      await cluster.declareDead(nodes[0], nodes[1])
      for (const actionId of actions) await finished(actionId)
      release()
      const ended = await rows()
      for (const action of ended) {
        expect(action).toMatchObject({ matched: SHARED, owner: nodes[1].incarnation })
        expect(decidedItems(action)).toBe(SHARED)
      }
      expect(ended.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(SHARED)
      const expected = { cancelRuns: 1, restartRuns: SHARED, retryDeadLetters: SHARED }
      expect(await pendingMessages(store, account)).toBe(expected[kind])
    },
  )

  it('stream the progress of an action from another node', async () => {
    await startRuns(store, account, 300)
    const actionId = await begin(a, { ratePerSecond: 300 })
    const headers = { authorization: `Bearer ${account}`, accept: 'text/event-stream' }
    const events = await (await fetch(`${b.url}${ACTIONS}/${actionId}`, { headers })).text()
    expect(events).toContain('event: progress')
    expect(events).toMatch(/event: end\nid: finished-300\n/)
  })

  const starting = (run_id: string): Starting => ({
    run_id,
    url: 'https://x.test/work',
    host: 'x.test',
    path: '/work',
    labels: '',
    flow_key: null,
    caller_ip: '',
  })
  const pass = (at: BulkUnderTest, runId: string, work: () => Promise<unknown> = async () => undefined) =>
    at.bulk.gate.pass(account, [starting(runId)], Date.now(), work)

  it('fence runs on all nodes, after triggers in flight on any of them', async () => {
    await startRuns(store, account, 1)
    let stored = (): void => undefined
    const trigger = pass(b, 'wfr_late', async () => {
      await new Promise<void>((resolve) => (stored = resolve))
      await startRuns(store, account, 1)
    })
    const fenceUntil = Date.now() + HOUR_MS
    const cancel = a.ask(account, 'DELETE', RUNS, { workflowUrl: 'https://x.test/', fenceUntil })
    await waitFor(
      () =>
        pass(b, 'wfr_new').then(
          () => false,
          () => true,
        ),
      { what: 'the fence on the other node' },
    )
    stored()
    await trigger
    expect(await cancel).toMatchObject({ status: 200, body: { cancelled: 2 } })
    const c = await startBulk(store, systemClock, { cluster: cluster.add() })
    for (const node of [a, b, c]) await expect(pass(node, 'wfr_new')).rejects.toMatchObject({ code: 'run_fenced' })
    const { bulkActions } = (await a.ask(account, 'GET', ACTIONS)).body as { bulkActions: { actionId: string }[] }
    const actionId = bulkActions[0]?.actionId ?? ''
    await b.ask(account, 'DELETE', `${ACTIONS}/${actionId}/fence`)
    for (const node of [a, b, c]) await pass(node, 'wfr_new')
    await c.stop()
  })
})
