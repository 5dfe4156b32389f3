import { Client, type WorkflowContext } from '@upstash/workflow'
import { type App, startApp } from '../../../src/workflow/testing/harness.js'
import { atCleanup, type RunningHomeport, waitFor } from '../../support/index.js'

/** The IDs of the example data of workflows. */
export interface FurnishedRuns {
  /** A successful run with parallel branches. */
  readonly doneId: string
  /** A run that waits for three reasons. */
  readonly waitingId: string
  readonly failedId: string
  /** A finished bulk action. */
  readonly actionId: string
}

async function order(context: WorkflowContext<unknown>, warehouse: string) {
  const reserved = await context.run('reserve the goods', () => ({ reserved: true, order: context.requestPayload }))
  await context.sleep('let it cool down', '1s')
  const charge = context.run('charge the card', () => 'charged')
  const body = JSON.stringify({ order: 4711, shelf: 'B-17' })
  const notified = context.call('tell the warehouse', { url: warehouse, method: 'POST', body })
  const [charged, { status }] = await Promise.all([charge, notified])
  await context.run('say thanks', () => 'mail sent')
  return { ...reserved, charged, warehouse: status }
}

async function approval(context: WorkflowContext<unknown>) {
  await context.run('ask for approval', () => 'asked')
  return await Promise.all([
    context.waitForEvent('approved by a person', 'order-7/approved', { timeout: '2d' }),
    context.sleep('time to remind', '1h'),
    context.run('mail the customer', () => {
      throw new Error('the mail server is down')
    }),
  ])
}

async function importing(context: WorkflowContext<unknown>) {
  await context.run('fetch', () => 'fetched')
  return await context.run('store', () => {
    throw new Error('the disk quota of "imports" is used up')
  })
}

/** Creates successful, failed and waiting runs, and a bulk action on many runs. */
export async function furnishWorkflows(homeport: RunningHomeport): Promise<FurnishedRuns> {
  const app = await serve(homeport)
  const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken })
  const trigger = async (path: string, more: object) =>
    (await client.trigger({ url: `${app.url}${path}`, ...more })).workflowRunId
  const later = (count: number, label: string) =>
    client.trigger(
      Array.from({ length: count }, () => ({ url: `${app.url}/api/${label}`, label, delay: '2h' as const })),
    )
  await later(200, 'nightly')
  await later(40, 'weekly')
  const doneId = await trigger('/api/order', { label: 'shop', body: { order: 4711 } })
  const waitingId = await trigger('/api/approval', { label: 'approvals', retryDelay: '600000' })
  const failedId = await trigger('/api/import', { label: 'imports', retries: 1, retryDelay: '200' })
  await until(homeport, doneId, /RUN_SUCCESS/)
  await until(homeport, failedId, /RUN_FAILED/)
  await until(homeport, waitingId, /"retry".*STEP_RETRY|STEP_RETRY.*"retry"/)
  const { body } = await homeport.queue('DELETE', '/v2/workflows/runs', {
    label: 'nightly',
    reason: 'started twice',
    report: true,
  })
  return { doneId, waitingId, failedId, actionId: (body as { actionId: string }).actionId }
}

async function serve(homeport: RunningHomeport): Promise<App> {
  const { queueToken: token, currentSigningKey: current, nextSigningKey: next } = homeport.credentials
  const service = { url: homeport.queueUrl, token, signingKeys: () => ({ current, next }) }
  const app = await startApp(service, {
    '/api/order': { route: (context) => order(context, `${app.url}/warehouse`) },
    '/api/approval': { route: approval },
    '/api/import': { route: importing },
    '/warehouse': async () => Response.json({ accepted: true }, { status: 201 }),
  })
  atCleanup(() => app.close())
  return app
}

const until = (homeport: RunningHomeport, id: string, seen: RegExp) =>
  waitFor(
    async () => seen.test(JSON.stringify((await homeport.queue('GET', `/v2/workflows/logs?workflowRunId=${id}`)).body)),
    { what: `run ${id} to show ${seen}` },
  )
