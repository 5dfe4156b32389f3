import { Client as QueueClient } from '@upstash/qstash'
import { serve as olderServe } from '@upstash/qstash/workflow'
import { WorkflowNonRetryableError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { type AppRoutes, pendingOf } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

const failing = async (): Promise<never> => {
  throw new Error('no good')
}

/** A workflow whose step throws an error of the requested length, and the errors that its failure function received. */
function thrower() {
  const received: string[] = []
  const route: AppRoutes[string] = {
    route: async (context) =>
      context.run('bad', () => {
        throw new Error('x'.repeat(Number(context.requestPayload)))
      }),
    options: {
      failureFunction: async ({ failResponse }) => void received.push(failResponse),
    },
  }
  return { received, route }
}

describe('how runs end', () => {
  const suite = useWorkflows()
  const { host } = suite

  it('fails a run when its retries are used up, and calls its failure function with the payload', async () => {
    const received: unknown[] = []
    const app = await host({
      '/fail': {
        route: async (context) => {
          await context.run('fine', () => 1)
          await context.run('bad', failing)
        },
        options: {
          failureFunction: async ({ context, failStatus, failResponse }) => {
            received.push([
              context.workflowRunId,
              context.requestPayload,
              failStatus,
              failResponse,
              context.headers.get('x-tenant'),
            ])
            return 'cleaned up'
          },
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/fail`,
      body: { order: 17 },
      headers: { 'x-tenant': 'blue' },
      retries: 1,
      retryDelay: '20',
    })
    const run = await suite.service.when(
      workflowRunId,
      'a failure callback',
      (seen) => seen.failureFunction?.state === 'CALLBACK_SUCCESS',
    )
    expect(received).toEqual([[workflowRunId, { order: 17 }, 500, 'no good', 'blue']])
    expect(run).toMatchObject({
      workflowState: 'RUN_FAILED',
      failureFunction: { failResponse: 'no good', failStatus: 500 },
    })
    expect(JSON.parse(run.failureFunction?.responseBody ?? '')).toEqual({ result: 'cleaned up' })
    const last = run.steps.at(-1)
    expect(last?.type).toBe('next')
    expect(last?.steps[0]).toMatchObject({ state: 'STEP_FAILED', stepName: 'bad' })
    expect(last?.steps[0]?.errors).toHaveLength(2)
    const { messages } = await suite.service.client.dlq.list()
    expect(messages).toMatchObject([
      { workflowRunId, responseStatus: 500, dlqId: run.dlqId, failureCallbackInfo: { state: 'CALLBACK_SUCCESS' } },
    ])
  })

  it('does not retry a non-retryable error', async () => {
    const app = await host({
      '/hopeless': {
        route: async (context) =>
          context.run('one', () => {
            throw new WorkflowNonRetryableError('hopeless')
          }),
        options: { failureFunction: async () => undefined },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/hopeless`, retries: 5 })
    const run = await suite.service.when(
      workflowRunId,
      'a failure callback',
      (seen) => seen.failureFunction?.state === 'CALLBACK_SUCCESS',
    )
    expect(run).toMatchObject({ workflowState: 'RUN_FAILED', failureFunction: { failResponse: 'hopeless' } })
    expect((await app.allDelivered()).map(({ status }) => status)).toEqual([489, 200])
  })

  it('shows no callback when the program has no failure function', async () => {
    const app = await host({ '/fail': { route: async (context) => context.run('bad', failing) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/fail`, retries: 0 })
    const run = await suite.service.when(
      workflowRunId,
      'no failure function',
      (seen) => seen.workflowState === 'RUN_FAILED' && !seen.failureFunction,
    )
    expect(run.dlqId).toBeDefined()
    expect((await app.allDelivered()).map(({ status }) => status)).toEqual([500, 200])
    // As declared: without a state that is null.
    const { messages } = await suite.service.client.dlq.list({ filter: { workflowRunId } })
    expect(messages).toHaveLength(1)
    expect(messages[0]).not.toHaveProperty('failureCallbackInfo')
  })

  it('retries a separate failure URL and reports its failure', async () => {
    const app = await host({
      '/fail': { route: async (context) => context.run('bad', failing) },
      '/alarm': async () => new Response('out of order', { status: 503 }),
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/fail`,
      failureUrl: `${app.url}/alarm`,
      retries: 1,
      retryDelay: '10',
    })
    const run = await suite.service.when(
      workflowRunId,
      'a failed callback',
      (seen) => seen.failureFunction?.state === 'CALLBACK_FAIL',
    )
    expect(run.failureFunction).toMatchObject({
      url: `${app.url}/alarm`,
      responseStatus: 503,
      responseBody: 'out of order',
    })
    const calls = (await app.allDelivered()).filter(({ path }) => path === '/alarm')
    expect(calls).toHaveLength(2)
    const { workflowRunId: id, sourceBody, dlqId } = JSON.parse(calls[0]?.body ?? '')
    expect([id, sourceBody, dlqId]).toEqual([workflowRunId, '', run.dlqId])
  })

  it('calls a failure function under its own flow-control key, and keeps the limits of the run', async () => {
    const app = await host({
      '/fail': async () => new Response('no', { status: 500 }),
      '/alarm': async () => new Response('{}'),
    })
    const limits = async (key: string) => {
      const answer = await fetch(`${suite.service.url}/v2/flowControl/${key}`, { headers: suite.service.auth })
      return ((await answer.json()) as { parallelismMax?: number }).parallelismMax
    }
    const triggered = await fetch(`${suite.service.url}/v2/trigger/${app.url}/fail`, {
      method: 'POST',
      headers: {
        ...suite.service.auth,
        'Upstash-Retries': '0',
        'Upstash-Flow-Control-Key': 'work',
        'Upstash-Flow-Control-Value': 'parallelism=5',
        'Upstash-Failure-Callback': `${app.url}/alarm`,
        'Upstash-Failure-Callback-Flow-Control-Key': 'alarms',
        'Upstash-Failure-Callback-Flow-Control-Value': 'parallelism=2',
      },
    })
    const { workflowRunId } = (await triggered.json()) as { workflowRunId: string }
    await suite.service.when(workflowRunId, 'a call of its failure function', ({ failureFunction }) => {
      return failureFunction?.state === 'CALLBACK_SUCCESS'
    })
    expect([await limits('work'), await limits('alarms')]).toEqual([5, 2])
  })

  it('sends the failing list to the failure function of an SDK that cannot use the payload', async () => {
    const received: unknown[] = []
    const route = olderServe<string>(
      // Only the first delivery has the retries of the options.
      async (context) => context.run('bad', failing),
      {
        qstashClient: new QueueClient({ baseUrl: suite.service.url, token: suite.service.token }),
        env: {},
        retries: 0,
        failureFunction: async (context, status, message) =>
          void received.push([context.requestPayload, status, message]),
      },
    )
    const app = await host({ '/older': async (request) => (await route(request)) ?? new Response() })
    // The program starts the run itself when it receives the payload.
    const target = `${suite.service.url}/v2/publish/${app.url}/older`
    expect((await fetch(target, { method: 'POST', headers: suite.service.auth, body: 'payload' })).status).toBe(200)
    await waitFor(() => received.length > 0, { what: 'the failure function' })
    expect(received).toEqual([['payload', 500, 'no good']])
  })

  it('shows the failed attempts and the next call of a failure function between retries', async () => {
    const app = await host({
      '/fail': { route: async (context) => context.run('bad', failing) },
      '/alarm': async () => new Response('out of order', { status: 503 }),
    })
    const settings = {
      'upstash-workflow-runid': 'wfr_tried',
      'upstash-retries': '0',
      'upstash-failure-callback': `${app.url}/alarm`,
      'upstash-failure-callback-retries': '1',
      'upstash-failure-callback-retry-delay': '3600000',
    }
    const headers = { ...suite.service.auth, ...settings }
    expect((await fetch(`${suite.service.url}/v2/trigger/${app.url}/fail`, { method: 'POST', headers })).status).toBe(
      200,
    )
    const workflowRunId = 'wfr_tried'
    const run = await suite.service.when(workflowRunId, 'a call of the failure function that has failed', (seen) =>
      Boolean(seen.failureFunction?.errors),
    )
    expect(run.failureFunction).toMatchObject({
      state: 'CALLBACK_INPROGRESS',
      errors: [{ status: 503 }],
      maxRetries: 1,
    })
    expect(run.failureFunction).toHaveProperty('nextDeliveryTime')
  })

  it('fails a run at once if its destination is not a workflow', async () => {
    const app = await host({ '/plain': async () => new Response('hello', { status: 200 }) })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/plain`, retries: 5 })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    expect(run.failureFunction?.failResponse).toBe('hello')
    const errors = run.steps.at(-1)?.steps[0]?.errors as { error: string }[]
    expect(errors.map(({ error }) => error)).toEqual([
      'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint',
    ])
  })

  it('drops other pending messages when a parallel branch fails', async () => {
    let slept = false
    const app = await host({
      '/branches': {
        route: async (context) => {
          await Promise.all([context.run('bad', failing), context.sleep('long', '1h')])
          slept = true
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/branches`, retries: 0 })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    await suite.service.when(workflowRunId, 'the end of its callback', (seen) => !seen.failureFunction)
    expect(await pendingOf(suite.store, workflowRunId)).toEqual([])
    expect(slept).toBe(false)
  })

  it('refuses steps for a run that has ended, as a whole request', async () => {
    const app = await host({ '/done': { route: async (context) => context.run('one', () => 1) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/done` })
    await suite.service.ended(workflowRunId)
    const step = {
      destination: `${app.url}/done`,
      headers: {
        'upstash-workflow-runid': workflowRunId,
        'upstash-workflow-init': 'false',
        'upstash-workflow-url': `${app.url}/done`,
      },
      body: '{"stepId":2}',
    }
    const post = (path: string, body: string, headers: Record<string, string> = {}) =>
      fetch(`${suite.service.url}${path}`, { method: 'POST', headers: { ...suite.service.auth, ...headers }, body })
    const batch = await post('/v2/batch', JSON.stringify([step, step]))
    expect([batch.status, await batch.json()]).toEqual([
      400,
      {
        error: `The workflow run "${workflowRunId}" has ended (RUN_SUCCESS), so no step can be added to it. Trigger a new run instead.`,
      },
    ])
    expect((await post(`/v2/publish/${app.url}/done`, step.body, step.headers)).status).toBe(400)
    expect(
      (await post(`/v2/wait/event`, JSON.stringify({ url: step.destination, step: {} }), step.headers)).status,
    ).toBe(400)
    const list = await fetch(`${suite.service.url}/v2/workflows/runs/${workflowRunId}`, { headers: suite.service.auth })
    expect(list.status).toBe(404)
  })

  it('accepts the end of a run twice', async () => {
    const app = await host({ '/done': { route: async (context) => context.run('one', () => 1) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/done` })
    await suite.service.ended(workflowRunId)
    const end = (runId: string) =>
      fetch(`${suite.service.url}/v2/workflows/runs/${runId}?cancel=false`, {
        method: 'DELETE',
        headers: suite.service.auth,
        body: '"other"',
      })
    expect((await end(workflowRunId)).status).toBe(200)
    expect(await suite.service.log(workflowRunId)).toMatchObject({ workflowRunResponse: '1' })
    expect((await end('wfr_nobody')).status).toBe(404)
  })
})

describe('how runs end with large responses', () => {
  const suite = useWorkflows({ queueBodyLimitBytes: 3 * 2 ** 20, responseKeepBytes: 100_000 })

  /** Fails a run with an error of this length. */
  const failWith = async (characters: number) => {
    const { received, route } = thrower()
    const app = await suite.host({ '/large': route })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/large`,
      body: characters,
      retries: 0,
    })
    const run = await suite.service.when(
      workflowRunId,
      'a failure callback',
      ({ failureFunction }) => failureFunction?.state === 'CALLBACK_SUCCESS',
    )
    return { received, run }
  }

  it('sends the whole response to the failure function, and shows its start in the log', async () => {
    // The response contains the text twice: as the message and at the top of the stack.
    const { received, run } = await failWith(1_200_000)
    expect(received.map(({ length }) => length)).toEqual([1_200_000])
    expect(run.failureFunction?.failResponse).toHaveLength(100_000)
    expect(run.steps.at(-1)?.steps[0]?.errors).toMatchObject([
      { error: 'x'.repeat(200), body: expect.stringMatching(/^.{100000}$/) },
    ])
  })

  it('sends an error with the start of the response if it is larger than the body limit', async () => {
    const { received } = await failWith(2_000_000)
    expect(received).toEqual([
      expect.stringMatching(/^the failing response is too large to be kept; it begins with .*"message":"xxx/),
    ])
    expect(received[0]?.length).toBeLessThan(3_000)
  })
})
