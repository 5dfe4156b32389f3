import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { newId } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import {
  type App,
  type AppRoutes,
  pendingOf,
  startApp,
  startWorkflows,
  type WorkflowsUnderTest,
} from '../testing/harness.js'

const HOUR_MS = 3_600_000

describeOnSampledStore('pause and resume of a run, with the real SDK', (openStore) => {
  const clock = new ManualClock(Date.now())
  const accountId = newId('acc_', clock.now())
  const apps: App[] = []
  /** Names of transactions that the store refuses, as with a full disk, and how often it has. */
  const unstored = new Set<string>()
  let refused = 0
  let store: Store
  let service: WorkflowsUnderTest

  beforeAll(async () => {
    const opened = await openStore()
    store = wrappedStore(opened, async (operation, args) => {
      if (!unstored.has(operation.name)) return opened.run(operation, args)
      refused++
      throw new HomeportError('store_full', {})
    })
    service = await startWorkflows({ store, clock, accountId })
  })
  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()))
  })
  afterAll(() => service.stop())

  async function host(routes: AppRoutes): Promise<App> {
    const app = await startApp(service, {
      ...routes,
      '/control': { route: async (context) => context.run('one', () => 'done') },
    })
    apps.push(app)
    return app
  }
  async function ask(runId: string, what: 'pause' | 'resume', body?: object) {
    const target = `${service.url}/v2/workflows/runs/${runId}/${what}`
    const content = body && JSON.stringify(body)
    const answer = await fetch(target, { method: 'POST', headers: service.auth, ...(content && { body: content }) })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const pause = (runId: string, body?: object) => ask(runId, 'pause', body)
  const resume = (runId: string) => ask(runId, 'resume')
  /** Ids of the runs that are paused, or that are not. */
  async function listed(paused: 'true' | 'false'): Promise<string[]> {
    const answer = await fetch(`${service.url}/v2/workflows/logs?paused=${paused}`, { headers: service.auth })
    const { runs } = (await answer.json()) as { runs: { workflowRunId: string }[] }
    return runs.map(({ workflowRunId }) => workflowRunId)
  }
  /** Due times of a run, once it has only messages that are due later than now. */
  const sleeping = (runId: string) =>
    waitFor(
      async () => {
        const times = (await pendingOf(store, runId, accountId)).map(({ next_at }) => next_at)
        return times.length > 0 && times.every((time) => time > clock.now()) && times
      },
      { what: `run ${runId} to wait` },
    )
  /** Another run of the same app ends: what was due before would have been delivered. */
  async function othersGoOn(app: App): Promise<void> {
    const { workflowRunId } = await service.client.trigger({ url: `${app.url}/control` })
    expect(await service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '"done"' })
  }
  const deliveriesTo = (app: App, path: string) => app.delivered.filter((one) => one.path === path).length

  it('holds a sleep that falls due, says so, and goes on at the resume', async () => {
    const app = await host({
      '/sleep': {
        route: async (context) => {
          await context.sleep('nap', '1h')
          return 'awake'
        },
      },
    })
    const { workflowRunId: runId } = await service.client.trigger({ url: `${app.url}/sleep` })
    const due = await sleeping(runId)
    const since = clock.now()
    const paused = await pause(runId, { reason: 'maintenance' })
    expect(paused).toMatchObject({ status: 200, body: { paused: { at: since, clock: 'keep', reason: 'maintenance' } } })
    expect(await pendingOf(store, runId, accountId)).toMatchObject([{ next_at: due[0] }])
    clock.advance(2 * HOUR_MS)
    await othersGoOn(app)
    expect(deliveriesTo(app, '/sleep')).toBe(1)
    // A second pause changes nothing.
    expect((await pause(runId, { clock: 'hold' })).body).toEqual(paused.body)
    const run = await service.log(runId)
    expect(run).toMatchObject({ workflowState: 'RUN_STARTED', paused: { at: since, reason: 'maintenance' } })
    expect(run?.because?.map(({ kind }) => kind)).toEqual(['paused'])
    expect(run?.because?.[0]?.text).toContain('("maintenance")')
    expect(await listed('true')).toEqual([runId])
    const others = await listed('false')
    expect(others.length).toBeGreaterThan(0)
    expect(others).not.toContain(runId)
    expect(await resume(runId)).toMatchObject({ status: 200, body: { pausedAt: since } })
    expect(await service.ended(runId)).toMatchObject({ workflowRunResponse: '"awake"' })
    expect((await pause(runId)).status).toBe(409)
    expect((await resume('wfr_none')).status).toBe(404)
  })

  it('holds the clocks of sleeps and waits, if asked', async () => {
    const app = await host({
      '/both': {
        route: async (context) =>
          Promise.all([context.sleep('nap', '2h'), context.waitForEvent('wait', 'never', { timeout: '1h' })]),
      },
    })
    const started = clock.now()
    const { workflowRunId: runId } = await service.client.trigger({ url: `${app.url}/both` })
    await waitFor(async () => (await sleeping(runId)).length === 2, { what: 'both branches' })
    clock.advance(HOUR_MS / 2)
    await pause(runId, { clock: 'hold' })
    clock.advance(5 * HOUR_MS)
    await othersGoOn(app)
    await resume(runId)
    expect((await sleeping(runId)).map((time) => time - started).sort((a, b) => a - b)).toEqual([
      6 * HOUR_MS,
      7 * HOUR_MS,
    ])
    const [waiter] = await service.client.getWaiters({ eventId: 'never' })
    expect(waiter?.deadline).toBe(Math.floor((started + 6 * HOUR_MS) / 1_000))
    clock.advance(HOUR_MS / 2)
    await service.when(runId, 'the timeout', ({ because = [] }) => because.every(({ kind }) => kind === 'sleeping'))
    clock.advance(HOUR_MS)
    expect(await service.ended(runId)).toMatchObject({ workflowState: 'RUN_SUCCESS' })
  })

  it('lets the request in flight end, keeps its result or its failure, and holds what follows', async () => {
    const gates: (() => void)[] = []
    let failures = 1
    const app = await host({
      '/steps': {
        route: async (context) => {
          await context.run('slow', () => new Promise<void>((resolve) => gates.push(resolve)))
          return context.run('weak', async () => {
            await new Promise<void>((resolve) => gates.push(resolve))
            if (failures-- > 0) throw new Error('not yet')
            return 'strong'
          })
        },
      },
    })
    const { workflowRunId: runId } = await service.client.trigger({ url: `${app.url}/steps`, retryDelay: '1000' })
    const openGate = async (index: number) => {
      await waitFor(() => gates.length > index, { what: `step ${index} to run` })
      return gates[index]
    }
    const slow = await openGate(0)
    await pause(runId)
    slow?.()
    const held = await service.when(runId, 'the result', ({ steps }) => JSON.stringify(steps).includes('"slow"'))
    expect(held).toMatchObject({ workflowState: 'RUN_STARTED' })
    await app.allDelivered()
    await othersGoOn(app)
    expect(gates).toHaveLength(1)
    await resume(runId)
    const weak = await openGate(1)
    await pause(runId)
    weak?.()
    await service.when(runId, 'the failure', ({ because = [] }) => because.some(({ kind }) => kind === 'retry'))
    clock.advance(HOUR_MS)
    await othersGoOn(app)
    expect(gates).toHaveLength(2)
    await resume(runId)
    ;(await openGate(2))?.()
    expect(await service.ended(runId)).toMatchObject({ workflowRunResponse: '"strong"' })
  })

  it('keeps an outcome that cannot be stored yet when the run is paused', async () => {
    const gates: (() => void)[] = []
    const app = await host({
      '/failing': {
        route: async (context) => {
          await context.run('once', () => new Promise<void>((_, reject) => gates.push(() => reject(new Error('no')))))
        },
      },
    })
    const { workflowRunId: runId } = await service.client.trigger({ url: `${app.url}/failing`, retries: 0 })
    await waitFor(() => gates.length === 1, { what: 'the step to run' })
    const refusedTwiceMore = (from: number) =>
      waitFor(
        () => {
          clock.advance(1_000)
          return refused >= from + 2
        },
        { what: 'the store to refuse the outcome' },
      )
    unstored.add('runs.settle')
    gates[0]?.()
    await refusedTwiceMore(refused)
    await pause(runId)
    await refusedTwiceMore(refused)
    unstored.clear()
    clock.advance(10_000)
    await resume(runId)
    expect(await service.ended(runId)).toMatchObject({ workflowState: 'RUN_FAILED' })
    expect(gates).toHaveLength(1)
  })

  it('keeps an event for the resume', async () => {
    const app = await host({
      '/wait': {
        route: async (context) => (await context.waitForEvent('wait', 'paid', { timeout: '1h' })).eventData,
      },
    })
    const { workflowRunId: runId } = await service.client.trigger({ url: `${app.url}/wait` })
    await sleeping(runId)
    await pause(runId)
    expect(await service.client.notify({ eventId: 'paid', eventData: 7 })).toHaveLength(1)
    clock.advance(2 * HOUR_MS)
    await othersGoOn(app)
    expect(deliveriesTo(app, '/wait')).toBe(1)
    await resume(runId)
    expect(await service.ended(runId)).toMatchObject({ workflowRunResponse: '7' })
  })

  it('cancels a paused run', async () => {
    const app = await host({ '/nap': { route: async (context) => context.sleep('nap', '1h') } })
    const { workflowRunId: runId } = await service.client.trigger({ url: `${app.url}/nap` })
    await sleeping(runId)
    await pause(runId)
    const target = `${service.url}/v2/workflows/runs/${runId}`
    expect((await fetch(target, { method: 'DELETE', headers: service.auth })).status).toBe(200)
    expect(await pendingOf(store, runId, accountId)).toEqual([])
    expect(await resume(runId)).toMatchObject({ status: 409 })
    const run = await service.log(runId)
    expect(run).toMatchObject({ workflowState: 'RUN_CANCELED' })
    expect(run).not.toHaveProperty('paused')
    expect(await listed('true')).not.toContain(runId)
    expect(await listed('false')).toContain(runId)
  })
})
