import type { WorkflowContext } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { useWorkflows } from '../testing/suite.js'

describe('a step that cannot be accepted', () => {
  const suite = useWorkflows()
  const { host } = suite

  const wrong: Readonly<Record<string, RegExp>> = {
    '/body': /\[0]\.body.*must be a string/,
    '/delay': /send a duration such as/,
    '/timeout': /send a duration of at most/,
    '/invoked-id': /Upstash-Workflow-RunId is .*order#17/,
  }
  const invoked = { routeFunction: async () => 1, options: {}, workflowId: 'other' }

  it.each(Object.entries(wrong))('fails the run and says why: %s', async (path, problem) => {
    const app = await host({
      '/body': {
        // biome-ignore lint/suspicious/noExplicitAny: a program without types may do this
        route: (context) => context.call('call', { url: 'http://127.0.0.1:9/', method: 'POST', body: 5 as any }),
      },
      '/delay': { route: async (context) => context.sleep('nap', 'soon' as never) },
      '/timeout': { route: (context) => context.waitForEvent('wait', 'event', { timeout: 'soon' as never }) },
      '/invoked-id': {
        route: (context) => context.invoke('other', { workflow: invoked, body: 1, workflowRunId: 'order#17' }),
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}${path}`, retries: 0 })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    expect(JSON.stringify(run.steps.at(-1))).toMatch(problem)
  })
})

describe('a step that is too large', () => {
  const suite = useWorkflows({ queueBodyLimitBytes: 200_000 })
  const { host } = suite

  const large = 'x'.repeat(300_000)
  let made = 0
  const makeLarge = () => {
    made++
    return large
  }
  const routes: Readonly<Record<string, (context: WorkflowContext) => Promise<unknown>>> = {
    '/run': (context) => context.run('pay', makeLarge),
    '/parallel': (context) => Promise.all([context.run('pay', makeLarge), context.run('other', () => 1)]),
    '/call': (context) => context.call('pay', { url: 'http://127.0.0.1:9/', method: 'POST', body: large }),
  }

  it.each(Object.entries(routes))('fails the run at once and says how large it is: %s', async (path, route) => {
    made = 0
    const app = await host({ [path]: { route } })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}${path}`,
      retries: 3,
      retryDelay: '0',
    })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    const failed = JSON.stringify(run.steps.at(-1))
    expect(failed).toMatch(/request body of 30\d{4} bytes is larger than the limit of 200000 bytes/)
    expect(failed).toContain('store large values elsewhere')
    expect(made).toBe(path === '/call' ? 0 : 1)
  })

  it('fails the run at once if the return value of the program is too large', async () => {
    let returned = 0
    const route = async (context: WorkflowContext): Promise<unknown> => {
      await context.run('first', () => 1)
      returned++
      return large
    }
    const app = await host({ '/return': { route } })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/return`,
      retries: 3,
      retryDelay: '0',
    })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    const failed = JSON.stringify(run.steps.at(-1))
    expect(failed).toMatch(/request body of 30\d{4} bytes is larger than the limit of 200000 bytes/)
    expect(failed).toContain('returns its result in one request')
    expect(returned).toBe(1)
  })

  it('is refused if a wait or an invocation would keep too much beside its payload', async () => {
    const { service } = suite
    const url = 'http://127.0.0.1:9/w'
    const headers = { ...service.auth, 'Upstash-Workflow-RunId': 'any', 'Upstash-Workflow-Url': url }
    const send = async (path: string, body: object, more: object = {}) => {
      const init = { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) }
      const answer = await fetch(service.url + path, init)
      return [answer.status, await answer.text()]
    }
    const refusal = (what: string) => [412, expect.stringContaining(`${what}, with its names and URLs, is`)]
    const step = { stepId: 1, stepName: 'x'.repeat(70_000), concurrent: 1 }
    expect(await send('/v2/wait/event', { url, step })).toEqual(refusal('The step of the wait'))
    const timeoutHeaders = { X: ['x'.repeat(70_000)] }
    expect(await send('/v2/wait/event', { url, step: {}, timeoutHeaders })).toEqual(refusal('The step of the wait'))
    const invoke = { 'Upstash-Workflow-Init': 'true', 'Upstash-Workflow-Invoke': 'true' }
    const invocation = { workflowRunId: 'parent', workflowUrl: url, step, body: '' }
    expect(await send(`/v2/publish/${url}`, invocation, invoke)).toEqual(refusal('The step of the invocation'))
  })

  it('is distinguished from a trigger that is too large, and from a body without a length', async () => {
    const { service } = suite
    await expect(service.client.trigger({ url: 'http://127.0.0.1:9/', body: large })).rejects.toMatchObject({
      status: 413,
      message: expect.stringContaining('larger than the limit of 200000 bytes'),
    })
    const step = { 'upstash-workflow-runid': 'wfr_1', 'upstash-workflow-init': 'false' }
    const send = async (path: string, headers: object, body: string | ReadableStream) => {
      const init = { method: 'POST', headers: { ...service.auth, ...headers }, body, duplex: 'half' }
      return (await fetch(service.url + path, init as RequestInit)).status
    }
    const items = JSON.stringify([{ destination: 'http://127.0.0.1:9/', headers: step, body: large }])
    expect(await send('/v2/publish/http://127.0.0.1:9/', step, large)).toBe(412)
    expect(await send('/v2/publish/http://127.0.0.1:9/', {}, large)).toBe(413)
    expect(await send('/v2/batch', {}, items)).toBe(412)
    expect(await send('/v2/batch', {}, new Blob([items]).stream())).toBe(413)
    expect(await send('/v2/batch', {}, items.replace('destination', 'goal'))).toBe(413)
  })
})

describe('texts that are not valid in a header of a delivery', () => {
  const suite = useWorkflows()
  const url = 'http://127.0.0.1:9/w'
  const batch = async (headers: Record<string, string>) => {
    const body = JSON.stringify([{ destination: url, headers: { 'Upstash-Workflow-RunId': 'r', ...headers } }])
    const answer = await fetch(`${suite.service.url}/v2/batch`, { method: 'POST', headers: suite.service.auth, body })
    return { status: answer.status, body: await answer.text() }
  }
  const refusal = (status: number) => ({ status, body: expect.stringContaining('not valid in an HTTP request') })
  const start = { 'Upstash-Workflow-Init': 'true', 'Upstash-Delay': '1d' }

  it('are refused as the id of a run', async () => {
    const { status, body } = await batch({ ...start, 'Upstash-Workflow-RunId': '订单-1' })
    expect([status, body]).toEqual([400, expect.stringContaining('Upstash-Workflow-RunId is \\"订单-1')])
  })

  it.each(['a#b', 'a?b', 'a%41', 'a\\b', '..'])(
    'are refused in a run id, as are characters that an SDK cannot put into a path: %s',
    async (runId) => {
      const { status, body } = await batch({ ...start, 'Upstash-Workflow-RunId': runId })
      expect([status, body]).toEqual([400, expect.stringContaining('any of / \\\\ ? # %')])
    },
  )

  it('are refused in a call and in a trigger', async () => {
    expect((await batch(start)).status).toBe(200)
    const call = { 'Upstash-Workflow-CallType': 'toCallback', 'Upstash-Callback': url }
    const named = { ...call, 'Upstash-Callback-Forward-Upstash-Workflow-StepName': '日本' }
    expect(await batch(named)).toMatchObject(refusal(412))
    const failing = { 'Upstash-Failure-Callback': url, 'Upstash-Failure-Callback-Forward-X': '日本' }
    expect(await batch({ ...start, ...failing, 'Upstash-Workflow-RunId': 'r2' })).toMatchObject(refusal(400))
  })
})

describe('an event id that cannot be stored', () => {
  const suite = useWorkflows()

  it.each([
    ['é'.repeat(1_001), 'is longer than 2000 bytes'],
    ['a\0b', 'U+0000'],
  ])('fails the run that would wait for it, or notify others of it', async (eventId, problem) => {
    const app = await suite.host({
      '/wait': { route: (context) => context.waitForEvent('wait', eventId) },
      '/notify': { route: (context) => context.notify('notify', eventId, 1) },
    })
    for (const path of ['wait', 'notify']) {
      const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/${path}`, retries: 0 })
      const run = await suite.service.ended(workflowRunId)
      expect([run.workflowState, JSON.stringify(run.steps.at(-1))]).toEqual([
        'RUN_FAILED',
        expect.stringContaining(problem),
      ])
    }
    await expect(suite.service.client.notify({ eventId, eventData: 1 })).rejects.toMatchObject({ status: 412 })
  })
})

const INSIDE = 'http://127.0.0.1:9/w'
const OUTSIDE = 'https://192.0.9.9/w'

describe('runs at forbidden addresses', () => {
  const suite = useWorkflows({ deliveryTargets: 'public' })

  const post = async (path: string, headers: Record<string, string> = {}, body?: unknown) => {
    const init = { method: 'POST', headers: { ...suite.service.auth, ...headers } }
    const answer = await fetch(suite.service.url + path, { ...init, ...(body ? { body: JSON.stringify(body) } : {}) })
    return { status: answer.status, body: (await answer.json()) as unknown }
  }
  const refusal = (status: number) => ({
    status,
    body: { error: expect.stringContaining('public addresses only') },
  })
  const later = { 'upstash-delay': '1d' }
  const headersOf = (runId: string, more: Record<string, string> = {}) => ({
    'upstash-workflow-runid': runId,
    'upstash-workflow-init': 'false',
    'upstash-workflow-url': OUTSIDE,
    'upstash-feature-set': 'LazyFetch,InitialBody,WF_TriggerOnConfig',
    ...more,
  })
  const start = { ...later, 'upstash-workflow-init': 'true' }

  it('are refused at the trigger, and so are their failure URLs', async () => {
    expect(await post(`/v2/trigger/${INSIDE}`, later)).toMatchObject(refusal(403))
    const callback = { 'Upstash-Failure-Callback': INSIDE }
    expect(await post(`/v2/trigger/${OUTSIDE}`, { ...later, ...callback })).toMatchObject(refusal(403))
    const many = [{ destination: OUTSIDE, headers: later }, { destination: INSIDE }]
    expect(await post('/v2/batch/trigger', {}, many)).toMatchObject(refusal(403))
    const item = { destination: INSIDE, headers: headersOf('r', { ...start, 'upstash-workflow-url': INSIDE }) }
    expect(await post('/v2/batch', {}, [item])).toMatchObject(refusal(403))
    expect((await suite.service.client.logs()).runs).toEqual([])
  })

  it('are not called by steps of other runs, which fail with the reason', async () => {
    const trigger = { destination: OUTSIDE, headers: headersOf('r', start) }
    expect((await post('/v2/batch', {}, [trigger])).status).toBe(200)
    const call = headersOf('r', { 'upstash-workflow-calltype': 'toCallback', 'upstash-callback': OUTSIDE })
    // Not 400: an SDK would take it for the end of its run.
    expect(await post('/v2/batch', {}, [{ destination: INSIDE, headers: call }])).toMatchObject(refusal(412))
    const wait = { url: OUTSIDE, timeoutUrl: INSIDE, step: { stepId: 1 } }
    expect(await post('/v2/wait/event', headersOf('r'), wait)).toMatchObject(refusal(412))
  })
})
