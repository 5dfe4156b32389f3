import { WorkflowNonRetryableError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { pendingOf } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

/** A step that fails until `heal` is called. */
function fragile() {
  let broken = true
  let calls = 0
  return {
    heal: () => {
      broken = false
    },
    calls: () => calls,
    step: async (): Promise<string> => {
      calls++
      if (broken) throw new Error('still broken')
      return 'well'
    },
  }
}

describe('dead letters of runs', () => {
  const suite = useWorkflows()
  const { host } = suite
  const api = async (method: string, target: string, headers: Record<string, string> = {}, body?: string) => {
    const answer = await fetch(`${suite.service.url}/v2/workflows/dlq${target}`, {
      method,
      headers: { ...suite.service.auth, ...headers },
      ...(body !== undefined && { body }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const fail = async (url: string, more: object = {}) => {
    const { workflowRunId } = await suite.service.client.trigger({ url, retries: 0, ...more })
    const { dlqId } = await suite.service.ended(workflowRunId)
    return { workflowRunId, dlqId: dlqId ?? '' }
  }

  it('resumes a run where it failed, as a new run that keeps the finished steps', async () => {
    const weak = fragile()
    let before = 0
    const app = await host({
      '/resume': {
        route: async (context) => {
          const first = await context.run('first', () => ++before)
          const second = await context.run('second', weak.step)
          return [first, second, context.requestPayload, context.headers.get('x-tenant')]
        },
      },
    })
    const { workflowRunId, dlqId } = await fail(`${app.url}/resume`, {
      body: 'payload',
      headers: { 'x-tenant': 'blue' },
    })
    weak.heal()
    const { client } = suite.service
    const resumed = await client.dlq.resume({ dlqId })
    expect(resumed.workflowRunId).not.toBe(workflowRunId)
    const run = await suite.service.ended(resumed.workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS' })
    expect(JSON.parse(run.workflowRunResponse ?? '')).toEqual([1, 'well', 'payload', 'blue'])
    expect([before, weak.calls()]).toEqual([1, 2])
    expect((await client.dlq.list({ filter: { workflowRunId } })).messages).toEqual([])
    expect(await suite.service.log(workflowRunId)).toMatchObject({ workflowState: 'RUN_FAILED' })
  })

  it('delivers to a resumed run the calls of webhooks that it created before it failed', async () => {
    const weak = fragile()
    const addresses: string[] = []
    const app = await host({
      '/hooks': {
        route: async (context) => {
          const webhook = await context.createWebhook('create')
          await context.run('tell', () => void addresses.push(webhook.webhookUrl))
          await context.run('weak', weak.step)
          const answers: unknown[] = []
          for (const name of ['while dead', 'while waiting']) {
            const { request } = await context.waitForWebhook(name, webhook, '1h')
            answers.push(await request?.text())
          }
          const { eventData } = await context.waitForEvent('event', 'event')
          return [...answers, eventData]
        },
      },
    })
    const { workflowRunId, dlqId } = await fail(`${app.url}/hooks`)
    const [address = ''] = addresses
    const call = async (body: string) => (await fetch(address, { method: 'POST', body })).status
    expect(await call('one')).toBe(200)
    weak.heal()
    const { client } = suite.service
    const resumed = await client.dlq.resume({ dlqId })
    await suite.service.when(
      resumed.workflowRunId,
      'the second wait',
      ({ because }) => because?.[0]?.kind === 'webhook',
    )
    expect(await call('two')).toBe(200)
    await suite.service.when(resumed.workflowRunId, 'the last wait', ({ because }) => because?.[0]?.kind === 'event')
    await client.notify({ eventId: 'event', eventData: 'three', workflowRunId })
    const run = await suite.service.ended(resumed.workflowRunId)
    expect(JSON.parse(run.workflowRunResponse ?? '')).toEqual(['one', 'two', 'three'])
    expect(await call('late')).toBe(404)
  })

  it('ends the wait of a resumed run by the event that came while it was a dead letter', async () => {
    const weak = fragile()
    let letGo = (): void => undefined
    const isWaiting = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const app = await host({
      '/branches': {
        route: async (context) => {
          const [waited, second] = await Promise.all([
            context.waitForEvent('wait', 'while-dead', { timeout: '1h' }),
            context.run('weak', () => isWaiting.then(weak.step)),
          ])
          return [waited.eventData, waited.timeout, second]
        },
      },
    })
    const { client, ended, when } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/branches`, retries: 0 })
    await when(workflowRunId, 'the wait', ({ because }) => because?.some(({ kind }) => kind === 'event') ?? false)
    letGo()
    const { dlqId = '' } = await ended(workflowRunId)
    for (const eventData of ['first', 'second'])
      await client.notify({ eventId: 'while-dead', eventData, workflowRunId })
    weak.heal()
    const resumed = await client.dlq.resume({ dlqId })
    const run = await ended(resumed.workflowRunId)
    expect(JSON.parse(run.workflowRunResponse ?? '')).toEqual(['first', false, 'well'])
  })

  it('restarts a run from its payload, with other retries on request', async () => {
    const weak = fragile()
    let before = 0
    const app = await host({
      '/restart': {
        route: async (context) => {
          await context.run('first', () => ++before)
          return context.run('second', weak.step)
        },
      },
    })
    const { dlqId } = await fail(`${app.url}/restart`, { body: 'payload', label: 'a' })
    weak.heal()
    const { workflowRuns } = await suite.service.client.dlq.restart([dlqId], { retries: 7 })
    const run = await suite.service.ended(workflowRuns[0]?.workflowRunId ?? '')
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', labels: ['a'] })
    expect(run.steps[0]?.steps[0]).toMatchObject({ out: 'payload', retries: 7 })
    expect(before).toBe(2)
    expect(await api('POST', `/restart/${dlqId}`)).toMatchObject({ status: 404 })
  })

  it('restarts a run under another flow-control key without the limits of the previous key', async () => {
    const app = await host({ '/fail': async () => new Response('no', { status: 500 }) })
    const { dlqId } = await fail(`${app.url}/fail`, { flowControl: { key: 'before', parallelism: 3 } })
    expect(await api('POST', `/restart/${dlqId}`, { 'Upstash-Flow-Control-Key': 'after' })).toMatchObject({
      status: 200,
    })
    const answer = await fetch(`${suite.service.url}/v2/flowControl/after`, { headers: suite.service.auth })
    expect(await answer.json()).toMatchObject({ flowControlKey: 'after', parallelismMax: 0 })
  })

  it('lists by every filter, in both orders, page by page', async () => {
    const app = await host({ '/list': { route: async (context) => context.run('bad', fragile().step) } })
    const url = `${app.url}/list`
    const runs = []
    for (const label of ['one', 'two', 'two']) runs.push(await fail(url, { label }))
    const ids = runs.map((run) => run.dlqId)
    const list = async (query: string): Promise<string[]> => {
      const { status, body } = await api('GET', `?workflowUrl=${encodeURIComponent(url)}&${query}`)
      expect(status).toBe(200)
      return (body.messages as { dlqId: string }[]).map((letter) => letter.dlqId)
    }
    const prefix = runs[0]?.workflowRunId.slice(0, -2)
    expect(await list('')).toEqual(ids)
    expect(await list('order=latestFirst')).toEqual([...ids].reverse())
    expect(await list('label=two')).toEqual(ids.slice(1))
    expect(await list(`workflowRunId=${prefix}`)).toEqual(ids.slice(0, 1))
    expect(await list('responseStatus=500')).toEqual(ids)
    expect(await list('responseStatus=404')).toEqual([])
    expect(await list('failureFunctionState=CALLBACK_CANCELED')).toEqual([])
    expect(await list('workflowCreatedAt=17')).toEqual([])
    expect(await list('toDate=17')).toEqual([])
    const first = await api('GET', `?workflowUrl=${encodeURIComponent(url)}&count=2`)
    expect(first.body.messages).toHaveLength(2)
    expect(await list(`cursor=${first.body.cursor}`)).toEqual(ids.slice(2))
    const viaQueue = await suite.service.client.dlq.list({
      filter: { label: 'two', workflowRunId: runs[1]?.workflowRunId ?? '' },
    })
    expect(viaQueue.messages.map((letter) => letter.dlqId)).toEqual([ids[1]])
    expect(await api('GET', `/${ids[0]}`)).toMatchObject({ status: 200, body: { dlqId: ids[0], responseStatus: 500 } })
    // Clients send parameters to reads that this server does not know; what changes something refuses them.
    expect(await api('GET', '?later=x&trimBody=0')).toMatchObject({ status: 200 })
  })

  it('shows payloads and headers, redacts values, and limits the size of a page', async () => {
    const app = await suite.host({ '/large': async () => new Response('no workflow', { status: 200 }) })
    const { client, ended } = suite.service
    const settings = {
      url: `${app.url}/large`,
      label: 'large',
      retries: 0,
      headers: { 'x-mine': 'yes', 'x-secret': 's' },
    }
    const redact = { header: ['x-secret'] }
    for (const body of ['small', 'l'.repeat(9 * 2 ** 20), 'small']) {
      await ended((await client.trigger({ ...settings, body, redact })).workflowRunId)
    }
    const filter = { label: 'large' }
    const first = await client.dlq.list({ filter })
    expect(first.messages.map(({ body }) => body)).toEqual(['small'])
    const redacted = [expect.stringMatching(/^REDACTED:/)]
    expect(first.messages[0]?.header).toMatchObject({ 'X-Mine': ['yes'], 'X-Secret': redacted })
    const second = await client.dlq.list({ filter, cursor: first.cursor ?? '' })
    expect(second.messages.map(({ body }) => body.length)).toEqual([9 * 2 ** 20])
    const third = await client.dlq.list({ filter, cursor: second.cursor ?? '' })
    expect(third.messages.map(({ body }) => body)).toEqual(['small'])
    expect(third.cursor).toBeUndefined()
    expect((await client.dlq.delete({ filter })).deleted).toBe(3)
  })

  it('resumes, restarts and deletes in bulk by filter, and refuses a misspelt filter first', async () => {
    const app = await host({ '/bulk': { route: async (context) => context.run('bad', fragile().step) } })
    const url = `${app.url}/bulk`
    for (let made = 0; made < 3; made++) await fail(url, { label: 'bulk' })
    expect(await api('POST', '/restart?labeel=bulk')).toMatchObject({ status: 400 })
    expect(await api('DELETE', '?labeel=bulk')).toMatchObject({ status: 400 })
    expect(await api('DELETE', '?fromDate=1700000000')).toMatchObject({
      status: 400,
      body: { error: 'fromDate is 1700000000, which looks like seconds; send Unix milliseconds.' },
    })
    const { client } = suite.service
    const first = await client.dlq.resume({ filter: { label: 'bulk' }, count: 2 })
    expect(first.workflowRuns).toHaveLength(2)
    const rest = await client.dlq.restart({ filter: { label: 'bulk' }, count: 2, cursor: first.cursor ?? '' })
    expect([rest.workflowRuns.length, rest.cursor]).toEqual([1, undefined])
    for (const run of [...first.workflowRuns, ...rest.workflowRuns]) await suite.service.ended(run.workflowRunId)
    expect(await client.dlq.delete({ filter: { label: 'bulk' }, count: 2 })).toMatchObject({ deleted: 2 })
    expect(await client.dlq.delete({ filter: { label: 'bulk' } })).toEqual({ deleted: 1 })
    expect(await client.dlq.delete('17-17')).toEqual({ deleted: 0 })
  })

  it('retries a failed failure callback, and refuses to cancel one that has ended', async () => {
    let broken = true
    const app = await host({
      '/callback': {
        route: async (context) => context.run('bad', fragile().step),
        options: {
          failureFunction: async () => {
            if (broken) throw new Error('the failure function fails too')
            return 'cleaned up'
          },
        },
      },
    })
    const { service } = suite
    const { workflowRunId, dlqId } = await fail(`${app.url}/callback`)
    const letter = await api('GET', `/${dlqId}`)
    expect(letter.body).toMatchObject({ workflowRunId, body: '' })
    const isAt = (state: string) =>
      service.when(workflowRunId, state, (run) => run.failureFunction?.state === `CALLBACK_${state}`)
    await isAt('FAIL')
    expect(await api('DELETE', `/callback/${dlqId}`)).toMatchObject({ status: 400 })
    broken = false
    expect(await service.client.dlq.retryFailureFunction({ dlqId })).toMatchObject({ workflowRunId })
    await isAt('SUCCESS')
    expect(await api('POST', `/callback/${dlqId}`)).toMatchObject({ status: 400 })
    expect(await api('POST', '/callback/1-1')).toMatchObject({ status: 404 })
  })

  it('cancels a failure callback between retries', async () => {
    const app = await host({
      '/hopeless': {
        route: async (context) =>
          context.run('bad', () => {
            throw new WorkflowNonRetryableError('hopeless')
          }),
      },
      '/alarm': async () => new Response('out of order', { status: 503 }),
    })
    const { workflowRunId, dlqId } = await fail(`${app.url}/hopeless`, {
      failureUrl: `${app.url}/alarm`,
      retries: 1,
      retryDelay: '600000',
    })
    await waitFor(() => app.delivered.some(({ path }) => path === '/alarm'), { what: 'the first call' })
    expect(await api('DELETE', `/callback/${dlqId}`)).toMatchObject({ status: 200, body: { workflowRunId } })
    const run = await suite.service.log(workflowRunId)
    expect(run?.failureFunction?.state).toBe('CALLBACK_CANCELED')
    expect(await pendingOf(suite.store, workflowRunId)).toEqual([])
  })
})
