import { WorkflowNonRetryableError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { pendingOf, type SeenRun } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'
import * as runsRetention from '../transactions/runs-retention.js'

describe('run logs', () => {
  const suite = useWorkflows()
  const { host } = suite

  const get = async (path: string): Promise<[number, Record<string, unknown>]> => {
    const answer = await fetch(suite.service.url + path, { headers: suite.service.auth })
    return [answer.status, (await answer.json()) as Record<string, unknown>]
  }
  const idsOf = ([, body]: [number, Record<string, unknown>]) =>
    (body.runs as { workflowRunId: string }[]).map(({ workflowRunId }) => workflowRunId)

  it('are read by the SDK, with filters and page by page', async () => {
    const app = await host({ '/logged': { route: async (context) => context.run('one', () => 1) } })
    const url = `${app.url}/logged`
    const triggered = await suite.service.client.trigger(
      ['a', 'b', 'c'].map((label) => ({
        url,
        label: [label, 'all'],
        flowControl: { key: `key-${label}`, parallelism: 1 },
      })),
    )
    const [a, b, c] = triggered.map(({ workflowRunId }) => workflowRunId) as [string, string, string]
    await Promise.all([a, b, c].map((runId) => suite.service.ended(runId)))

    const first = await suite.service.client.logs({ filter: { label: 'all' }, count: 2 } as never)
    expect(first.runs.map(({ workflowRunId }) => workflowRunId)).toEqual([c, b])
    const second = await suite.service.client.logs({
      filter: { label: 'all' },
      count: 2,
      cursor: first.cursor,
    } as never)
    expect([second.runs.map(({ workflowRunId }) => workflowRunId), second.cursor]).toEqual([[a], undefined])

    expect(idsOf(await get('/v2/workflows/logs?label=a&label=b'))).toEqual([b, a])
    expect(idsOf(await get('/v2/workflows/logs?label=a,b&flowControlKey=key-a'))).toEqual([a])
    expect(idsOf(await get(`/v2/workflows/events?groupBy=workflowRunId&workflowUrl=${url}&state=RUN_SUCCESS`))).toEqual(
      [c, b, a],
    )
    expect(idsOf(await get(`/v2/workflows/logs?workflowUrl=${url}&state=RUN_FAILED`))).toEqual([])
    expect(
      idsOf(await get(`/v2/workflows/logs?host=${new URL(url).host}&path=/logged&callerIp=127.0.0.1&fromDate=1`)),
    ).toEqual([c, b, a])
    expect(idsOf(await get(`/v2/workflows/logs?label=all&toDate=1`))).toEqual([])
    const createdAt = (await suite.service.log(a))?.workflowRunCreatedAt ?? 0
    expect(idsOf(await get(`/v2/workflows/logs?workflowRuns=${a}@${createdAt},${b}@17`))).toEqual([a])
    const [step] = (await suite.service.log(b))?.steps[1]?.steps ?? []
    expect(idsOf(await get(`/v2/workflows/logs?messageId=${step?.messageId}`))).toEqual([b])
  })

  it('find a run by a URL with commas', async () => {
    const url = 'http://127.0.0.1:1/a,b?c=d,e'
    const { workflowRunId } = await suite.service.client.trigger({ url, delay: '1h' })
    const later = await suite.service.client.trigger({ url: `${url}/more`, delay: '1h' })
    const encoded = encodeURIComponent(url)
    expect(idsOf(await get(`/v2/workflows/logs?workflowUrl=${encoded}`))).toEqual([workflowRunId])
    expect(idsOf(await get(`/v2/workflows/logs?workflowUrl=${encoded},${encoded}/more`))).toEqual([
      later.workflowRunId,
      workflowRunId,
    ])
  })

  it('refuse invalid filters', async () => {
    expect((await get('/v2/workflows/logs?state=RUNNING'))[1]).toEqual({
      error: 'state must be one of RUN_STARTED, RUN_SUCCESS, RUN_FAILED, RUN_CANCELED; found "RUNNING".',
    })
    const unclear = ['fromDate=yesterday', 'fromDate=1700000000', 'workflowRuns=wfr_a', 'workflowRuns=wfr_a@now']
    for (const query of ['count=0', 'count=many', 'cursor=x', ...unclear]) {
      expect((await get(`/v2/workflows/logs?${query}`))[0], query).toBe(400)
    }
  })

  it('show no redacted values', async () => {
    const app = await host({ '/secret': { route: async (context) => context.run('one', () => 1) } })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/secret`,
      body: 'the secret payload',
      headers: { 'x-secret': 'the secret header' },
      redact: { body: true, header: ['x-secret'] },
    })
    await suite.service.ended(workflowRunId)
    const text = JSON.stringify(await get(`/v2/workflows/logs?workflowRunId=${workflowRunId}`))
    expect(text).not.toContain('the secret')
    // The payload once, and the header with each of two steps.
    expect(text.match(/REDACTED:[0-9a-f]{64}/g)).toHaveLength(3)
    expect((await app.allDelivered())[0]?.headers['x-secret']).toBe('the secret header')
  })

  it('show how each step was delivered, the limits of waits, and the input of an invoked run', async () => {
    const app = await suite.host({
      '/child': { route: async (context) => context.run('one', () => 1) },
      '/parent': {
        route: async (context) => {
          await context.waitForEvent('timed out', 'nobody', { timeout: '1s' })
          const workflow = { workflowId: 'child', routeFunction: async () => 1, options: {} } as never
          await context.invoke('ask', { workflow, body: { a: 1 }, headers: { 'x-child': 'yes' } })
          await context.waitForEvent('notified', 'somebody', { timeout: '90s' })
        },
      },
    })
    const { client, when, ended } = suite.service
    const settings = { retries: 2, retryDelay: '50', headers: { 'x-mine': 'yes' } }
    const { workflowRunId } = await client.trigger({ url: `${app.url}/parent`, ...settings })
    const stepOf = (run: SeenRun, name: string) =>
      run.steps.flatMap((group) => group.steps).find(({ stepName }) => stepName === name)
    const waiting = await when(workflowRunId, 'the second wait', (run) => stepOf(run, 'notified') !== undefined)
    const open = { waitEventId: 'somebody', waitTimeoutDuration: '90s', waitTimeout: false }
    const delivered = { retries: 2, retryDelay: '50', headers: { 'X-Mine': ['yes'] } }
    expect(stepOf(waiting, 'notified')).toMatchObject({ ...delivered, ...open, state: 'STEP_PROGRESS' })
    const notified = await client.notify({ eventId: 'somebody', eventData: 'hi' })
    expect(notified).toMatchObject([{ error: '', messageId: expect.stringMatching(/^msg_/) }])
    const run = await ended(workflowRunId)
    expect(stepOf(run, 'init')).toMatchObject(delivered)
    const over = { waitTimeoutDuration: '1s', waitTimeoutDeadline: expect.any(Number), waitTimeout: true }
    expect(stepOf(run, 'timed out')).toMatchObject({ ...delivered, ...over, waitEventId: 'nobody' })
    const { waitTimeoutDeadline } = stepOf(waiting, 'notified') ?? {}
    expect(stepOf(run, 'notified')).toMatchObject({ ...delivered, ...open, waitTimeoutDeadline, state: 'STEP_SUCCESS' })
    expect(stepOf(run, 'ask')).toMatchObject({
      ...delivered,
      invokedWorkflowUrl: `${app.url}/child`,
      invokedWorkflowRunBody: '{"a":1}',
      invokedWorkflowRunHeaders: { 'X-Child': ['yes'] },
    })
  })

  it('show the failure of a parallel branch on that branch only', async () => {
    let asked = 0
    const app = await host({
      '/third': async () => new Response('', { status: ++asked > 0 ? 500 : 200 }),
      '/branches': {
        route: async (context) =>
          Promise.all([
            context.call('call', { url: `${app.url}/third`, retries: 1, retryDelay: '3600000' }),
            context.waitForEvent('wait', 'nobody', { timeout: '1h' }),
            context.run('good', () => 'good'),
            context.run('bad', async () => {
              await waitFor(() => asked > 0, { what: 'the call' })
              throw new WorkflowNonRetryableError('no good')
            }),
          ]),
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/branches` })
    const { workflowState, steps } = await suite.service.ended(workflowRunId)
    expect([workflowState, steps.map(({ type }) => type)]).toEqual(['RUN_FAILED', ['sequential', 'parallel']])
    const [call, wait, good, bad] = steps[1]?.steps ?? []
    expect([call, wait, good]).toMatchObject([
      { stepName: 'call', state: 'STEP_CANCELED' },
      { stepName: 'wait', state: 'STEP_CANCELED' },
      { stepName: 'good', state: expect.stringMatching(/^STEP_(SUCCESS|CANCELED)$/) },
    ])
    expect([wait, good].filter((step) => step && 'errors' in step)).toEqual([])
    expect(bad).toMatchObject({
      stepName: 'bad',
      state: 'STEP_FAILED',
      errors: [{ status: 489, error: 'no good' }],
    })
  })

  it('show a failure on the call whose result the program did not accept', async () => {
    const asked = new Set<string>()
    let refuses = false
    const third = (name: string, answer: () => Promise<Response>) => async () => {
      asked.add(name)
      await waitFor(() => asked.size === 2, { what: 'both calls' })
      return answer()
    }
    const app = await host({
      '/quick': third('quick', async () => {
        refuses = true
        return new Response('answer')
      }),
      '/slow': third('slow', () => new Promise(() => undefined)),
      '/picky': {
        route: async (context) => {
          if (refuses) throw new Error('not now')
          const call = (name: string) => context.call(name, { url: `${app.url}/${name}` })
          return Promise.all([call('slow'), call('quick')])
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/picky`, retries: 0 })
    const { steps } = await suite.service.ended(workflowRunId)
    expect(steps.slice(1)).toMatchObject([
      {
        type: 'parallel',
        steps: [
          { stepName: 'slow', state: 'STEP_CANCELED' },
          { stepName: 'quick', state: 'STEP_FAILED', errors: [{ status: 500, error: 'not now' }] },
        ],
      },
    ])
  })

  it('show the end of an invoked run even after the run that invoked it has ended', async () => {
    let release: ((value: string) => void) | undefined
    const slow = (): Promise<string> => new Promise((resolve) => (release = resolve))
    const workflow = { workflowId: 'child', routeFunction: async () => 1, options: {} } as never
    const app = await host({
      '/child': { route: async (context) => context.run('slow', slow) },
      '/parent': {
        route: async (context) =>
          Promise.all([
            context.invoke('invoke', { workflow, body: 1 }),
            context.run('bad', async () => {
              await waitFor(() => release, { what: 'the child to begin' })
              throw new WorkflowNonRetryableError('no good')
            }),
          ]),
      },
    })
    const { client, ended, when } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/parent` })
    const statesOf = ({ steps }: SeenRun) => steps[1]?.steps.map(({ state }) => state)
    expect(statesOf(await ended(workflowRunId))).toEqual(['STEP_PROGRESS', 'STEP_FAILED'])
    release?.('late')
    const late = await when(workflowRunId, 'the end of its child', (run) => statesOf(run)?.[0] !== 'STEP_PROGRESS')
    expect(statesOf(late)).toEqual(['STEP_SUCCESS', 'STEP_FAILED'])
  })

  it('are cut to the requested length', async () => {
    const app = await host({ '/long': { route: async (context) => context.run('one', () => 'r'.repeat(50)) } })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/long`, body: 'p'.repeat(50) })
    await suite.service.ended(workflowRunId)
    const [, { runs }] = await get(`/v2/workflows/logs?workflowRunId=${workflowRunId}&trimBody=5`)
    expect(runs).toMatchObject([
      { workflowRunResponse: '"rrrr', steps: [{ steps: [{ out: 'ppppp' }] }, { steps: [{ out: '"rrrr' }] }] },
    ])
  })

  it('show a step that is retried, with its errors', async () => {
    const app = await host({
      '/bad': {
        route: async (context) =>
          context.run('bad step', () => {
            throw new Error('not now')
          }),
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({
      url: `${app.url}/bad`,
      retries: 3,
      retryDelay: '3600000',
    })
    const run = await suite.service.when(
      workflowRunId,
      'a retry',
      ({ steps }) => steps.at(-1)?.steps[0]?.state === 'STEP_RETRY',
    )
    const [next] = run.steps.at(-1)?.steps ?? []
    expect(next).toMatchObject({
      stepName: 'bad step',
      retries: 3,
      retryDelay: '3600000',
      errors: [{ status: 500, error: 'not now' }],
    })
    expect(next?.nextDeliveryTime).toBeGreaterThan(Date.now() + 3_000_000)
  })

  it('end with a readable error when a step is invalid', async () => {
    const app = await host({
      '/call': { route: async (context) => context.call('call', { url: 'ftp://example.com/x' }) },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/call`, retries: 3 })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    expect(JSON.stringify(run.steps.at(-1))).toContain('begins with http:// or https://')
  })

  it('show the list of an active run to the SDK', async () => {
    const app = await host({
      '/list': {
        route: async (context) => {
          await context.run('one', () => 1)
          await context.sleep('long', '1h')
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/list`, body: 'payload' })
    await suite.service.when(workflowRunId, 'the sleep', ({ steps }) => steps.at(-1)?.steps[0]?.stepType === 'SleepFor')
    const [status, list] = await get(`/v2/workflows/runs/${workflowRunId}`)
    const elements = list as unknown as { messageId: string; body: string; callType: string }[]
    expect(status).toBe(200)
    expect(elements.map(({ callType }) => callType)).toEqual(['step', 'step', 'step'])
    expect(atob(elements[0]?.body ?? '')).toBe('payload')
    expect(JSON.parse(atob(elements[1]?.body ?? ''))).toMatchObject({ stepId: 1, stepName: 'one', out: '1' })
    expect((await get('/v2/workflows/runs/wfr_nobody'))[0]).toBe(404)
  })

  it('are deleted some time after their runs have ended, never before', async () => {
    const app = await host({ '/old': { route: async (context) => context.run('one', () => 1) } })
    const ended = await suite.service.client.trigger({ url: `${app.url}/old` })
    const delayed = await suite.service.client.trigger({ url: `${app.url}/old`, delay: '1h' })
    await suite.service.ended(ended.workflowRunId)
    await suite.store.run(runsRetention.sweepRuns, {
      after: 0,
      finishedBefore: Date.now() + 1,
      now: Date.now(),
      limit: 10_000,
    })
    expect(await suite.service.log(ended.workflowRunId)).toBeUndefined()
    expect(await suite.service.log(delayed.workflowRunId)).toMatchObject({ workflowState: 'RUN_STARTED' })
    expect(await pendingOf(suite.store, delayed.workflowRunId)).toHaveLength(1)
  })

  it('are also a flat list of events, under both older names', async () => {
    const app = await host({
      '/flat': {
        route: async (context) => {
          await context.run('one', () => 1)
          await context.waitForEvent('wait', 'flat-event')
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/flat` })
    await suite.service.when(
      workflowRunId,
      'only the event to wait for',
      ({ because = [] }) => because.map(({ kind }) => kind).join() === 'event',
    )
    const events = async (path: string) => (await get(path))[1].events as { state: string; workflowRunId: string }[]
    const waiting = await events(`/v2/workflows/messageLogs?workflowRunId=${workflowRunId}`)
    expect(waiting.map(({ state }) => state).sort()).toEqual([
      'RUN_STARTED',
      'STEP_SUCCESS',
      'STEP_SUCCESS',
      'WAITER_ADDED',
    ])
    await suite.service.client.notify({ eventId: 'flat-event' })
    await suite.service.ended(workflowRunId)
    const done = await events(`/v2/workflows/events?workflowRunId=${workflowRunId}`)
    expect(done.map(({ state }) => state).sort()).toEqual([
      'RUN_STARTED',
      'RUN_SUCCESS',
      ...Array(3).fill('STEP_SUCCESS'),
    ])
    expect(done.at(0)).toMatchObject({ state: 'RUN_SUCCESS', workflowRunId })
    expect(
      (await get(`/v2/workflows/events?groupBy=workflowRunId&workflowRunId=${workflowRunId}`))[1],
    ).not.toHaveProperty('events')
  })
})
