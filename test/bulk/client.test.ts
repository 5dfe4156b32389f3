import type { WorkflowContext } from '@upstash/workflow'
import { beforeAll, expect, it, vi } from 'vitest'
import { type App, startApp } from '../../src/workflow/testing/harness.js'
import { atCleanup, waitFor } from '../support/index.js'
import { type Service, startService } from './service.js'

/** The cancel forms of the published clients (reference queue 5.2), over runs that the real SDK has started. */

let service: Service
let app: App
/** Callbacks that end hanging steps. */
const hanging = new Set<() => void>()
/** The ids of runs whose failure function was called. */
const failures: string[] = []
// The SDK reports failed and late steps, which these tests cause.
for (const method of ['warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined)

beforeAll(async () => {
  service = await startService()
  const sleeper = {
    route: async (context: WorkflowContext<unknown>) => {
      await context.run('first', () => 'done')
      await context.sleep('long', 3_600)
    },
  }
  const hang = {
    route: async (context: WorkflowContext<unknown>) => {
      await context.run('hang', () => new Promise<string>((resolve) => hanging.add(() => resolve('late'))))
    },
  }
  const fail = {
    route: async (context: WorkflowContext<unknown>) => {
      await context.run('fail', () => Promise.reject(new Error('as planned')))
    },
    options: {
      failureFunction: async ({ context }: { context: { workflowRunId: string } }) => {
        failures.push(context.workflowRunId)
      },
    },
  }
  const routes = { '/a': sleeper, '/a/more': sleeper, '/b': sleeper, '/hang': hang, '/fail': fail }
  app = await startApp(service.app, routes)
  atCleanup(() => app.close())
})

/** Triggers runs and waits until each sleeps. */
async function sleeping(count: number, path = '/a', label?: string): Promise<string[]> {
  const url = app.url + path
  const triggers = Array.from({ length: count }, () => ({ url, ...(label === undefined ? {} : { label }) }))
  const runs = await service.client.trigger(triggers)
  const ids = runs.map((run) => run.workflowRunId)
  for (const id of ids) {
    await waitFor(() => deliveriesOf(id) >= 2, { what: `run ${id} to reach its sleep` })
  }
  return ids
}

const deliveriesOf = (runId: string) =>
  app.delivered.filter((delivery) => delivery.headers['upstash-workflow-runid'] === runId).length

const statesOf = (ids: readonly string[]) => Promise.all(ids.map((id) => service.stateOf(id)))

it('the client cancels by id in every form of the client', async () => {
  const [a, b, c, d, e] = (await sleeping(5)) as [string, string, string, string, string]
  const { client } = service
  expect(await client.cancel(a)).toEqual({ cancelled: 1 })
  expect(await client.cancel([b, 'wfr_never-existed'])).toEqual({ cancelled: 1 })
  expect(await client.cancel({ ids: c })).toEqual({ cancelled: 1 })
  expect(await client.cancel({ workflowRunIds: [d, e] })).toEqual({ cancelled: 2 })
  expect(await client.cancel([])).toEqual({ cancelled: 0 })
  expect(await client.cancel([a, b, c])).toEqual({ cancelled: 0 })
  expect(await statesOf([a, b, c, d, e])).toEqual(Array(5).fill('RUN_CANCELED'))
})

it('the client cancels by URL prefix and by exact URL', async () => {
  const { client } = service
  const short = await sleeping(2, '/a')
  const long = await sleeping(1, '/a/more')
  const other = await sleeping(1, '/b')
  expect(await client.cancel({ filter: { workflowUrl: `${app.url}/a` } })).toEqual({ cancelled: 2 })
  expect(await statesOf([...short, ...long])).toEqual(['RUN_CANCELED', 'RUN_CANCELED', 'RUN_STARTED'])
  expect(await client.cancel({ filter: { workflowUrlStartingWith: `${app.url}/a` } })).toEqual({ cancelled: 1 })
  expect(await client.cancel({ urlStartingWith: `${app.url}/b` })).toEqual({ cancelled: 1 })
  expect(await statesOf([...long, ...other])).toEqual(['RUN_CANCELED', 'RUN_CANCELED'])
})

it('the client cancels by label and dates, and by host and path', async () => {
  const { client } = service
  const from = Date.now() - 1
  const [a, b, c] = (await sleeping(1, '/a', 'red')).concat(await sleeping(1, '/a', 'blue'), await sleeping(1, '/b'))
  const past = { label: ['red', 'blue'], toDate: new Date(from) }
  expect(await client.cancel({ filter: past })).toEqual({ cancelled: 0 })
  const window = { label: 'red', fromDate: from, toDate: Date.now() + 60_000 }
  expect(await client.cancel({ filter: window })).toEqual({ cancelled: 1 })
  expect(await client.cancel({ filter: { host: new URL(app.url).host, path: '/b' } })).toEqual({ cancelled: 1 })
  expect(await statesOf([a ?? '', b ?? '', c ?? ''])).toEqual(['RUN_CANCELED', 'RUN_STARTED', 'RUN_CANCELED'])
  expect(await client.cancel({ all: true })).toEqual({ cancelled: 1 })
})

it('the client cancels all, up to a maximum per request', async () => {
  const { client } = service
  await service.startDelayed(130, `${app.url}/a`)
  expect(await client.cancel({ all: true, count: 7 })).toEqual({ cancelled: 7 })
  expect(await client.cancel({ all: true })).toEqual({ cancelled: 100 })
  expect(await client.cancel({ all: true })).toEqual({ cancelled: 23 })
  expect(await client.cancel({ all: true })).toEqual({ cancelled: 0 })
})

it('the client accepts the JSON bodies of older clients and of the interface', async () => {
  const { homeport } = service
  const cancel = async (body: unknown) => (await homeport.queue('DELETE', '/v2/workflows/runs', body)).body
  const ids = await service.startDelayed(5, `${app.url}/a`, 'red')
  expect(await cancel({ workflowRunIds: ids.slice(0, 2) })).toEqual({ cancelled: 2 })
  expect(await cancel({ label: 'red', fromDate: 1, toDate: Date.now() + 60_000, count: 1 })).toEqual({ cancelled: 1 })
  expect(await cancel({ workflowUrl: app.url, count: 1 })).toEqual({ cancelled: 1 })
  expect(await cancel({})).toEqual({ cancelled: 1 })
})

it('a cancel delivers nothing of a cancelled run again and refuses its late steps', async () => {
  const [runId] = (await sleeping(1)) as [string]
  expect(await service.client.cancel(runId)).toEqual({ cancelled: 1 })
  const before = deliveriesOf(runId)
  const step = { stepId: 3, stepName: 'late', stepType: 'Run', out: '"x"', concurrent: 1 }
  const url = `${app.url}/a`
  const headers = {
    'Upstash-Workflow-Init': 'false',
    'Upstash-Workflow-RunId': runId,
    'Upstash-Workflow-Url': url,
    'Upstash-Workflow-Sdk-Version': '1',
  }
  const late = await service.homeport.queue('POST', '/v2/batch', [
    { destination: url, headers, body: JSON.stringify(step) },
  ])
  expect(late.status).toBe(400)
  // Another run completes its steps meanwhile: a delivery of the cancelled run would have arrived too.
  await sleeping(1)
  expect(deliveriesOf(runId)).toBe(before)
})

it('a cancel aborts a request in flight and ignores its outcome', async () => {
  const { workflowRunId } = await service.client.trigger({ url: `${app.url}/hang` })
  await waitFor(() => hanging.size === 1, { what: 'the step to run' })
  const before = app.aborted()
  expect(await service.client.cancel({ filter: { workflowUrl: `${app.url}/hang` } })).toEqual({ cancelled: 1 })
  await waitFor(() => app.aborted() === before + 1, { what: 'the request to be aborted' })
  for (const release of hanging) release()
  await waitFor(() => deliveriesOf(workflowRunId) === 1, { what: 'the step to end' })
  expect(await service.stateOf(workflowRunId)).toBe('RUN_CANCELED')
})

it('a cancel ends retries, calls no failure function and leaves no dead letter', async () => {
  const retrying = { url: `${app.url}/fail`, retries: 5, retryDelay: '300' }
  const { workflowRunId: cancelled } = await service.client.trigger(retrying)
  await waitFor(() => deliveriesOf(cancelled) >= 1, { what: 'the first attempt' })
  expect(await service.client.cancel(cancelled)).toEqual({ cancelled: 1 })
  const attempts = deliveriesOf(cancelled)
  // Meanwhile the failure function of a run that fails in the same way is called.
  const { workflowRunId: failing } = await service.client.trigger({ ...retrying, retries: 2 })
  await waitFor(() => failures.includes(failing), { what: 'the failure function of the other run' })
  expect(deliveriesOf(cancelled)).toBe(attempts)
  expect(failures).not.toContain(cancelled)
  expect(await service.logOf(failing)).toMatchObject({ workflowState: 'RUN_FAILED', dlqId: expect.any(String) })
  const log = await service.logOf(cancelled)
  expect(log?.workflowState).toBe('RUN_CANCELED')
  expect(log?.dlqId).toBeUndefined()
})

it('a cancel needs a token', async () => {
  const answer = await fetch(`${service.homeport.queueUrl}/v2/workflows/runs`, { method: 'DELETE' })
  expect(answer.status).toBe(401)
})
