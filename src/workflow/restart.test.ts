import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { type App, type AppRoutes, startApp, startWorkflows, type WorkflowsUnderTest } from './testing/harness.js'

describeOnEveryStore('runs over a restart of everything', (openStore, { newPlace }) => {
  /** A service and an app on one store, which both can be ended and begun again. */
  const life = async (routes: AppRoutes) => {
    const place = await newPlace()
    let store = await openStore(place)
    let service: WorkflowsUnderTest = await startWorkflows({ store, shutdownGraceMs: 0 })
    let app: App = await startApp(service, routes)
    const port = Number(new URL(app.url).port)
    return {
      url: app.url,
      service: () => service,
      app: () => app,
      async restart() {
        // The service first: to the requests in flight its end looks like a crash, not like an answer.
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

  it('go on where they stood: asleep, waiting, in the middle of a step, and cancelled', async () => {
    let begun = 0
    const world = await life({
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
            // The first attempt never ends; what it was for is tried again after the restart.
            if (++begun === 1) await new Promise(() => undefined)
            return 'done'
          }),
      },
      '/cancel': { route: async (context) => context.run('never', () => expect.fail('a cancelled run was delivered')) },
    })
    const { client } = world.service()
    const trigger = async (path: string, delay?: number): Promise<string> =>
      (await client.trigger({ url: world.url + path, ...(delay !== undefined && { delay }) })).workflowRunId
    const runs = {
      sleep: await trigger('/sleep'),
      wait: await trigger('/wait'),
      step: await trigger('/step'),
      cancel: await trigger('/cancel', 1),
    }
    await waitFor(async () => (await client.getWaiters({ eventId: 'event' })).length === 1, { what: 'the waiter' })
    await world.service().when(runs.sleep, 'the sleep', ({ steps }) => steps.at(-1)?.steps[0]?.stepType === 'SleepFor')
    await waitFor(() => begun === 1, { what: 'the step' })
    const cancelled = await fetch(`${world.service().url}/v2/workflows/runs/${runs.cancel}`, {
      method: 'DELETE',
      headers: world.service().auth,
    })
    expect(cancelled.status).toBe(200)

    await world.restart()
    await world.service().client.notify({ eventId: 'event', eventData: 'came' })
    expect(await world.service().ended(runs.sleep)).toMatchObject({ workflowRunResponse: '"slept"' })
    expect(await world.service().ended(runs.wait)).toMatchObject({ workflowRunResponse: '"came"' })
    expect(await world.service().ended(runs.step)).toMatchObject({ workflowRunResponse: '"done"' })
    expect(begun).toBe(2)
    expect(await world.service().log(runs.cancel)).toMatchObject({ workflowState: 'RUN_CANCELED' })
    await world.end()
    // Starts everything twice, on a machine that may be busy.
  }, 60_000)
})
