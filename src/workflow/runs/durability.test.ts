import { expect, it, onTestFinished } from 'vitest'
import { atCleanup } from '../../../test/support/cleanup.js'
import { freePort } from '../../../test/support/ports.js'
import { tempDir } from '../../../test/support/temp-dir.js'
import { waitFor } from '../../../test/support/wait-for.js'
import { newId } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HIGH_LIMITS, startQueue } from '../../queue/testing/harness.js'
import { openStore } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { changeBehind } from '../../store/testing/inspect.js'
import { silentLogger } from '../../telemetry/index.js'
import { createWorkflow, type Workflow } from '../index.js'
import {
  type App,
  type AppRoutes,
  type SeenRun,
  startApp,
  startWorkflows,
  type WorkflowsUnderTest,
} from '../testing/harness.js'
import * as runsFinish from '../transactions/runs-finish.js'
import * as runsLogs from '../transactions/runs-logs.js'
import * as runsNotify from '../transactions/runs-notify.js'
import * as runsSubmit from '../transactions/runs-submit.js'

/** On a busy machine the sleep of a second may have ended before the test looks. */
const isAsleep = ({ steps }: SeenRun): boolean => steps.some((step) => step.steps[0]?.stepType === 'SleepFor')

describeOnEveryStore('runs across a restart of everything', (openStore, { newPlace }) => {
  /** A service and an app on one store, which can be restarted. */
  const startAll = async (routes: AppRoutes) => {
    const place = await newPlace()
    let store = await openStore(place)
    let service: WorkflowsUnderTest = await startWorkflows({ store, shutdownGraceMs: 0 })
    const port = await freePort()
    let app: App = await startApp(service, routes, port)
    return {
      url: app.url,
      service: () => service,
      app: () => app,
      async restart() {
        // The service first: its requests in flight then end like in a crash, without a response.
        await service.stop()
        await Promise.all([app.close(), store.close()])
        store = await openStore(place)
        service = await startWorkflows({ store })
        app = await startApp(service, routes, port)
      },
      async end() {
        await Promise.all([app.close(), service.stop()])
      },
    }
  }

  it('continue where they were: asleep, waiting, within a step, and cancelled', async () => {
    let begun = 0
    const server = await startAll({
      '/sleep': {
        route: async (context) => {
          await context.run('before', () => 1)
          await context.sleep('sleep', 1)
          return context.run('after', () => 'slept')
        },
      },
      '/wait': { route: async (context) => (await context.waitForEvent('wait', 'event', { timeout: '1h' })).eventData },
      '/step': {
        route: async (context) =>
          context.run('step', async () => {
            // The first attempt never ends; it is retried after the restart.
            if (++begun === 1) await new Promise(() => undefined)
            return 'done'
          }),
      },
      '/cancel': { route: async (context) => context.run('never', () => expect.fail('a cancelled run was delivered')) },
    })
    const { client } = server.service()
    const trigger = async (path: string, delay?: number): Promise<string> =>
      (await client.trigger({ url: server.url + path, ...(delay !== undefined && { delay }) })).workflowRunId
    const runs = {
      sleep: await trigger('/sleep'),
      wait: await trigger('/wait'),
      step: await trigger('/step'),
      cancel: await trigger('/cancel', 1),
    }
    await waitFor(async () => (await client.getWaiters({ eventId: 'event' })).length === 1, { what: 'the waiter' })
    await server.service().when(runs.sleep, 'the sleep', isAsleep)
    await waitFor(() => begun === 1, { what: 'the step' })
    const cancelled = await fetch(`${server.service().url}/v2/workflows/runs/${runs.cancel}`, {
      method: 'DELETE',
      headers: server.service().auth,
    })
    expect(cancelled.status).toBe(200)

    await server.restart()
    await server.service().client.notify({ eventId: 'event', eventData: 'came' })
    expect(await server.service().ended(runs.sleep)).toMatchObject({ workflowRunResponse: '"slept"' })
    expect(await server.service().ended(runs.wait)).toMatchObject({ workflowRunResponse: '"came"' })
    expect(await server.service().ended(runs.step)).toMatchObject({ workflowRunResponse: '"done"' })
    expect(begun).toBe(2)
    expect(await server.service().log(runs.cancel)).toMatchObject({ workflowState: 'RUN_CANCELED' })
    await server.end()
    // Starts everything twice, on a busy machine.
  })
})

it('the service fails a run with a damaged step, with the reason; other runs continue', async () => {
  const dataDir = tempDir()
  const open = () => openStore({ location: 'sqlite', dataDir, onFailure: (error) => expect.fail(error.message) })
  let store = await open()
  let service = await startWorkflows({ store })
  const seen: unknown[] = []
  const routes: AppRoutes = {
    '/sum': {
      route: async (context) => {
        const first = await context.run('first', () => 'as it was')
        await context.sleep('a moment', 3)
        await context.run('second', () => void seen.push(first))
      },
    },
  }
  const port = await freePort()
  let app = await startApp(service, routes, port)
  const trigger = async () =>
    (await service.client.trigger({ url: `${app.url}/sum`, body: {}, retries: 0 })).workflowRunId
  const [bad, good] = [await trigger(), await trigger()]
  for (const id of [bad, good]) {
    await service.when(id, 'to sleep', (run) => run.steps.some(({ steps }) => steps[0]?.stepName === 'a moment'))
  }
  await service.stop()
  await Promise.all([app.close(), store.close()])
  const flip = `UPDATE steps SET body = cast(replace(cast(body AS text), 'as it was', 'as it wax') AS blob)
    WHERE run_seq = (SELECT seq FROM runs WHERE run_id = '${bad}') AND instr(body, cast('as it was' AS blob)) > 0`
  expect(changeBehind(dataDir, flip)).toBe(1)
  store = await open()
  service = await startWorkflows({ store })
  app = await startApp(service, routes, port)
  onTestFinished(async () => {
    await service.stop()
    await Promise.all([app.close(), store.close()])
  })
  const failed = await service.when(bad, 'to fail', (run) => run.workflowState === 'RUN_FAILED')
  await service.when(good, 'to succeed', (run) => run.workflowState === 'RUN_SUCCESS')
  expect(seen).toEqual(['as it was'])
  expect(JSON.stringify(failed)).toContain('damaged in the store of the server')
  expect(JSON.stringify(failed)).not.toContain('as it wax')
})

const SWEEP_EVERY_MS = 600_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 0 }

describeOnEveryStore('retention of runs by size', (openStore) => {
  it('keeps the newest ended runs that fit, and every active run', async () => {
    const store = await openStore()
    const clock = new ManualClock(Date.now())
    const accountId = newId('acc_', clock.now())
    let workflow: Workflow | undefined
    const service = await startQueue({
      store,
      clock,
      accountId,
      extend: (queue) => {
        workflow = createWorkflow({
          ...HIGH_LIMITS,
          store,
          queue,
          clock,
          logger: silentLogger,
          publicUrl: 'http://127.0.0.1',
          accountOfUser: () => undefined,
          // Each run below takes more than 10,000 bytes.
          retentionBytes: 35_000,
        })
        return workflow.routes()
      },
    })
    atCleanup(() => service.stop())

    const start = async (runId: string): Promise<void> => {
      const at = clock.now()
      const first = {
        kind: 'step' as const,
        messageId: newId('msg_', at),
        body: Buffer.alloc(10_000, 'x'),
        meta: JSON.stringify({ delivery }),
        dueAt: at + 100 * SWEEP_EVERY_MS,
        delivery,
      }
      const run = { ...columns, run_id: runId, contact: 'known' as const }
      await store.run(runsSubmit.submit, { accountId, submissions: [{ kind: 'start', run, first }], at })
    }
    const kept = async () => {
      const page = { accountId, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 100 }
      return (await store.run(runsLogs.logPage, page)).runs.map(({ run_id }) => run_id).reverse()
    }
    const all = ['active', 'a', 'b', 'c', 'd', 'e']
    for (const runId of all) await start(runId)
    // No run waits for it.
    const event = { accountId, runId: 'c', eventId: 'early', data: Buffer.alloc(10_000, 'x'), at: clock.now() }
    expect(await store.run(runsNotify.notify, event)).toMatchObject({ kind: 'kept' })
    for (const runId of all.slice(1)) {
      await store.run(runsFinish.finishRun, { accountId, runId, response: 'done', at: clock.now() })
    }
    await workflow?.start()
    atCleanup(async () => workflow?.stop())
    expect(await kept()).toEqual(all)
    await waitFor(
      async () => {
        clock.advance(SWEEP_EVERY_MS)
        return (await kept()).length === 3
      },
      { what: 'the sweep' },
    )
    expect(await kept()).toEqual(['active', 'd', 'e'])
  })
})
