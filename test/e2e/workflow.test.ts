import type { WorkflowContext } from '@upstash/workflow'
import { createWorkflow, serveMany } from '@upstash/workflow/cloudflare'
import { afterEach, describe, expect, it } from 'vitest'
import { type App, type AppRoutes, type SeenRun, startApp } from '../../src/workflow/testing/harness.js'
import { waitFor } from '../support/index.js'
import { useService } from './support/service.js'

/**
 * Workflows from a user's view: endpoints of the official SDK, run by the service, controlled by the official client.
 */

const service = useService()
const apps: App[] = []

afterEach(async () => {
  await service.homeport.queue('DELETE', '/v2/workflows/runs', {})
  await Promise.all(apps.splice(0).map((app) => app.close()))
})

/** Serves workflows for the running test. */
async function host(routes: AppRoutes): Promise<App> {
  const app = await startApp(service.app, routes)
  apps.push(app)
  return app
}

async function logOf(runId: string): Promise<SeenRun | undefined> {
  const { body } = await service.homeport.queue('GET', `/v2/workflows/logs?workflowRunId=${encodeURIComponent(runId)}`)
  return (body as { runs: SeenRun[] }).runs[0]
}

const when = (runId: string, what: string, condition: (run: SeenRun) => boolean): Promise<SeenRun> =>
  waitFor(
    async () => {
      const run = await logOf(runId)
      return run && condition(run) && run
    },
    { what: `run ${runId}: ${what}` },
  )

const ended = (runId: string) => when(runId, 'an end', ({ workflowState }) => workflowState !== 'RUN_STARTED')

/** Triggers a workflow, waits for its success, and returns its result. */
async function resultOf(url: string, body?: unknown): Promise<unknown> {
  const { workflowRunId } = await service.workflow.trigger({ url, body })
  const run = await ended(workflowRunId)
  expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS' })
  return JSON.parse(run.workflowRunResponse ?? 'null')
}

const sleeper = {
  route: async (context: WorkflowContext<unknown>) => {
    await context.sleep('long', '1h')
  },
}

/** Starts runs that sleep for an hour, and waits until they do. */
async function sleeping(url: string, count: number, label?: string): Promise<string[]> {
  const triggers = Array.from({ length: count }, () => ({ url, ...(label === undefined ? {} : { label }) }))
  const ids = (await service.workflow.trigger(triggers)).map(({ workflowRunId }) => workflowRunId)
  for (const id of ids) await when(id, 'its sleep', ({ steps }) => JSON.stringify(steps).includes('"long"'))
  return ids
}

const statesOf = (ids: readonly string[]) => Promise.all(ids.map(async (id) => (await logOf(id))?.workflowState))

describe('steps', () => {
  it('run, sleep, call a third party and run in parallel, each once', async () => {
    const done: string[] = []
    const step = (name: string) => () => {
      done.push(name)
      return name
    }
    const app = await host({
      '/third': async (request) => Response.json({ got: await request.json() }, { status: 201 }),
      '/order': {
        route: async (context) => {
          const first = await context.run('first', step('first'))
          await context.sleep('nap', '1s')
          await context.sleepUntil('until', new Date(Date.now() + 1_000))
          const called = await context.call('third', { url: `${app.url}/third`, method: 'POST', body: '{"order":7}' })
          const both = await Promise.all([context.run('left', step('left')), context.run('right', step('right'))])
          return { payload: context.requestPayload, first, status: called.status, body: called.body, both }
        },
      },
    })
    expect(await resultOf(`${app.url}/order`, { id: 1 })).toEqual({
      payload: { id: 1 },
      first: 'first',
      status: 201,
      body: { got: { order: 7 } },
      both: ['left', 'right'],
    })
    expect(done.sort()).toEqual(['first', 'left', 'right'])
  })

  it('wait for an event that the client or another run sends', async () => {
    const app = await host({
      '/wait': {
        route: async (context) => {
          const { eventData, timeout } = await context.waitForEvent('wait', `paid ${context.requestPayload}`, {
            timeout: '1h',
          })
          return { eventData, timeout }
        },
      },
      '/notify': {
        route: async (context) => {
          const { notifyResponse } = await context.notify('tell', 'paid two', { by: 'run' })
          return notifyResponse.length
        },
      },
      '/impatient': {
        route: async (context) => (await context.waitForEvent('wait', 'never', { timeout: '1s' })).timeout,
      },
    })
    const ids = await Promise.all(
      ['one', 'two'].map(
        async (body) => (await service.workflow.trigger({ url: `${app.url}/wait`, body })).workflowRunId,
      ),
    )
    const waiters = async (eventId: string) => (await service.workflow.getWaiters({ eventId })).length
    await waitFor(async () => (await waiters('paid one')) + (await waiters('paid two')) === 2, { what: 'both waits' })
    const notified = await service.workflow.notify({ eventId: 'paid one', eventData: { by: 'client' } })
    expect(notified).toMatchObject([{ workflowRunId: ids[0] }])
    expect(await resultOf(`${app.url}/notify`)).toBe(1)
    const results = await Promise.all(ids.map(async (id) => JSON.parse((await ended(id)).workflowRunResponse ?? '')))
    expect(results).toEqual([
      { eventData: { by: 'client' }, timeout: false },
      { eventData: { by: 'run' }, timeout: false },
    ])
    expect(await resultOf(`${app.url}/impatient`)).toBe(true)
  })

  it('wait for a webhook that anybody may call', async () => {
    const addresses: string[] = []
    const app = await host({
      '/hook': {
        route: async (context) => {
          const webhook = await context.createWebhook('create')
          await context.run('tell', () => void addresses.push(webhook.webhookUrl))
          const { request, timeout } = await context.waitForWebhook('wait', webhook, '1h')
          return { timeout, method: request?.method, body: await request?.text() }
        },
      },
    })
    const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/hook` })
    const address = await waitFor(() => addresses[0], { what: 'the address of the webhook' })
    expect(address.startsWith(service.app.url)).toBe(true)
    expect((await fetch(address, { method: 'PUT', body: 'from outside' })).status).toBe(200)
    const run = await ended(workflowRunId)
    expect(JSON.parse(run.workflowRunResponse ?? '')).toEqual({ timeout: false, method: 'PUT', body: 'from outside' })
  })

  it('invoke another workflow and get its result', async () => {
    const child = createWorkflow(async (context: WorkflowContext<string>) =>
      context.run('greet', () => `hello ${context.requestPayload}`),
    )
    const parent = createWorkflow(async (context: WorkflowContext<unknown>) => {
      const { body, isFailed, isCanceled } = await context.invoke('child', { workflow: child, body: 'child' })
      return { body, isFailed, isCanceled }
    })
    const { url, token, signingKeys } = service.app
    const keys = signingKeys()
    const env = {
      QSTASH_URL: url,
      QSTASH_TOKEN: token,
      QSTASH_CURRENT_SIGNING_KEY: keys.current,
      QSTASH_NEXT_SIGNING_KEY: keys.next,
    }
    const endpoint = serveMany({ parent, child })
    const serve = async (request: Request): Promise<Response> => endpoint.fetch(request, env)
    const app = await host({ '/parent': serve, '/child': serve })
    expect(await resultOf(`${app.url}/parent`)).toEqual({ body: 'hello child', isFailed: false, isCanceled: false })
  })

  it('are retried, and finally the failure function is called', async () => {
    const failures: unknown[] = []
    let tries = 0
    const app = await host({
      '/bad': {
        route: async (context) =>
          context.run('bad', () => {
            tries++
            throw new Error('no luck')
          }),
        options: {
          failureFunction: async ({ context, failStatus, failResponse }) => {
            failures.push([context.requestPayload, failStatus, failResponse])
          },
        },
      },
    })
    const { workflowRunId } = await service.workflow.trigger({
      url: `${app.url}/bad`,
      body: 'p',
      retries: 2,
      retryDelay: '10',
    })
    const run = await when(workflowRunId, 'the failure function', ({ failureFunction }) => {
      return failureFunction?.state === 'CALLBACK_SUCCESS'
    })
    expect(run).toMatchObject({ workflowState: 'RUN_FAILED', dlqId: expect.any(String) })
    expect([tries, failures]).toEqual([3, [['p', 500, 'no luck']]])
    const { messages } = await service.workflow.dlq.list()
    expect(messages.map((message) => message.workflowRunId)).toContain(workflowRunId)
  })

  it('of a run continue after a restart', async () => {
    const done: string[] = []
    const app = await host({
      '/long': {
        route: async (context) => {
          const first = await context.run('first', () => done.push('first'))
          await context.sleep('nap', '3s')
          return first + (await context.run('second', () => done.push('second')))
        },
      },
    })
    const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/long` })
    await when(workflowRunId, 'its sleep', ({ steps }) => JSON.stringify(steps).includes('"nap"'))
    await service.restart('SIGKILL')
    expect(await ended(workflowRunId)).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '3' })
    expect(done).toEqual(['first', 'second'])
  })
})

describe('triggering', () => {
  it('works over plain HTTP, alone and in a batch', async () => {
    const app = await host({
      '/plain': {
        route: async (context) => context.run('one', () => [context.requestPayload, context.headers.get('x-tenant')]),
      },
    })
    const single = await fetch(`${service.homeport.queueUrl}/v2/trigger/${app.url}/plain`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.app.token}`, 'Upstash-Forward-X-Tenant': 'blue' },
      body: '{"n":1}',
    })
    const many = await service.homeport.queue('POST', '/v2/batch/trigger', [
      { destination: `${app.url}/plain`, body: '2' },
      { destination: `${app.url}/plain`, body: '3', headers: { 'Upstash-Workflow-RunId': 'third-run' } },
    ])
    expect([single.status, many.status]).toEqual([200, 201])
    const triggered = [await single.json(), ...(many.body as unknown[])] as { workflowRunId: string }[]
    expect(triggered[2]?.workflowRunId).toBe('third-run')
    const runs = await Promise.all(triggered.map(({ workflowRunId }) => ended(workflowRunId)))
    expect(runs.map(({ workflowRunResponse }) => JSON.parse(workflowRunResponse ?? ''))).toEqual([
      [{ n: 1 }, 'blue'],
      [2, null],
      [3, null],
    ])
  })

  it('starts an id once, and shows runs by their label in both logs', async () => {
    const app = await host({ '/sleep': sleeper })
    const request = { url: `${app.url}/sleep`, workflowRunId: 'only-once', label: 'logged' }
    const first = await service.workflow.trigger(request)
    expect(await service.workflow.trigger(request)).toMatchObject(first)
    await when(first.workflowRunId, 'its sleep', ({ steps }) => JSON.stringify(steps).includes('"long"'))
    const byClient = await service.workflow.logs({ filter: { label: 'logged' } })
    expect(byClient.runs).toMatchObject([
      { workflowRunId: first.workflowRunId, workflowUrl: request.url, workflowState: 'RUN_STARTED', label: 'logged' },
    ])
    // The request of the first step may still be in flight when the sleep is stored, and is shown as a step of its own.
    const agree = async () => {
      const events = await service.homeport.queue('GET', '/v2/workflows/events?label=logged')
      const logs = await service.homeport.queue('GET', '/v2/workflows/logs?label=logged')
      expect(events.body).toMatchObject(logs.body as object)
      expect((events.body as { runs: SeenRun[] }).runs[0]?.steps).toMatchObject([
        { type: 'sequential', steps: [{ stepName: 'init', state: 'STEP_SUCCESS' }] },
        { type: 'sequential', steps: [{ stepName: 'long', state: 'STEP_PROGRESS', sleepFor: expect.anything() }] },
      ])
      return true
    }
    await waitFor(agree, { what: 'both logs to agree' })
    const finished = await service.homeport.queue('GET', '/v2/workflows/logs?label=logged&state=RUN_SUCCESS')
    expect(finished.body).toEqual({ runs: [] })
  })
})

describe('cancelling', () => {
  it('accepts every form of the client', async () => {
    const app = await host({ '/a': sleeper, '/a/more': sleeper, '/b': sleeper })
    const { workflow } = service
    const [a, b, c] = (await sleeping(`${app.url}/a`, 3)) as [string, string, string]
    const more = await sleeping(`${app.url}/a/more`, 2, 'red')
    const others = await sleeping(`${app.url}/b`, 3)
    expect(await workflow.cancel(a)).toEqual({ cancelled: 1 })
    expect(await workflow.cancel([a, b, 'wfr_no-such-run'])).toEqual({ cancelled: 1 })
    expect(await workflow.cancel({ filter: { label: 'red' }, count: 1 })).toEqual({ cancelled: 1 })
    expect(await workflow.cancel({ filter: { workflowUrl: `${app.url}/a` } })).toEqual({ cancelled: 1 })
    expect(await statesOf([c, ...more])).toEqual(['RUN_CANCELED', 'RUN_CANCELED', 'RUN_STARTED'])
    expect(await workflow.cancel({ filter: { workflowUrlStartingWith: `${app.url}/a` } })).toEqual({ cancelled: 1 })
    expect(await workflow.cancel({ ids: others.slice(0, 1) })).toEqual({ cancelled: 1 })
    expect(await workflow.cancel({ urlStartingWith: `${app.url}/b` })).toEqual({ cancelled: 2 })
    const rest = await sleeping(`${app.url}/b`, 2)
    expect(await workflow.cancel({ all: true, count: 1 })).toEqual({ cancelled: 1 })
    expect(await workflow.cancel({ all: true })).toEqual({ cancelled: 1 })
    expect(await workflow.cancel({ all: true })).toEqual({ cancelled: 0 })
    expect(await statesOf([a, b, c, ...more, ...others, ...rest])).toEqual(Array(10).fill('RUN_CANCELED'))
  })

  it('previews on request, then works in the background and reports every run', async () => {
    const app = await host({ '/sleep': sleeper })
    const ids = await sleeping(`${app.url}/sleep`, 5, 'nightly')
    const [kept] = (await sleeping(`${app.url}/sleep`, 1, 'other')) as [string]
    const { queue } = service.homeport
    const selector = { label: 'nightly', fromDate: 1, toDate: Date.now() + 60_000 }
    const looked = await queue('DELETE', '/v2/workflows/runs?dryRun=true', selector)
    expect(looked).toMatchObject({ status: 200, body: { cancelled: 0, matched: 5, sample: ids } })
    expect(await statesOf(ids)).toEqual(ids.map(() => 'RUN_STARTED'))

    const accepted = await queue('DELETE', '/v2/workflows/runs', { ...selector, async: true })
    expect(accepted).toMatchObject({ status: 202, body: { matched: 5 } })
    const { actionId } = accepted.body as { actionId: string }
    const action = await waitFor(
      async () => {
        const { body } = await queue('GET', `/v2/workflows/bulkActions/${actionId}`)
        return (body as { state: string }).state === 'finished' && body
      },
      { what: 'the bulk action to finish' },
    )
    expect(action).toMatchObject({
      selector: { label: ['nightly'] },
      createdBy: service.homeport.credentials.email,
      matched: 5,
      done: 5,
      outcomes: { cancelled: 5, alreadyFinished: 0, notFound: 0, failed: 0 },
    })
    const outcomes = await queue('GET', `/v2/workflows/bulkActions/${actionId}/outcomes?count=2`)
    expect(outcomes.body).toMatchObject({
      outcomes: ids.slice(0, 2).map((workflowRunId) => ({ workflowRunId, outcome: 'cancelled' })),
      cursor: expect.any(String),
    })
    expect(await statesOf([...ids, kept])).toEqual([...ids.map(() => 'RUN_CANCELED'), 'RUN_STARTED'])
    const listed = await queue('GET', '/v2/workflows/bulkActions?count=1')
    expect(listed.body).toMatchObject({ bulkActions: [{ actionId }] })

    const reported = await queue('DELETE', '/v2/workflows/runs', {
      workflowRunIds: [kept, ids[0], 'wfr_unknown'],
      report: true,
    })
    expect(reported.body).toMatchObject({
      cancelled: 1,
      outcomes: { cancelled: 1, alreadyFinished: 1, notFound: 1, failed: 0 },
    })
  })

  it('ends a run for good: its request is aborted, nothing is delivered again, late steps are refused', async () => {
    let arrivals = 0
    const app = await host({
      '/hangs': {
        route: async (context) =>
          context.run('hangs', async () => {
            arrivals++
            await new Promise(() => undefined)
          }),
      },
      '/other': { route: async (context) => context.run('one', () => 'fine') },
    })
    const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/hangs`, retries: 5, retryDelay: '1' })
    await waitFor(() => arrivals === 1, { what: 'the step to begin' })
    const ended = await service.homeport.queue('DELETE', `/v2/workflows/runs/${workflowRunId}`)
    expect(ended).toMatchObject({ status: 200, body: { workflowState: 'RUN_CANCELED' } })
    await waitFor(() => app.aborted() === 1, { what: 'the request in flight to be aborted' })
    const late = await service.homeport.queue('POST', '/v2/batch', [
      {
        destination: `${app.url}/hangs`,
        headers: {
          'Upstash-Workflow-RunId': workflowRunId,
          'Upstash-Workflow-Url': `${app.url}/hangs`,
          'Upstash-Workflow-Init': 'false',
          'Upstash-Workflow-Sdk-Version': '1',
        },
        body: JSON.stringify({ stepId: 1, stepName: 'hangs', stepType: 'Run', out: '1', concurrent: 1 }),
      },
    ])
    expect(late).toMatchObject({ status: 400, body: { error: expect.stringContaining('RUN_CANCELED') } })
    // Another run completes meanwhile: a pending delivery of the cancelled run would have arrived too.
    expect(await resultOf(`${app.url}/other`)).toBe('fine')
    expect(arrivals).toBe(1)
    expect(await statesOf([workflowRunId])).toEqual(['RUN_CANCELED'])
  })
})
