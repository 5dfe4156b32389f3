import { Client as QueueClient } from '@upstash/qstash'
import { serve as olderServe } from '@upstash/qstash/workflow'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import type { App } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

describe('triggering runs without the workflow client', () => {
  const suite = useWorkflows()
  const { host } = suite

  const post = async (path: string, body: string, headers: Record<string, string> = {}): Promise<[number, unknown]> => {
    const answer = await fetch(suite.service.url + path, {
      method: 'POST',
      headers: { ...suite.service.auth, ...headers },
      body,
    })
    return [answer.status, await answer.json()]
  }

  /** The unknown-SDK header of each request, first contacts first. */
  const contactsOf = ({ delivered }: App) =>
    delivered.map(({ headers }) => headers['upstash-workflow-unknown-sdk']).toSorted()

  it('triggers over plain HTTP with settings, without extra requests', async () => {
    const app = await host({
      '/rest': {
        route: async (context) => {
          await context.run('one', () => 1)
          return [context.requestPayload, context.headers.get('x-tenant'), context.labels]
        },
      },
    })
    const [status, triggered] = await post(`/v2/trigger/${app.url}/rest?upstash-workflow-runid=my-run`, '{"a":1}', {
      'Content-Type': 'application/json',
      'Upstash-Forward-X-Tenant': 'blue',
      'Upstash-Label': 'a,b',
      traceparent: TRACE,
    })
    expect([status, triggered]).toEqual([200, { workflowRunId: 'my-run', workflowCreatedAt: expect.any(Number) }])
    const run = await suite.service.ended('my-run')
    expect(run).toMatchObject({
      workflowState: 'RUN_SUCCESS',
      workflowRunResponse: '[{"a":1},"blue",["a","b"]]',
      labels: ['a', 'b'],
    })
    await expect.poll(() => contactsOf(app)).toEqual([undefined, undefined])
    expect((await app.allDelivered()).map(({ headers }) => headers.traceparent)).toEqual([TRACE, TRACE])
    expect(await post(`/v2/trigger/${app.url}/rest`, '', { 'Upstash-Workflow-RunId': 'my-run' })).toEqual([
      200,
      { ...(triggered as object), deduplicated: true },
    ])
  })

  it.each(['Upstash-Workflow-Unknown-Sdk', 'Upstash-Forward-Upstash-Workflow-Unknown-Sdk'])(
    'makes a first contact when a trigger over plain HTTP asks for it with %s',
    async (name) => {
      const app = await host({ '/asked': { route: async (context) => context.run('one', () => 1) } })
      const [, triggered] = await post(`/v2/trigger/${app.url}/asked`, '', { [name]: 'true' })
      const { workflowRunId } = triggered as { workflowRunId: string }
      expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowState: 'RUN_SUCCESS' })
      await expect.poll(() => contactsOf(app)).toEqual(['true', undefined, undefined])
    },
  )

  it('makes a first contact for a client with an unknown SDK, and keeps the settings of the trigger', async () => {
    const app = await host({
      '/unknown': {
        route: async (context) => {
          const one = await context.run('one', () => 1)
          return [context.requestPayload, one, context.headers.get('x-tenant'), context.label]
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/unknown`,
      body: '“quotes”',
      headers: { 'x-tenant': 'blue', 'Upstash-Workflow-Unknown-Sdk': 'true' },
      retries: 0,
      label: 'shop',
    })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({
      workflowState: 'RUN_SUCCESS',
      workflowRunResponse: '["“quotes”",1,"blue","shop"]',
    })
    await expect.poll(() => contactsOf(app)).toEqual(['true', undefined, undefined])
  })

  it('checks the SDK again when a run that failed without one is restarted', async () => {
    let answers = new Response('a page')
    const app = await host({ '/updated': async () => answers.clone() })
    const [, triggered] = await post(`/v2/trigger/${app.url}/updated`, '')
    const { dlqId } = await suite.service.ended((triggered as { workflowRunId: string }).workflowRunId)
    const [, again] = await post(`/v2/workflows/dlq/restart/${dlqId}`, '')
    const failed = await suite.service.ended((again as { workflowRunId: string }).workflowRunId)
    expect(failed).toMatchObject({ workflowState: 'RUN_FAILED' })
    answers = new Response('', { headers: { 'Upstash-Workflow-Sdk': 'v1.3.2' } })
    const [, last] = await post(`/v2/workflows/dlq/restart/${failed.dlqId}`, '')
    const { workflowRunId } = last as { workflowRunId: string }
    const silent = await suite.service.when(
      workflowRunId,
      'a run without a next step',
      ({ because }) => because?.[0]?.kind === 'no-step',
    )
    expect(silent.workflowState).toBe('RUN_STARTED')
  })

  it.each<Record<string, string>>([{}, { 'Upstash-Failure-Callback': '' }])(
    'calls the failure function of a run that was triggered over plain HTTP with %o',
    async (headers) => {
      const received: string[] = []
      const app = await host({
        '/bad': {
          route: async (context) =>
            context.run('bad', () => {
              throw new Error('bad')
            }),
          options: { failureFunction: async ({ failResponse }) => void received.push(failResponse) },
        },
      })
      const [, triggered] = await post(`/v2/trigger/${app.url}/bad`, 'x', { 'Upstash-Retries': '0', ...headers })
      const { workflowRunId } = triggered as { workflowRunId: string }
      await suite.service.when(workflowRunId, 'a callback', (run) => run.failureFunction?.state === 'CALLBACK_SUCCESS')
      expect(received).toEqual(['bad'])
    },
  )

  it('calls the failure callback that an old SDK names with a call if the result cannot be delivered', async () => {
    const received: unknown[] = []
    const app = await host({
      '/old': async ({ headers }) =>
        headers.has('upstash-workflow-callback')
          ? new Response('cannot', { status: 500 })
          : new Response('', { headers: { 'Upstash-Workflow-Sdk-Version': '1' } }),
      '/third': async () => new Response('answer'),
      '/failed': async (request) => {
        received.push([request.headers.get('upstash-workflow-is-failure'), await request.json()])
        return new Response('')
      },
    })
    const ofRun = (init: boolean) => ({
      'upstash-workflow-init': String(init),
      'upstash-workflow-runid': 'wfr_old',
      'upstash-workflow-url': `${app.url}/old`,
    })
    const call = {
      'upstash-workflow-calltype': 'toCallback',
      'upstash-callback': `${app.url}/old`,
      'upstash-callback-retries': '0',
      'upstash-callback-feature-set': 'LazyFetch,InitialBody',
      'upstash-callback-forward-upstash-workflow-callback': 'true',
      'upstash-callback-failure-callback': `${app.url}/failed`,
      'upstash-callback-failure-callback-forward-upstash-workflow-is-failure': 'true',
    }
    const send = (destination: string, headers: object, body: string) =>
      post('/v2/batch', JSON.stringify([{ destination, headers, body }]))
    await send(`${app.url}/old`, ofRun(true), 'payload')
    expect(await send(`${app.url}/third`, { ...ofRun(false), ...call }, 'x')).toMatchObject([200, [{}]])
    const run = await suite.service.when(
      'wfr_old',
      'a callback',
      ({ failureFunction }) => failureFunction?.state === 'CALLBACK_SUCCESS',
    )
    expect(run.workflowState).toBe('RUN_FAILED')
    const sourceBody = Buffer.from('payload').toString('base64')
    expect(received).toEqual([['true', expect.objectContaining({ workflowRunId: 'wfr_old', status: 500, sourceBody })]])
  })

  it('fails a run whose destination does not name an SDK of 1.0 or newer', async () => {
    const app = await host({
      '/plain': async () => new Response('hello', { headers: { 'Upstash-Workflow-Sdk-Version': '1' } }),
    })
    const [, triggered] = await post(`/v2/trigger/${app.url}/plain`, '')
    const run = await suite.service.ended((triggered as { workflowRunId: string }).workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    expect(run.steps.at(-1)?.steps[0]?.errors).toMatchObject([
      { error: 'trigger rest api is only usable with sdk versions after v1.0.0 major version' },
    ])
  })

  it('triggers many runs with one request', async () => {
    const app = await host({ '/many': { route: async (context) => context.run('one', () => context.requestPayload) } })
    const items = Array.from({ length: 7 }, (_, index) => ({
      destination: `${app.url}/many`,
      body: `${index}`,
      headers: { 'Upstash-Label': `n${index}` },
    }))
    const [status, triggered] = await post('/v2/batch/trigger', JSON.stringify(items))
    expect(status).toBe(201)
    const runs = await Promise.all(
      (triggered as { workflowRunId: string }[]).map(({ workflowRunId }) => suite.service.ended(workflowRunId)),
    )
    expect(runs.map((run) => [run.workflowRunResponse, run.labels?.[0]])).toEqual(
      items.map((_, index) => [`${index}`, `n${index}`]),
    )
    expect((await post('/v2/batch/trigger', JSON.stringify([...items, { destination: 'nowhere' }])))[0]).toBe(400)
  })

  it('refuses more headers than a request may have', async () => {
    const named = (count: number) => Array.from({ length: count }, (_, index) => [`Upstash-Forward-A${index}`, 'x'])
    const trigger = (headers: object) =>
      post('/v2/batch/trigger', JSON.stringify([{ destination: 'http://127.0.0.1:9/many', headers }]))
    expect(await trigger(Object.fromEntries(named(501)))).toEqual([
      400,
      { error: expect.stringContaining('500 members') },
    ])
    const long = await trigger({ 'Upstash-Forward-A': 'x'.repeat(65_536) })
    expect(long).toEqual([412, { error: expect.stringContaining('at most 65536 bytes') }])
  })

  it('starts a run for a payload published to the endpoint', async () => {
    const app = await host({
      '/publish': {
        route: async (context) => context.run('one', () => [context.requestPayload, context.headers.get('x-tenant')]),
      },
    })
    const queue = new QueueClient({ baseUrl: suite.service.url, token: suite.service.token })
    await queue.publishJSON({
      url: `${app.url}/publish`,
      body: { a: 1 },
      headers: { 'x-tenant': 'blue' },
      label: ['nightly', 'shop'],
    })
    const answer = async () =>
      (
        await fetch(`${suite.service.url}/v2/workflows/logs?workflowUrl=${app.url}/publish`, {
          headers: suite.service.auth,
        })
      ).json()
    await expect.poll(answer).toMatchObject({
      runs: [{ workflowState: 'RUN_SUCCESS', workflowRunResponse: '[{"a":1},"blue"]', labels: ['nightly', 'shop'] }],
    })
  })

  it('serves SDKs that publish the start of a run and repeat their settings with each step', async () => {
    const bodies: string[] = []
    const seen: (string | null)[] = []
    const settings = { 'Upstash-Workflow-RunId': 'old-run', 'Upstash-Forward-X-Tenant': 'blue', 'Upstash-Retries': '0' }
    const app = await host({
      '/old': async (request) => {
        bodies.push(await request.text())
        seen.push(request.headers.get('x-tenant'))
        return new Response('{}', { headers: { 'Upstash-Workflow-Sdk-Version': '1' } })
      },
    })
    const url = `${app.url}/old`
    await post(`/v2/publish/${url}`, 'payload', {
      ...settings,
      'Upstash-Workflow-Init': 'true',
      'Upstash-Workflow-Url': url,
    })
    await waitFor(() => bodies.length === 1, { what: 'the first delivery' })
    const step = {
      ...settings,
      'Upstash-Forward-X-Tenant': 'red',
      'Upstash-Workflow-Init': 'false',
      'Upstash-Workflow-Url': url,
    }
    await post(`/v2/publish/${url}`, '{"stepId":1,"out":"1"}', step)
    await waitFor(() => bodies.length === 2, { what: 'the second delivery' })
    expect(JSON.parse(bodies[1] ?? '').map(({ body }: { body: string }) => atob(body))).toEqual([
      'payload',
      '{"stepId":1,"out":"1"}',
    ])
    expect(seen).toEqual(['blue', 'red'])
  })

  it('hides the workflow from third parties, even if an older SDK forwards its version with a call', async () => {
    const called: Headers[] = []
    const results: unknown[] = []
    const app = await host({
      '/third': async (request) => {
        called.push(request.headers)
        return Response.json('answer')
      },
      '/older': async (request) => (await route(request)) ?? new Response(),
    })
    const route = olderServe<string>(
      async (context) => {
        results.push(await context.call('ask', `${app.url}/third`, 'POST', 'question', { 'x-mine': 'yes' }))
      },
      { qstashClient: new QueueClient({ baseUrl: suite.service.url, token: suite.service.token }), env: {} },
    )
    expect((await post(`/v2/publish/${app.url}/older`, 'payload'))[0]).toBe(200)
    await waitFor(() => results.length > 0, { what: 'the answer of the third party' })
    expect([results[0], called[0]?.get('x-mine')]).toEqual(['answer', 'yes'])
    expect([...(called[0]?.keys() ?? [])].filter((name) => name.startsWith('upstash-workflow'))).toEqual([])
  })

  it('refuses invalid run ids and settings', async () => {
    const [noId] = await post('/v2/trigger/https://example.com/w', '', { 'Upstash-Workflow-RunId': 'a/b' })
    expect(noId).toBe(400)
    const [bad, error] = await post('/v2/trigger/https://example.com/w', '', { 'Upstash-Retries': 'many' })
    expect([bad, error]).toEqual([400, { error: 'Upstash-Retries is "many"; send a whole number of 0 or more.' }])
    expect((await post('/v2/trigger/', ''))[0]).toBe(400)
    const group = await post('/v2/trigger/some-group', '')
    expect(group).toEqual([
      400,
      { error: expect.stringMatching(/^A run needs the URL of its workflow; found "some-group"/) },
    ])
  })

  it('accepts a URL that is percent-encoded as a whole', async () => {
    const url = 'http://127.0.0.1:9/encoded?a=1'
    const headers = { 'Upstash-Workflow-RunId': 'encoded', 'Upstash-Delay': '1h' }
    expect((await post(`/v2/trigger/${encodeURIComponent(url)}`, '', headers))[0]).toBe(200)
    expect(await suite.service.log('encoded')).toMatchObject({ workflowUrl: url })
  })
})
