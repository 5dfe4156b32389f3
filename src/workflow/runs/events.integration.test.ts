import { createWorkflow, serveMany } from '@upstash/workflow/cloudflare'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { pendingOf } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

describe('waiting for events', () => {
  const suite = useWorkflows()
  const { host } = suite

  const waiting = (eventId: string): Promise<unknown> =>
    waitFor(async () => (await suite.service.client.getWaiters({ eventId })).length > 0, {
      what: `a waiter for ${eventId}`,
    })

  it('resumes every run that waits for an event, with its data', async () => {
    const app = await host({
      '/wait': { route: async (context) => context.waitForEvent('wait', 'order 1/paid', { timeout: '1h' }) },
    })
    const triggered = await suite.service.client.trigger([{ url: `${app.url}/wait` }, { url: `${app.url}/wait` }])
    await waitFor(async () => (await suite.service.client.getWaiters({ eventId: 'order 1/paid' })).length === 2, {
      what: 'two waiters',
    })
    const page = async (headers: Record<string, string>) => {
      const target = `${suite.service.url}/v2/waiters/order%201/paid`
      const response = await fetch(target, { headers: { ...suite.service.auth, ...headers } })
      return {
        rows: (await response.json()) as unknown[],
        next: response.headers.get('homeport-cursor'),
        status: response.status,
      }
    }
    const all = await page({})
    expect([all.rows, all.next]).toEqual([[expect.any(Object), expect.any(Object)], null])
    const first = await page({ 'homeport-count': '1' })
    const second = await page({ 'homeport-count': '1', 'homeport-cursor': first.next ?? '' })
    expect([...first.rows, ...second.rows, second.next]).toEqual([...all.rows, null])
    expect((await page({ 'homeport-count': '1001' })).status).toBe(400)
    const notified = await suite.service.client.notify({ eventId: 'order 1/paid', eventData: { amount: 3 } })
    expect(notified.map((one) => (one as { workflowRunId?: string }).workflowRunId).sort()).toEqual(
      triggered.map(({ workflowRunId }) => workflowRunId).sort(),
    )
    for (const { workflowRunId } of triggered) {
      const run = await suite.service.ended(workflowRunId)
      expect(JSON.parse(run.workflowRunResponse ?? '')).toEqual({ eventData: { amount: 3 }, timeout: false })
      await waitFor(async () => (await pendingOf(suite.store, workflowRunId)).length === 0, {
        what: 'the last settlement',
      })
    }
    expect(await suite.service.client.notify({ eventId: 'order 1/paid', eventData: 'again' })).toEqual([])
  })

  it('ends all waits for an event, and shows as many as an answer may hold', async () => {
    const { client, url, auth } = suite.service
    const notStarted = { url: 'http://127.0.0.1:9/', delay: '1h' } as const
    const runs = await Promise.all(Array.from({ length: 3 }, () => client.trigger(notStarted)))
    const register = async (workflowRunId: string, stepId: number) => {
      const step = { stepId, stepName: 'x'.repeat(60_000), stepType: 'Wait' }
      return fetch(`${url}/v2/wait/crowd`, {
        method: 'POST',
        headers: { ...auth, 'upstash-workflow-runid': workflowRunId },
        body: JSON.stringify({ url: notStarted.url, timeout: '1h', step }),
      })
    }
    const [run = '', ...others] = runs.map(({ workflowRunId }) => workflowRunId)
    const waitsOf = (workflowRunId: string, count: number) =>
      Array.from({ length: count }, async (_, step) => (await register(workflowRunId, step)).status)
    const ofOthers = await Promise.all(others.flatMap((other) => waitsOf(other, 100)))
    expect(new Set(ofOthers)).toEqual(new Set([200]))
    // 8 MiB of waits.
    const ofRun = await Promise.all(waitsOf(run, 145))
    expect(new Set(ofRun)).toEqual(new Set([200, 412]))
    const refused = await register(run, 1_000)
    expect(await refused.json()).toEqual({ error: expect.stringContaining('too many waits') })
    const first = ofRun.indexOf(200)
    const [again, repeated] = [await register(run, first), await register(run, first)]
    expect(await again.json()).toEqual(await repeated.json())
    const shown = await client.notify({ eventId: 'crowd' })
    // 16 MiB of records that are a little longer than their steps.
    expect(shown.length).toBeGreaterThan(260)
    expect(shown.length).toBeLessThan(280)
    expect(await client.getWaiters({ eventId: 'crowd' })).toEqual([])
  })

  it('waits beside other branches', async () => {
    const app = await host({
      '/both': {
        route: async (context) => {
          const [event, ran] = await Promise.all([
            context.waitForEvent('wait', 'both', { timeout: '1h' }),
            context.run('run', () => 'ran'),
          ])
          return [event.eventData, ran]
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/both` })
    await waiting('both')
    await suite.service.client.notify({ eventId: 'both', eventData: 'now' })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '["now","ran"]' })
  })

  it('lets one step notify another run', async () => {
    const app = await host({
      '/wait': {
        route: async (context) => (await context.waitForEvent('wait', 'from-run', { timeout: '1h' })).eventData,
      },
      '/notify': {
        route: async (context) => (await context.notify('notify', 'from-run', { a: 1 })).notifyResponse.length,
      },
    })
    const waiter = await suite.service.client.trigger({ url: `${app.url}/wait` })
    await waiting('from-run')
    const notifier = await suite.service.client.trigger({ url: `${app.url}/notify` })
    expect(await suite.service.ended(notifier.workflowRunId)).toMatchObject({ workflowRunResponse: '1' })
    expect(await suite.service.ended(waiter.workflowRunId)).toMatchObject({ workflowRunResponse: '{"a":1}' })
  })

  it('deletes the wait of a cancelled run', async () => {
    const app = await host({
      '/wait': { route: async (context) => context.waitForEvent('wait', 'gone', { timeout: '1h' }) },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/wait` })
    await waiting('gone')
    expect((await suite.service.log(workflowRunId))?.steps[1]?.steps[0]).toMatchObject({
      waitEventId: 'gone',
      state: 'STEP_PROGRESS',
    })
    await suite.service.client.cancel(workflowRunId).catch(() =>
      fetch(`${suite.service.url}/v2/workflows/runs/${workflowRunId}`, {
        method: 'DELETE',
        headers: suite.service.auth,
      }),
    )
    expect(await suite.service.client.getWaiters({ eventId: 'gone' })).toEqual([])
    expect(await suite.service.client.notify({ eventId: 'gone' })).toEqual([])
    expect(await pendingOf(suite.store, workflowRunId)).toEqual([])
  })

  it('distinguishes ids that differ after a question mark, or look like run ids', async () => {
    const app = await host({
      '/ids': {
        route: async (context) => (await context.waitForEvent('wait', String(context.requestPayload))).eventData,
      },
    })
    const { client, url, auth } = suite.service
    const ids = ['order?1', 'order?2', 'wfr_nobody/shipped']
    const runs = await Promise.all(ids.map((body) => client.trigger({ url: `${app.url}/ids`, body })))
    const waiters = async (eventId: string) => (await client.getWaiters({ eventId })).length
    await waitFor(async () => (await Promise.all(ids.map(waiters))).join() === '1,1,1', { what: 'all waits' })
    const list = async (query: string) =>
      (await (await fetch(`${url}/v2/waiters?${query}`, { headers: auth })).json()) as {
        cursor?: string
        events: { eventId: string; waiting: number; atLeast: boolean; since: number; firstTimeout: number }[]
      }
    const page = await list('count=2')
    expect(page).toMatchObject({
      cursor: 'order?2',
      events: [{ eventId: 'order?1', waiting: 1 }, { eventId: 'order?2' }],
    })
    expect(page.events[0]?.firstTimeout).toBeGreaterThan(page.events[0]?.since ?? 0)
    const rest = await list(`cursor=${encodeURIComponent('order?2')}`)
    expect(rest).toEqual({ events: [expect.objectContaining({ eventId: 'wfr_nobody/shipped', atLeast: false })] })
    expect((await list('prefix=order')).events).toHaveLength(2)
    expect((await list('prefix=p')).events).toEqual([])
    const target = `${url}/v2/notify/order?2&qstash_token=${suite.service.token}&qstash%5Ftoken=x`
    const notified = await fetch(target, { method: 'POST', headers: auth, body: '"second"' })
    expect(await notified.json()).toMatchObject([{ workflowRunId: runs[1]?.workflowRunId }])
    for (const eventId of ['order?1', 'wfr_nobody/shipped']) {
      expect(await client.notify({ eventId, eventData: eventId })).toHaveLength(1)
    }
    const ended = await Promise.all(runs.map(({ workflowRunId }) => suite.service.ended(workflowRunId)))
    expect(ended.map(({ workflowRunResponse }) => workflowRunResponse)).toEqual([
      '"order?1"',
      '"second"',
      '"wfr_nobody/shipped"',
    ])
  })

  it('delivers webhook calls to the run that created the address, even early ones', async () => {
    const addresses: string[] = []
    const app = await host({
      '/hook': {
        route: async (context) => {
          const webhook = await context.createWebhook('create')
          await context.run('tell', () => void addresses.push(webhook.webhookUrl))
          const results: unknown[] = []
          for (const name of ['first', 'second', 'third', 'fourth']) {
            const { request } = await context.waitForWebhook(name, webhook, '1h')
            results.push([request?.url, request?.method, await request?.text(), request?.headers.get('x-from')])
          }
          return results
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/hook` })
    const address = await waitFor(() => addresses[0], { what: 'the address' })
    for (const body of ['one', 'two']) {
      // A proxy may call by another host name, and forward the original one.
      const proxy = { 'x-forwarded-host': new URL(address).host, 'x-forwarded-proto': 'http' }
      const asked = address.replace('127.0.0.1', body === 'two' ? 'localhost' : '127.0.0.1')
      const headers = { 'x-from': 'outside', ...(body === 'two' && proxy) }
      const answer = await fetch(`${asked}?n=${body}`, { method: 'PUT', body, headers })
      expect(answer.status).toBe(200)
    }
    // Senders verify an address with these methods before they use it.
    for (const method of ['HEAD', 'OPTIONS']) expect((await fetch(`${address}?n=0`, { method })).status).toBe(200)
    const run = await suite.service.ended(workflowRunId)
    expect(JSON.parse(run.workflowRunResponse ?? '')).toEqual([
      [`${address}?n=one`, 'PUT', 'one', 'outside'],
      [`${address}?n=two`, 'PUT', 'two', 'outside'],
      [`${address}?n=0`, 'HEAD', '', null],
      [`${address}?n=0`, 'OPTIONS', '', null],
    ])
    expect((await fetch(address, { method: 'POST' })).status).toBe(404)
  })

  it('keeps early calls only for addresses that the run created, up to a limit', async () => {
    const addresses: string[] = []
    const app = await host({
      '/early': {
        route: async (context) => {
          const webhook = await context.createWebhook('create')
          await context.run('tell', () => void addresses.push(webhook.webhookUrl))
          await context.waitForEvent('go', 'go', { timeout: '1h' })
          return (await context.waitForWebhook('first', webhook, '1h')).request?.text()
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/early` })
    const address = await waitFor(() => addresses[0], { what: 'the address' })
    await waiting('go')
    const send = async (url: string, body: string | Uint8Array<ArrayBuffer>) =>
      (await fetch(url, { method: 'POST', body })).status
    expect(await send(address.replace(/evt_.*/, 'evt_of-a-stranger'), 'x')).toBe(404)
    expect(await send(address.replace(/evt_.*/, 'go'), 'x')).toBe(404)
    const wrong = await fetch(`${address}x`, { method: 'POST' })
    expect([wrong.status, await wrong.text()]).toEqual([404, expect.stringContaining('webhook')])
    expect(await send(address, new Uint8Array(2 ** 20 + 1))).toBe(413)
    expect(await send(address, 'first')).toBe(200)
    const large = new Uint8Array(2 ** 20)
    const statuses: number[] = []
    while (statuses.at(-1) !== 429 && statuses.length < 20) statuses.push(await send(address, large))
    // Each takes a third more in base64, plus headers.
    expect(statuses).toEqual([...Array(11).fill(200), 429])
    await suite.service.client.notify({ eventId: 'go' })
    expect(await suite.service.ended(workflowRunId)).toMatchObject({ workflowRunResponse: '"first"' })
  })
})

describe('invoking another workflow', () => {
  const suite = useWorkflows()

  /** A parent that invokes a child, served by one endpoint. */
  const family = async (child: Parameters<typeof createWorkflow>[0]) => {
    const invoked = createWorkflow(child)
    const parent = createWorkflow(async (context) => {
      const { body, isCanceled, isFailed } = await context.invoke('child', {
        workflow: invoked,
        body: 'hi',
        retries: 0,
      })
      return { body, isCanceled, isFailed }
    })
    const { current, next } = suite.service.signingKeys()
    const env = {
      QSTASH_URL: suite.service.url,
      QSTASH_TOKEN: suite.service.token,
      QSTASH_CURRENT_SIGNING_KEY: current,
      QSTASH_NEXT_SIGNING_KEY: next,
    }
    const endpoint = serveMany({ parent, child: invoked })
    const serve = async (request: Request): Promise<Response> => endpoint.fetch(request, env)
    const app = await suite.host({ '/parent': serve, '/child': serve })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/parent` })
    const childRun = async () => {
      const answer = await fetch(`${suite.service.url}/v2/workflows/logs?workflowUrl=${app.url}/child`, {
        headers: suite.service.auth,
      })
      return ((await answer.json()) as { runs: { workflowRunId: string; invoker: object }[] }).runs[0]
    }
    return { workflowRunId, childRun }
  }
  const resultOf = async (runId: string): Promise<unknown> =>
    JSON.parse((await suite.service.ended(runId)).workflowRunResponse ?? 'null')

  it('returns its result', async () => {
    const { workflowRunId, childRun } = await family(async (context) =>
      context.run('one', () => `${String(context.requestPayload)} there`),
    )
    expect(await resultOf(workflowRunId)).toEqual({ body: 'hi there', isCanceled: false, isFailed: false })
    expect((await childRun())?.invoker).toMatchObject({ workflowRunId })
  })

  it('reports its failure', async () => {
    const { workflowRunId } = await family(async (context) =>
      context.run('one', () => {
        throw new Error('bad')
      }),
    )
    expect(await resultOf(workflowRunId)).toEqual({ isCanceled: false, isFailed: true })
  })

  it('fails if the run id of the invocation belongs to another run', async () => {
    const app = await suite.host({
      '/child': { route: async (context) => context.run('one', () => 1) },
      '/parent': {
        route: async (context) => {
          const workflow = { workflowId: 'child', routeFunction: async () => 1, options: {} } as never
          return context.invoke('ask', { workflow, body: 1, workflowRunId: 'taken' })
        },
      },
    })
    const taken = await suite.service.client.trigger({ url: `${app.url}/child`, workflowRunId: 'taken' })
    await suite.service.ended(taken.workflowRunId)
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/parent`, retries: 0 })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    expect(JSON.stringify(run.steps)).toContain('belongs to a run that this step did not invoke')
  })

  it('reports its cancel', async () => {
    const { workflowRunId, childRun } = await family(async (context) => context.sleep('long', '1h'))
    const child = await waitFor(childRun, { what: 'the child' })
    await fetch(`${suite.service.url}/v2/workflows/runs/${child.workflowRunId}`, {
      method: 'DELETE',
      headers: suite.service.auth,
    })
    expect(await resultOf(workflowRunId)).toEqual({ isCanceled: true, isFailed: false })
  })
})
