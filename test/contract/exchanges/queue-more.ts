import type { Exchange, Exchanges, Stage } from './stage.js'

const ask =
  (method: string, path: string, body?: unknown): Exchange =>
  ({ homeport }) =>
    homeport.queue(method, path, body)

/** Prepares with one exchange and checks another. */
const after =
  (first: Exchange, second: Exchange): Exchange =>
  async (stage) => {
    await first(stage)
    return second(stage)
  }

const addEndpoint: Exchange = ({ homeport, sink }) =>
  homeport.queue('POST', '/v2/topics/group/endpoints', { endpoints: [{ name: 'one', url: sink.url }] })

/** URL groups. */
export const groupExchanges: Exchanges = {
  addUrlGroupEndpoints: addEndpoint,
  listUrlGroups: after(addEndpoint, ask('GET', '/v2/topics')),
  getUrlGroup: after(addEndpoint, ask('GET', '/v2/topics/group')),
  setUrlGroupHeaders: after(addEndpoint, ask('PATCH', '/v2/topics/group', { headers: { 'Upstash-Retries': '1' } })),
  removeUrlGroupEndpoints: after(
    addEndpoint,
    ask('DELETE', '/v2/topics/group/endpoints', { endpoints: [{ name: 'one' }] }),
  ),
  deleteUrlGroup: after(addEndpoint, ask('DELETE', '/v2/topics/group')),
}

const putQueue = ask('POST', '/v2/queues', { queueName: 'line', parallelism: 2 })

/** Queues and flow control. */
export const lineExchanges: Exchanges = {
  putQueue,
  enqueueMessage: after(putQueue, ({ homeport, sink }) => homeport.queue('POST', `/v2/enqueue/line/${sink.url}`, {})),
  listQueues: after(putQueue, ask('GET', '/v2/queues')),
  getQueue: after(putQueue, ask('GET', '/v2/queues/line')),
  pauseQueue: after(putQueue, ask('POST', '/v2/queues/line/pause')),
  resumeQueue: after(putQueue, ask('POST', '/v2/queues/line/resume')),
  deleteQueue: after(putQueue, ask('DELETE', '/v2/queues/line')),
  changeFlowKey: ask('POST', '/v2/flowControl/tenant/7/pin?parallelism=3&rate=20&period=120'),
  pinFlowKey: ask('POST', '/v2/flowControl/tenant/pin?parallelism=3&rate=20&period=120'),
  unpinFlowKey: ask('POST', '/v2/flowControl/tenant/unpin?parallelism=true'),
  pauseFlowKey: ask('POST', '/v2/flowControl/tenant/pause'),
  resumeFlowKey: ask('POST', '/v2/flowControl/tenant/resume'),
  resetRateFlowKey: ask('POST', '/v2/flowControl/tenant/resetRate'),
  resetFlowKey: ask('POST', '/v2/flowControl/tenant/reset'),
  listFlowKeys: ask('GET', '/v2/flowControl'),
  getFlowKey: ask('GET', '/v2/flowControl/tenant'),
  getGlobalParallelism: ask('GET', '/v2/globalParallelism'),
}

const schedule: Exchange = ({ homeport, sink }) => {
  const headers = { 'Upstash-Cron': '0 0 1 1 *', 'Upstash-Schedule-Id': 'yearly', 'Upstash-Retries': '1' }
  return homeport.queue('POST', `/v2/schedules/${sink.url}`, { happy: 'new year' }, headers)
}

/** Schedules. */
export const scheduleExchanges: Exchanges = {
  createSchedule: schedule,
  listSchedules: after(schedule, ask('GET', '/v2/schedules')),
  getSchedule: after(schedule, ask('GET', '/v2/schedules/yearly')),
  pauseSchedule: after(schedule, ask('PATCH', '/v2/schedules/yearly/pause')),
  resumeSchedule: after(schedule, ask('PATCH', '/v2/schedules/yearly/resume')),
  pauseScheduleByPost: after(schedule, ask('POST', '/v2/schedules/yearly/pause')),
  resumeScheduleByPost: after(schedule, ask('POST', '/v2/schedules/yearly/resume')),
  deleteSchedule: after(schedule, ask('DELETE', '/v2/schedules/yearly')),
}

const aboutDeadRun =
  (method: string, path: (dlqId: string) => string): Exchange =>
  async (stage: Stage) =>
    stage.homeport.queue(method, path(await stage.deadRun()))

/** Workflow runs that have failed. */
export const deadRunExchanges: Exchanges = {
  listDeadWorkflowRuns: aboutDeadRun('GET', () => '/v2/workflows/dlq'),
  getDeadWorkflowRun: aboutDeadRun('GET', (id) => `/v2/workflows/dlq/${id}`),
  resumeDeadWorkflowRun: aboutDeadRun('POST', (id) => `/v2/workflows/dlq/resume/${id}`),
  restartDeadWorkflowRun: aboutDeadRun('POST', (id) => `/v2/workflows/dlq/restart/${id}`),
  resumeDeadWorkflowRuns: aboutDeadRun('POST', (id) => `/v2/workflows/dlq/resume?dlqIds=${id}`),
  restartDeadWorkflowRuns: aboutDeadRun('POST', (id) => `/v2/workflows/dlq/restart?dlqIds=${id}`),
  deleteDeadWorkflowRun: aboutDeadRun('DELETE', (id) => `/v2/workflows/dlq/${id}`),
  deleteDeadWorkflowRunByVerb: aboutDeadRun('DELETE', (id) => `/v2/workflows/dlq/delete/${id}`),
  deleteDeadWorkflowRuns: aboutDeadRun('DELETE', (id) => `/v2/workflows/dlq?dlqIds=${id}`),
  retryWorkflowFailureFunction: async (stage) =>
    stage.homeport.queue('POST', `/v2/workflows/dlq/callback/${await stage.deadRun('CALLBACK_FAIL')}`),
  cancelWorkflowFailureFunction: async (stage) =>
    stage.homeport.queue('DELETE', `/v2/workflows/dlq/callback/${await stage.deadRun('CALLBACK_INPROGRESS')}`),
}
