import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { useWorkflows } from '../testing/suite.js'

describe('the step protocol with the real SDK', () => {
  const suite = useWorkflows()
  const { host } = suite

  it('runs steps in order and returns the result', async () => {
    const app = await host({
      '/run': {
        route: async (context) => {
          const one = await context.run('one', () => `${String(context.requestPayload)}1`)
          const two = await context.run('two', () => `${one}2`)
          return context.run('three', () => `${two}3`)
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/run`,
      body: 'x',
      headers: { 'x-tenant': 'blue' },
      label: 'a',
    })
    const run = await suite.service.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"x123"', labels: ['a'] })
    expect(await app.allDelivered()).toHaveLength(4)
    for (const { headers } of app.delivered) {
      expect(headers).toMatchObject({
        'x-tenant': 'blue',
        'upstash-label': 'a',
        'upstash-workflow-runid': workflowRunId,
        'upstash-workflow-sdk-version': '1',
      })
    }
    expect(run.steps.map(({ type, steps }) => [type, steps[0]?.stepName, steps[0]?.out])).toEqual([
      ['sequential', 'init', 'x'],
      ['sequential', 'one', '"x1"'],
      ['sequential', 'two', '"x12"'],
      ['sequential', 'three', '"x123"'],
    ])
  })

  it('calls a third party once and returns any response', async () => {
    const seen: Record<string, string | null>[] = []
    const app = await host({
      '/third': async (request) => {
        seen.push({
          method: request.method,
          body: await request.text(),
          key: request.headers.get('x-key'),
          run: request.headers.get('upstash-workflow-runid'),
        })
        return new Response('{"teapot":"ü"}', { status: 418, headers: { 'content-type': 'application/json' } })
      },
      '/call': {
        route: async (context) => {
          const answer = await context.call('ask', {
            url: `${app.url}/third`,
            method: 'POST',
            body: JSON.stringify({ question: 1 }),
            headers: { 'x-key': 'k' },
          })
          return [answer.status, answer.body]
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/call`,
      headers: { 'x-tenant': 'blue' },
    })
    const run = await suite.service.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '[418,{"teapot":"ü"}]' })
    expect(seen).toEqual([{ method: 'POST', body: '{"question":1}', key: 'k', run: null }])
    const calls = (await app.allDelivered()).filter(({ path }) => path === '/call')
    expect(calls).toHaveLength(3)
    expect(
      calls.map(({ headers }) => [headers['upstash-workflow-callback'], headers['upstash-workflow-sdk-version']]),
    ).toEqual([
      [undefined, '1'],
      ['true', undefined],
      [undefined, '1'],
    ])
    expect(calls[1]?.headers['x-tenant']).toBe('blue')
    expect(run.steps[1]?.steps[0]).toMatchObject({
      stepType: 'Call',
      callUrl: `${app.url}/third`,
      callBody: '{"question":1}',
      callResponseStatus: 418,
    })
  })

  it('reports a response that is too large for a step', async () => {
    const app = await host({
      '/zeros': async () => new Response(Buffer.alloc(3 * 2 ** 20)),
      '/call': {
        route: async (context) => {
          const { status, body } = await context.call<{ message: string }>('ask', { url: `${app.url}/zeros` })
          return [status, body.message]
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/call`, retries: 0 })
    const run = await suite.service.ended(workflowRunId)
    const [status, message] = JSON.parse(run.workflowRunResponse ?? '[]') as [number, string]
    expect([status, message]).toEqual([0, expect.stringMatching(/^the response takes 2\d{7} bytes as a step/)])
  })

  it('retries a call and returns its result once, after the last attempt', async () => {
    let calls = 0
    const app = await host({
      '/flaky': async () => new Response('', { status: ++calls < 3 ? 500 : 200 }),
      '/call': {
        route: async (context) => {
          const answer = await context.call('ask', { url: `${app.url}/flaky`, retries: 5, retryDelay: '20' })
          return answer.status
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/call` })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '200' })
    expect(calls).toBe(3)
    expect((await app.allDelivered()).filter(({ path }) => path === '/call')).toHaveLength(3)
  })

  it('returns a non-retryable response, and the error of an unreachable third party', async () => {
    const app = await host({
      '/hopeless': async () => new Response('', { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } }),
      '/call': {
        route: async (context) => {
          const hopeless = await context.call('hopeless', { url: `${app.url}/hopeless`, retries: 5 })
          const nobody = await context.call('nobody', { url: 'http://127.0.0.1:9/', retries: 1, retryDelay: '10' })
          return [hopeless.status, nobody.status, (nobody.body as { message: string }).message]
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/call` })
    const { workflowRunResponse } = await suite.service.ended(workflowRunId)
    expect(JSON.parse(workflowRunResponse ?? '')).toEqual([489, 0, expect.stringContaining('refused')])
  })

  it('delivers each list only up to the element that causes the delivery', async () => {
    const app = await host({
      '/many': {
        route: async (context) => {
          await Promise.all(Array.from({ length: 10 }, (_, index) => context.run(`b${index}`, () => index)))
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/many` })
    await suite.service.ended(workflowRunId)
    const lists = (await app.allDelivered()).map(({ body, headers }) => ({
      last: JSON.parse(body).at(-1).messageId,
      id: headers['upstash-message-id'],
      length: JSON.parse(body).length,
    }))
    expect(lists).toHaveLength(21)
    for (const { last, id } of lists) expect(last).toBe(id)
    expect(lists.map(({ length }) => length).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 21 }, (_, index) => index + 1),
    )
  })

  it('retries a failing step and passes the number of retries', async () => {
    const tries: number[] = []
    const app = await host({
      '/retry': {
        route: async (context) =>
          context.run('flaky', () => {
            tries.push(context.retried)
            if (tries.length < 3) throw new Error('not yet')
            return 'at last'
          }),
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/retry`,
      retries: 5,
      retryDelay: '20',
    })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '"at last"' })
    expect(tries).toEqual([0, 1, 2])
  })

  it('moves 2 MB through a payload, a step and a call', async () => {
    // The SDK decodes base64 at 2 MB a second.
    const big = 'b'.repeat(2 * 1024 * 1024)
    const app = await host({
      '/echo': async (request) => new Response(await request.text(), { headers: { 'content-type': 'text/plain' } }),
      '/big': {
        route: async (context) => {
          const step = await context.run('step', () => context.requestPayload as string)
          const answer = await context.call('call', {
            url: `${app.url}/echo`,
            method: 'POST',
            body: step,
            retries: 3,
            retryDelay: '50',
          })
          return (answer.body as string).length
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/big`, body: big })
    await waitFor(() => app.delivered.filter(({ path }) => path === '/big').length === 4, {
      what: 'four deliveries',
      deadlineMs: 60_000,
    })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: String(big.length) })
  })

  it('starts a run only once for an id', async () => {
    const app = await host({ '/once': { route: async (context) => context.run('one', () => 1) } })
    const first = await suite.service.client.trigger({ url: `${app.url}/once`, workflowRunId: 'only-once' })
    await suite.service.ended(first.workflowRunId)
    const second = await suite.service.client.trigger({ url: `${app.url}/once`, workflowRunId: 'only-once' })
    expect(second).toEqual(first)
    expect(await app.allDelivered()).toHaveLength(2)
  })

  it('starts many runs with one request', async () => {
    const app = await host({ '/many': { route: async (context) => context.run('one', () => context.requestPayload) } })
    const items = Array.from({ length: 40 }, (_, index) => ({ url: `${app.url}/many`, body: { index } }))
    const triggered = await suite.service.client.trigger(items)
    const runs = await Promise.all(triggered.map(({ workflowRunId }) => suite.service.ended(workflowRunId)))
    expect(runs.map((run) => run.workflowRunResponse)).toEqual(items.map(({ body }) => JSON.stringify(body)))
  })
})
