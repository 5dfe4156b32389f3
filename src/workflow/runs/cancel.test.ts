import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { type App, pendingOf } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

describe('a cancelled run', () => {
  const suite = useWorkflows()
  const { host } = suite

  const cancel = (runId: string): Promise<Response> =>
    fetch(`${suite.service.url}/v2/workflows/runs/${runId}?cancel=true`, {
      method: 'DELETE',
      headers: suite.service.auth,
    })

  /** Expects that nothing is pending, and that no further delivery arrives. */
  const expectDead = async (runId: string, app: App): Promise<void> => {
    const before = (await app.allDelivered()).length
    expect(await pendingOf(suite.store, runId)).toEqual([])
    expect(await suite.service.log(runId)).toMatchObject({ workflowState: 'RUN_CANCELED' })
    // Anything that is still queued is sent before a run that is triggered now.
    const probe = await host({ '/probe': { route: async (context) => context.run('one', () => 1) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${probe.url}/probe` })
    await suite.service.ended(workflowRunId)
    expect((await app.allDelivered()).length).toBe(before)
  }

  it('does not start after its delay', async () => {
    const app = await host({ '/later': { route: async (context) => context.run('one', () => 1) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/later`, delay: '1h' })
    expect((await cancel(workflowRunId)).status).toBe(200)
    await expectDead(workflowRunId, app)
    expect(app.delivered).toEqual([])
  })

  it('does not wake from a sleep', async () => {
    const app = await host({
      '/sleep': {
        route: async (context) => {
          await context.sleep('long', '1h')
          await context.run('never', () => 1)
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/sleep` })
    await waitFor(() => app.delivered.length === 1, { what: 'the first delivery' })
    await cancel(workflowRunId)
    await expectDead(workflowRunId, app)
  })

  it('is not retried', async () => {
    const app = await host({
      '/bad': {
        route: async (context) =>
          context.run('bad', () => {
            throw new Error('bad')
          }),
        options: { failureFunction: async () => expect.fail('the failure function of a cancelled run was called') },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/bad`,
      retries: 3,
      retryDelay: '3600000',
    })
    await suite.service.when(workflowRunId, 'a retry', ({ steps }) => steps.at(-1)?.steps[0]?.state === 'STEP_RETRY')
    await cancel(workflowRunId)
    await expectDead(workflowRunId, app)
    const { messages } = await suite.service.client.dlq.list({ filter: undefined } as never)
    expect(messages.filter((message) => message.workflowRunId === workflowRunId)).toEqual([])
  })

  it('has its request in flight aborted, and its outcome and late step ignored', async () => {
    let release = (): void => undefined
    let began = false
    const app = await host({
      '/slow': {
        route: async (context) =>
          context.run('slow', async () => {
            began = true
            await new Promise<void>((resolve) => (release = resolve))
            return 'too late'
          }),
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/slow` })
    await waitFor(() => began, { what: 'the step to begin' })
    await cancel(workflowRunId)
    await waitFor(() => app.aborted() === 1, { what: 'the request to be aborted' })
    release()
    await waitFor(() => app.delivered.length === 1, { what: 'the program to end' })
    // The SDK has learned that the run has ended: it answers 200 and stops.
    expect(app.delivered[0]?.status).toBe(200)
    await expectDead(workflowRunId, app)
    const run = await suite.service.log(workflowRunId)
    expect(run?.steps.flatMap(({ steps }) => steps.map(({ stepName, state }) => [stepName, state]))).toEqual([
      ['init', 'STEP_SUCCESS'],
      [undefined, 'STEP_CANCELED'],
    ])
  })

  it('makes no more calls to third parties', async () => {
    let calls = 0
    const app = await host({
      '/third': async () => new Response('', { status: ++calls > 0 ? 500 : 200 }),
      '/call': {
        route: async (context) =>
          (await context.call('ask', { url: `${app.url}/third`, retries: 5, retryDelay: '3600000' })).status,
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/call` })
    await suite.service.when(workflowRunId, 'a retried call', ({ steps }) => steps[1]?.steps[0]?.state === 'STEP_RETRY')
    await cancel(workflowRunId)
    await expectDead(workflowRunId, app)
    expect(calls).toBe(1)
  })

  it('can cancel itself', async () => {
    const app = await host({
      '/self': {
        route: async (context) => {
          await context.run('one', () => 1)
          await context.cancel()
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/self` })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowState: 'RUN_CANCELED' })
    await waitFor(() => app.delivered.length === 2, { what: 'the program to end' })
    await expectDead(workflowRunId, app)
  })

  it('may be cancelled twice, but not after another end', async () => {
    const app = await host({ '/one': { route: async (context) => context.run('one', () => 1) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/one`, delay: '1h' })
    // A misspelt parameter must not cancel the run.
    const misspelt = `${suite.service.url}/v2/workflows/runs/${workflowRunId}?cancle=false`
    expect((await fetch(misspelt, { method: 'DELETE', headers: suite.service.auth })).status).toBe(400)
    expect((await suite.service.log(workflowRunId))?.workflowState).toBe('RUN_STARTED')
    expect((await cancel(workflowRunId)).status).toBe(200)
    expect((await cancel(workflowRunId)).status).toBe(200)
    const done = await suite.service.client.trigger({ url: `${app.url}/one` })
    await suite.service.ended(done.workflowRunId)
    expect((await cancel(done.workflowRunId)).status).toBe(409)
    expect((await cancel('wfr_nobody')).status).toBe(404)
  })
})
