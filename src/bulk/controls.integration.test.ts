import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import * as accounts from '../accounts/transactions/accounts.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore, describeOnStore } from '../store/testing/index.js'
import { wrappedStore } from '../store/testing/wrapped-store.js'
import { type BulkUnderTest, gatedStore, startBulk } from './testing/harness.js'
import { countEnded, startRuns } from './testing/runs.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'

interface SeenAction {
  readonly actionId: string
  readonly state: string
  readonly matched: number
  readonly done: number
  readonly cancelled: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly reason?: string
  readonly ratePerSecond?: number
}

/** A store whose cancel batches wait until `through` releases them one by one. */
function stepped(real: Store) {
  const waiting: (() => void)[] = []
  let isOpen = false
  const store = gatedStore(real, async (name) => {
    if (name === 'bulk.cancelBatch' && !isOpen) await new Promise<void>((resolve) => waiting.push(resolve))
  })
  const through = async () => {
    await waitFor(() => waiting.length > 0, { what: 'a batch in flight' })
    waiting.shift()?.()
  }
  const open = () => {
    isOpen = true
    for (const release of waiting.splice(0)) release()
  }
  return { store, through, open, inFlight: () => waitFor(() => waiting.length > 0, { what: 'a batch' }) }
}

const post = async (service: BulkUnderTest, actionId: string, act: string, body?: object) => {
  const answer = await service.ask('acc', 'POST', `${ACTIONS}/${actionId}/${act}`, body)
  return { status: answer.status, body: answer.body as SeenAction & { error?: string } }
}
const see = async (service: BulkUnderTest, actionId: string) =>
  (await service.ask('acc', 'GET', `${ACTIONS}/${actionId}`)).body as SeenAction
const startAsync = async (service: BulkUnderTest, selector: object = {}) => {
  const answer = await service.ask('acc', 'DELETE', RUNS, { async: true, ...selector })
  expect(answer.status).toBe(202)
  return (answer.body as SeenAction).actionId
}
const ended = (service: BulkUnderTest, actionId: string) =>
  waitFor(
    async () => {
      const action = await see(service, actionId)
      return action.state === 'finished' && action
    },
    { what: 'the action to finish' },
  )
/** A change is answered when the batch in flight has ended; it is stored before. */
const inState = (service: BulkUnderTest, actionId: string, state: string) =>
  waitFor(async () => (await see(service, actionId)).state === state, { what: `the action to be ${state}` })
const cancelledAmong = (store: Store, ids: readonly string[]) => countEnded(store, 'acc', ids)

describeOnSampledStore('controls of bulk actions', (openStore, on) => {
  it('pause leaves the rest untouched, even over a restart, and resume finishes it', async () => {
    const place = await on.newPlace()
    const real = await openStore(place)
    const gate = stepped(real)
    const service = await startBulk(gate.store)
    const ids = await startRuns(real, 'acc', 1_500)
    const actionId = await startAsync(service)
    await gate.through()
    await waitFor(async () => (await see(service, actionId)).done > 0, { what: 'the first batch to be done' })
    await gate.inFlight()
    const paused = post(service, actionId, 'pause', { reason: 'too much load' })
    await inState(service, actionId, 'paused')
    gate.open()
    expect(await paused).toMatchObject({ status: 200, body: { state: 'paused', matched: 1_500 } })
    await service.stop()
    const done = await cancelledAmong(real, ids)
    expect(done).toBeGreaterThan(0)
    expect(done).toBeLessThan(1_500)
    await real.close()

    const second = await openStore(place)
    const later = await startBulk(second)
    expect(await see(later, actionId)).toMatchObject({ state: 'paused', cancelled: done, done })
    expect(await post(later, actionId, 'pause')).toMatchObject({ status: 409 })
    expect(await post(later, actionId, 'resume')).toMatchObject({ status: 200, body: { state: 'running' } })
    expect(await ended(later, actionId)).toMatchObject({ cancelled: 1_500, outcomes: { cancelled: 1_500 } })
    expect(await cancelledAmong(second, ids)).toBe(1_500)
    const entries = await second.run(accounts.auditLog, { accountId: 'acc', limit: 9 })
    expect(entries.map(({ action, details }) => [action, JSON.parse(details).reason]).reverse()).toEqual([
      ['Pause Bulk Action', 'too much load'],
      ['Resume Bulk Action', undefined],
      ['Cancel Workflow Runs', undefined],
    ])
  })

  it('resume holds also when the answer to the pause comes late', async () => {
    const real = await openStore()
    const gate = stepped(real)
    let hear = (): void => undefined
    const heard = new Promise<void>((resolve) => {
      hear = resolve
    })
    const store = wrappedStore(gate.store, async (operation, args) => {
      const answer = await gate.store.run(operation, args)
      if (operation.name === 'bulk.pause') await heard
      return answer
    })
    const service = await startBulk(store)
    await startRuns(real, 'acc', 30)
    const actionId = await startAsync(service, { ratePerSecond: 100 })
    await gate.inFlight()
    const pausing = post(service, actionId, 'pause')
    await inState(service, actionId, 'paused')
    expect(await post(service, actionId, 'resume')).toMatchObject({ status: 200, body: { state: 'running' } })
    hear()
    gate.open()
    expect((await pausing).status).toBe(200)
    expect(await ended(service, actionId)).toMatchObject({ cancelled: 30 })
  })

  it('abort skips undecided items, so the counts add up to the set', async () => {
    const real = await openStore()
    const gate = stepped(real)
    const service = await startBulk(gate.store)
    const ids = await startRuns(real, 'acc', 1_200)
    const actionId = await startAsync(service, { reason: 'wrong label' })
    await gate.through()
    await waitFor(async () => (await see(service, actionId)).done > 0, { what: 'the first batch to be done' })
    await gate.inFlight()
    const aborted = post(service, actionId, 'abort')
    await inState(service, actionId, 'aborted')
    gate.open()
    expect((await aborted).body).toMatchObject({ state: 'aborted', reason: 'wrong label' })
    const action = await see(service, actionId)
    expect(Object.values(action.outcomes).reduce((sum, count) => sum + count, 0)).toBe(1_200)
    expect(await cancelledAmong(real, ids)).toBe(action.cancelled)
    expect(action.cancelled).toBeGreaterThan(0)
    const outcomes = `${ACTIONS}/${actionId}/outcomes?outcome=skipped&count=1000`
    const page = (await service.ask('acc', 'GET', outcomes)).body as { outcomes: object[] }
    expect(page.outcomes).toHaveLength(Math.min(1_000, action.outcomes.skipped ?? 0))
    expect(page.outcomes[0]).toMatchObject({ outcome: 'skipped', error: expect.stringContaining('aborted') })
    for (const act of ['abort', 'pause', 'resume']) {
      expect(await post(service, actionId, act)).toMatchObject({
        status: 409,
        body: { error: expect.stringContaining('is aborted') },
      })
    }
  })

  it('refuses to control unknown or finished actions, and those of other accounts', async () => {
    const service = await startBulk(await openStore())
    const actionId = await startAsync(service)
    expect(await post(service, actionId, 'pause')).toMatchObject({ status: 409 })
    expect(await post(service, 'bulk_nobody', 'abort')).toMatchObject({ status: 404 })
    expect(await service.ask('other', 'POST', `${ACTIONS}/${actionId}/abort`)).toMatchObject({ status: 404 })
    expect(await post(service, actionId, 'abort', { raeson: 'x' })).toMatchObject({ status: 400 })
    const patch = (body: object) => service.ask('acc', 'PATCH', `${ACTIONS}/${actionId}`, body)
    expect(await patch({ ratePerSecond: 0 })).toMatchObject({ status: 400 })
    expect(await patch({})).toMatchObject({ status: 400 })
    expect(await patch({ ratePerSecond: 5 })).toMatchObject({ status: 409 })
  })
})

describeOnStore('sqlite', 'controls of bulk actions', (openStore) => {
  it('answer a waiting request: 202 when its action is paused, 200 when it is aborted', async () => {
    const real = await openStore()
    for (const [act, status, expected] of [
      ['pause', 202, { state: 'paused', matched: 900 }],
      ['abort', 200, { state: 'aborted', cancelled: 0, skipped: 900 }],
    ] as const) {
      const gate = stepped(real)
      const service = await startBulk(gate.store)
      await startRuns(real, 'acc', act === 'pause' ? 900 : 0)
      const answer = service.ask('acc', 'DELETE', RUNS)
      await gate.inFlight()
      const { bulkActions } = (await service.ask('acc', 'GET', ACTIONS)).body as { bulkActions: SeenAction[] }
      const actionId = bulkActions[0]?.actionId ?? ''
      const acted = post(service, actionId, act)
      await inState(service, actionId, expected.state)
      // The batch in flight ends first: it may have cancelled runs that others still deliver.
      gate.open()
      await acted
      expect(await answer).toEqual({ status, body: { actionId, ...expected } })
      await service.stop()
    }
  })

  it('respects a rate limit, and applies a new one at once', async () => {
    const store = await openStore()
    const clock = new ManualClock(1_000_000)
    const service = await startBulk(store, clock)
    const ids = await startRuns(store, 'acc', 100)
    const actionId = await startAsync(service, { ratePerSecond: 20 })
    const doneAfter = async (ms: number, count: number) => {
      for (let step = 0; step < ms; step += 50) {
        clock.advance(50)
        // Retention has a timer of its own; the other one means that the worker waits for its turn.
        await waitFor(() => clock.pendingTimers === 2, { what: 'the worker to wait' })
      }
      expect(await cancelledAmong(store, ids)).toBe(count)
    }
    await waitFor(() => clock.pendingTimers === 2, { what: 'the first batch' })
    await doneAfter(1_000, 22)
    await doneAfter(1_000, 42)
    expect(await see(service, actionId)).toMatchObject({ state: 'running', ratePerSecond: 20, done: 42 })
    const patch = { ratePerSecond: null }
    expect(await service.ask('acc', 'PATCH', `${ACTIONS}/${actionId}`, patch)).toMatchObject({ status: 200 })
    expect(await ended(service, actionId)).toMatchObject({ cancelled: 100 })
  })

  it('stores the reason with the action and refuses an empty one', async () => {
    const store = await openStore()
    const service = await startBulk(store)
    await startRuns(store, 'acc', 1)
    const { actionId = '' } = await service.cancel('acc', { reason: 'stuck since Monday', report: true })
    expect(await see(service, actionId)).toMatchObject({ reason: 'stuck since Monday' })
    const [entry] = await store.run(accounts.auditLog, { accountId: 'acc', limit: 1 })
    expect(JSON.parse(entry?.details ?? '')).toMatchObject({ reason: 'stuck since Monday' })
    for (const wrong of [{ reason: ' ' }, { reason: 'x'.repeat(501) }, { reason: 5 }, { ratePerSecond: 0 }]) {
      expect(await service.ask('acc', 'DELETE', RUNS, wrong)).toMatchObject({ status: 400 })
    }
  })
})
