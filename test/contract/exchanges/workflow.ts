import { waitFor } from '../../support/index.js'
import type { Exchange, Exchanges, Stage } from './stage.js'

const hook =
  (method: string): Exchange =>
  async (stage) => {
    return stage.homeport.queue(method, new URL(await stage.webhook()).pathname)
  }

/** Starts a bulk action over one run; returns its id. */
async function action(stage: Stage): Promise<string> {
  const { body } = await stage.homeport.queue('DELETE', '/v2/workflows/runs', {
    workflowRunIds: [await stage.sleepingRun()],
    report: true,
  })
  return (body as { actionId: string }).actionId
}

/** Starts a slow bulk action; returns its path. */
async function slowAction({ homeport, app }: Stage): Promise<string> {
  const headers = { 'Upstash-Label': 'slow', 'Upstash-Delay': '1h' }
  const items = Array.from({ length: 20 }, () => ({ destination: `${app.url}/sleep`, headers }))
  await homeport.queue('POST', '/v2/batch/trigger', items)
  const slowly = { label: 'slow', async: true, ratePerSecond: 1, fenceUntil: Date.now() + 60_000 }
  const { body } = await homeport.queue('DELETE', '/v2/workflows/runs', slowly)
  const path = `/v2/workflows/bulkActions/${(body as { actionId: string }).actionId}`
  await homeport.queue('DELETE', `${path}/fence`)
  return path
}

/** The same, paused. */
async function pausedAction(stage: Stage): Promise<string> {
  const path = await slowAction(stage)
  await stage.homeport.queue('POST', `${path}/pause`, { reason: 'to look at it' })
  return path
}

const SELECTOR = '/v2/workflows/bulkSelectors/stuck-nightly'

/** Saves a selector. */
const savedSelector = ({ homeport }: Stage) =>
  homeport.queue('PUT', SELECTOR, { kind: 'cancelRuns', selector: { label: 'nightly', state: 'retry' } })

/** Workflows and bulk actions. */
export const workflowExchanges: Exchanges = {
  triggerWorkflow: ({ homeport, app }) => homeport.queue('POST', `/v2/trigger/${app.url}/sleep`, { any: 'payload' }),
  triggerWorkflows: ({ homeport, app }) =>
    homeport.queue('POST', '/v2/batch/trigger', [{ destination: `${app.url}/sleep` }]),
  getWorkflowRunSteps: async (stage) => stage.homeport.queue('GET', `/v2/workflows/runs/${await stage.sleepingRun()}`),
  endWorkflowRun: async (stage) => stage.homeport.queue('DELETE', `/v2/workflows/runs/${await stage.sleepingRun()}`),
  pauseWorkflowRun: async (stage) =>
    stage.homeport.queue('POST', `/v2/workflows/runs/${await stage.sleepingRun()}/pause`, { reason: 'maintenance' }),
  resumePausedWorkflowRun: async (stage) =>
    stage.homeport.queue('POST', `/v2/workflows/runs/${await stage.sleepingRun()}/resume`),
  pauseWorkflow: ({ homeport, app }) =>
    homeport.queue('POST', '/v2/workflows/pause', { workflowUrl: `${app.url}/paused`, reason: 'maintenance' }),
  listPausedWorkflows: async ({ homeport, app }) => {
    await homeport.queue('POST', '/v2/workflows/pause', { workflowUrl: `${app.url}/paused` })
    return homeport.queue('GET', '/v2/workflows/paused')
  },
  resumeWorkflow: ({ homeport, app }) =>
    homeport.queue('POST', '/v2/workflows/resume', { workflowUrl: `${app.url}/paused` }),
  restartWorkflowRun: async (stage) =>
    stage.homeport.queue('POST', `/v2/workflows/runs/${await stage.sleepingRun()}/restart`, { fromStep: 1 }),
  listWorkflowRuns: async (stage) => {
    await stage.sleepingRun()
    return stage.homeport.queue('GET', '/v2/workflows/logs')
  },
  listWorkflowEvents: ({ homeport }) => homeport.queue('GET', '/v2/workflows/events'),
  listWorkflowMessageLogs: async (stage) => {
    await stage.sleepingRun()
    return stage.homeport.queue('GET', '/v2/workflows/messageLogs')
  },
  waitForEvent: async (stage) => {
    const runId = await stage.sleepingRun()
    const url = `${stage.app.url}/sleep`
    const step = { stepId: 1, stepName: 'wait', stepType: 'Wait', waitEventId: 'paid', timeout: '1h', concurrent: 1 }
    const headers = { 'Upstash-Workflow-RunId': runId, 'Upstash-Workflow-Url': url, 'Upstash-Workflow-Init': 'false' }
    return stage.homeport.queue('POST', '/v2/wait/paid', { url, timeout: '1h', step }, headers)
  },
  notifyEvent: async ({ homeport, service, app }) => {
    await service.workflow.trigger({ url: `${app.url}/wait` })
    const waits = async () => (await service.workflow.getWaiters({ eventId: 'paid' })).length > 0
    await waitFor(waits, { what: 'the run to wait' })
    return homeport.queue('POST', '/v2/notify/paid', { amount: 7 })
  },
  notifyRun: async (stage) =>
    stage.homeport.queue('POST', `/v2/notify/${await stage.sleepingRun()}/paid`, { amount: 7 }),
  listNotifiedEvents: async ({ homeport }) => {
    await homeport.queue('POST', '/v2/notify/nobody-waits', { amount: 10 })
    return homeport.queue('GET', '/v2/notify?outcome=nobody')
  },
  listAwaitedEvents: ({ homeport }) => homeport.queue('GET', '/v2/waiters'),
  listWaiters: ({ homeport }) => homeport.queue('GET', '/v2/waiters/paid'),
  callWebhookGet: hook('GET'),
  callWebhookPost: hook('POST'),
  callWebhookPut: hook('PUT'),
  callWebhookPatch: hook('PATCH'),
  callWebhookDelete: hook('DELETE'),
  callWebhookHead: hook('HEAD'),
  callWebhookOptions: hook('OPTIONS'),
  cancelWorkflowRuns: async (stage) => {
    await stage.sleepingRun('several')
    return stage.homeport.queue('DELETE', '/v2/workflows/runs', { label: 'several' })
  },
  listBulkActions: ({ homeport }) => homeport.queue('GET', '/v2/workflows/bulkActions'),
  undoBulkAction: async (stage) =>
    stage.homeport.queue('POST', `/v2/workflows/bulkActions/${await action(stage)}/undo`, { clock: 'hold' }),
  undoCancelOfRun: async (stage) => {
    const path = `/v2/workflows/runs/${await stage.sleepingRun()}`
    await stage.homeport.queue('DELETE', path)
    return stage.homeport.queue('POST', `${path}/undo`, { reason: 'cancelled by mistake' })
  },
  undoCancelOfMessage: async (stage) => {
    const path = `/v2/messages/${await stage.waitingMessage()}`
    await stage.homeport.queue('DELETE', path)
    return stage.homeport.queue('POST', `${path}/undo`, { clock: 'original' })
  },
  getBulkAction: async (stage) => stage.homeport.queue('GET', `/v2/workflows/bulkActions/${await action(stage)}`),
  listBulkOutcomes: async (stage) =>
    stage.homeport.queue('GET', `/v2/workflows/bulkActions/${await action(stage)}/outcomes`),
  startBulkAction: ({ homeport }) =>
    homeport.queue('POST', '/v2/workflows/bulkActions', { kind: 'retryFailureCallbacks', selector: { label: 'none' } }),
  saveSelector: (stage) => savedSelector(stage),
  listSelectors: ({ homeport }) => homeport.queue('GET', '/v2/workflows/bulkSelectors'),
  getSelector: async (stage) => {
    await savedSelector(stage)
    return stage.homeport.queue('GET', SELECTOR)
  },
  deleteSelector: async (stage) => {
    await savedSelector(stage)
    return stage.homeport.queue('DELETE', SELECTOR)
  },
  pauseBulkAction: async (stage) => stage.homeport.queue('POST', `${await slowAction(stage)}/pause`, {}),
  resumeBulkAction: async (stage) => stage.homeport.queue('POST', `${await pausedAction(stage)}/resume`, {}),
  abortBulkAction: async (stage) => stage.homeport.queue('POST', `${await pausedAction(stage)}/abort`, {}),
  changeBulkAction: async (stage) => stage.homeport.queue('PATCH', await pausedAction(stage), { ratePerSecond: 50 }),
  liftBulkFence: async (stage) => stage.homeport.queue('DELETE', `${await pausedAction(stage)}/fence`),
}
